#include "cli/store_options.h"

#include <utility>
#include <vector>

#include "redis/dialer.h"
#include "store/lease/lease_terms.h"
#include "store/redis/script_calls.h"

namespace weir::cli {

namespace {

policy::ConfigError Fault(const policy::WrittenAt& at, std::string message) {
  return {at.place.file, at.place.line, at.place.column, std::move(message)};
}

}  // namespace

std::expected<shared_store::RedisStoreOptions, policy::ConfigError> RedisOptionsOf(
    const policy::StoreConfig& store) {
  Result<redis::ClientOptions> client = redis::ParseUrl(store.url.Reveal(), store.insecure);
  if (!client) return std::unexpected(Fault(store.url_at, "store." + client.error().message));
  const bool tls_given =
      !store.tls.ca.empty() || !store.tls.cert.empty() || !store.tls.server_name.empty();
  if (tls_given && !client->tls.enabled) {
    return std::unexpected(
        Fault(store.tls.at, "store.tls: the URL asks for no TLS; write rediss://"));
  }
  client->tls.ca_file = store.tls.ca;
  client->tls.cert_file = store.tls.cert;
  client->tls.key_file = store.tls.key;
  client->tls.server_name = store.tls.server_name;
  if (client->tls.enabled) {
    if (const auto context = redis::TlsContextOf(client->tls); !context)
      return std::unexpected(Fault(store.tls.at, "store.tls: " + context.error().message));
  }
  client->connections = store.connections;
  shared_store::RedisStoreOptions options;
  options.client = std::move(*client);
  options.prefix = store.prefix;
  options.timeout_ns = store.timeout.count();
  options.breaker = {.failures = store.breaker_failures,
                     .open_for_ns = store.breaker_open_for.count()};
  return options;
}

policy::Policy::LoadResult LoadPolicy(const std::string& path) {
  policy::Policy::LoadResult loaded = policy::Policy::Load(path, policy::ProcessEnv());
  if (!loaded || (*loaded)->config().store.kind != policy::StoreKind::kRedis) return loaded;
  std::vector<policy::ConfigError> errors;
  if (const auto options = RedisOptionsOf((*loaded)->config().store); !options)
    errors.push_back(options.error());
  for (const policy::Limit& limit : (*loaded)->limits()) {
    if (limit.consistency == policy::Consistency::kLocal) continue;
    for (const policy::Variant& variant : limit.variants) {
      if (variant.unlimited) continue;
      const auto refuse = [&](const std::string& why, const std::string& remedy) {
        errors.push_back({variant.place.file, variant.place.line, variant.place.column,
                          "limit `" + limit.name + "`: " + why + "; " + remedy});
      };
      if (const Result<void> counted = store::redis::CheckMeter(variant.spec); !counted) {
        refuse(counted.error().message, "with `consistency: local` each node can count it");
      } else if (policy::IsLeased(limit.consistency) && variant.spec.rate.units > 0) {
        const Result<store::lease::LeaseTerms> leased = store::lease::LeaseTerms::Compile(
            {.spec = variant.spec}, store::lease::LeaseKind::kReserved);
        if (!leased) refuse(leased.error().message, "write `consistency: exact`");
      }
    }
  }
  if (!errors.empty()) return std::unexpected(std::move(errors));
  return loaded;
}

}  // namespace weir::cli
