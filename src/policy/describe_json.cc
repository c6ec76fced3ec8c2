// The effective policy as one JSON object.
#include <boost/json.hpp>

#include "policy/describe.h"
#include "policy/rate_text.h"

namespace weir::policy {
namespace {

namespace json = boost::json;
using std::chrono::nanoseconds;

json::string Text(std::string_view text) { return json::string(text.data(), text.size()); }

json::value Text(const Secret& secret) {
  return secret.empty() ? json::value(nullptr) : json::value(Text(kRedacted));
}

json::value Text(nanoseconds duration) { return Text(DurationText(duration)); }

json::value Door(const std::optional<DoorConfig>& door) {
  if (!door) return nullptr;
  json::object out{{"address", Text(door->address)}};
  if (door->tls) {
    json::object tls{{"cert", Text(door->tls->cert)}, {"key", Text(door->tls->key)}};
    if (!door->tls->client_ca.empty()) tls["client_ca"] = Text(door->tls->client_ca);
    out["tls"] = std::move(tls);
  }
  if (!door->token.empty()) out["token"] = Text(door->token);
  if (door->max_connection_age.count() > 0)
    out["max_connection_age"] = Text(door->max_connection_age);
  return out;
}

json::object Listen(const ListenConfig& listen) {
  json::object out;
  const std::pair<std::string_view, const std::optional<DoorConfig>&> doors[] = {
      {"gateway", listen.gateway}, {"api", listen.api},   {"admin", listen.admin},
      {"ops", listen.ops},         {"resp", listen.resp}, {"grpc", listen.grpc}};
  for (const auto& [name, door] : doors) {
    if (door) out[json::string_view(name.data(), name.size())] = Door(door);
  }
  return out;
}

json::object Store(const StoreConfig& store) {
  json::object out{{"kind", store.kind == StoreKind::kRedis ? "redis" : "memory"},
                   {"max_keys", store.max_keys},
                   {"on_full", store.on_full_open ? "open" : "closed"}};
  if (store.kind == StoreKind::kMemory) return out;
  out["url"] = Text(kRedacted);  // It may hold a password.
  out["prefix"] = Text(store.prefix);
  out["timeout"] = Text(store.timeout);
  out["on_failure"] = Text(OnFailureName(store.on_failure));
  out["breaker"] = {{"failures", store.breaker_failures},
                    {"open_for", Text(store.breaker_open_for)}};
  out["connections"] = store.connections;
  out["nodes"] = store.nodes;
  return out;
}

json::string SourceText(const IdentitySource& source) {
  if (source.kind == IdentityKind::kHeader) return Text("header." + source.header);
  return Text(IdentityKindName(source.kind));
}

json::object Identity(const IdentityConfig& identity) {
  json::array client;
  for (const IdentitySource& source : identity.client) client.push_back(SourceText(source));
  json::array proxies;
  for (const std::string& range : identity.trusted_proxies) proxies.push_back(Text(range));
  json::object out{{"client", std::move(client)},
                   {"require", nullptr},
                   {"secret", Text(identity.secret)},
                   {"trusted_proxies", std::move(proxies)},
                   {"ipv6_prefix", identity.ipv6_prefix}};
  if (identity.require) out["require"] = SourceText(*identity.require);
  if (identity.jwt) {
    json::array algorithms;
    for (JwtAlgorithm algorithm : identity.jwt->algorithms) {
      algorithms.push_back(Text(JwtAlgorithmName(algorithm)));
    }
    out["jwt"] = {{"keys", Text(identity.jwt->keys)},
                  {"algorithms", std::move(algorithms)},
                  {"issuer", Text(identity.jwt->issuer)},
                  {"audience", Text(identity.jwt->audience)},
                  {"leeway", Text(nanoseconds(identity.jwt->leeway))}};
  }
  return out;
}

json::object Timeouts(const TimeoutsConfig& timeouts) {
  return {{"header", Text(timeouts.header)},
          {"idle", Text(timeouts.idle)},
          {"connect", Text(timeouts.connect)},
          {"first_byte", Text(timeouts.first_byte)},
          {"write", Text(timeouts.write)},
          {"total", Text(timeouts.total)},
          {"drain_delay", Text(timeouts.drain_delay)},
          {"drain", Text(timeouts.drain)}};
}

json::object Answers(const AnswersConfig& answers) {
  json::array headers;
  if (answers.x_ratelimit) headers.push_back("x-ratelimit");
  if (answers.ratelimit) headers.push_back("ratelimit");
  if (answers.retry_after) headers.push_back("retry-after");
  if (answers.openai) headers.push_back("openai");
  return {{"headers", std::move(headers)},
          {"x_ratelimit_reset", answers.x_ratelimit_reset_unix ? "unix" : "seconds"},
          {"error_body", Text(ErrorBodyName(answers.error_body))},
          {"retry_jitter", Text(answers.retry_jitter)}};
}

json::array Upstreams(const Config& config) {
  json::array out;
  for (const UpstreamConfig& upstream : config.upstreams) {
    json::array urls;
    for (const UpstreamUrl& url : upstream.urls) {
      const bool v6 = url.host.find(':') != std::string::npos;
      urls.push_back(Text((url.tls ? "https://" : "http://") +
                          (v6 ? "[" + url.host + "]" : url.host) + ":" + std::to_string(url.port) +
                          url.base_path));
    }
    json::object headers;
    for (const UpstreamHeader& header : upstream.headers) {
      headers[header.name] = Text(header.value);
    }
    out.push_back({{"name", Text(upstream.name)},
                   {"urls", std::move(urls)},
                   {"headers", std::move(headers)}});
  }
  return out;
}

json::array Routes(const Policy& policy) {
  json::array out;
  for (const Route& route : policy.routes().routes()) {
    json::object match{{"path", Text(route.path.spelling())}};
    if (!route.methods.empty()) {
      json::array methods;
      for (const std::string& method : route.methods) methods.push_back(Text(method));
      match["method"] = std::move(methods);
    }
    if (!route.host.empty()) match["host"] = Text(route.host);
    json::object item{
        {"match", std::move(match)},
        {"upstream", Text(policy.config().upstreams[static_cast<size_t>(route.upstream)].name)}};
    if (route.rewrite_prefix) item["rewrite"] = {{"prefix", Text(*route.rewrite_prefix)}};
    out.push_back(std::move(item));
  }
  return out;
}

json::object Conditions(const std::vector<Condition>& conditions, const AttributeTable& names) {
  json::object out;
  for (const Condition& condition : conditions) {
    json::array patterns;
    for (const Pattern& pattern : condition.patterns) patterns.push_back(Text(pattern.spelling));
    const std::string_view name = names.NameOf(condition.attribute);
    out[json::string_view(name.data(), name.size())] = std::move(patterns);
  }
  return out;
}

json::object Match(const Matcher& matcher, const AttributeTable& names) {
  json::object out = Conditions(matcher.conditions(), names);
  // At most one `not` stands in a map of the configuration.
  for (const auto& group : matcher.negated()) out["not"] = Conditions(group, names);
  return out;
}

void AddRate(const Limit& limit, const Variant& variant, json::object& out) {
  if (variant.unlimited) {
    out["rate"] = "unlimited";
    return;
  }
  const core::MeterSpec& spec = variant.spec;
  if (spec.algorithm == Algorithm::kParallel) {
    out["parallel"] = spec.rate.units;
  } else {
    out["rate"] = Text(variant.rate_text);
    out[limit.unit == Unit::kUsd ? "usd_micros" : "units"] = spec.rate.units;
    out["period"] = Text(spec.rate.period);
    out["burst"] = spec.rate.burst;
  }
  out["bound"] = Text(BoundInWords(limit, variant));
}

std::string_view MissingName(Missing missing) {
  switch (missing) {
    case Missing::kDoor:
      return "door";
    case Missing::kSkip:
      return "skip";
    case Missing::kEmpty:
      return "empty";
    case Missing::kDeny:
      return "deny";
  }
  return "";
}

json::string EnforceText(const Limit& limit) {
  switch (limit.enforce) {
    case Enforce::kAll:
      return "all";
    case Enforce::kShadow:
      return "shadow";
    case Enforce::kPercent:
      return Text(std::to_string(limit.enforce_percent) + "%");
  }
  return "";
}

// Which calls the limit is for, and what makes its key.
void AddBinding(const Limit& limit, const AttributeTable& names, json::object& out) {
  if (!limit.descriptor) {
    json::array per;
    for (int attribute : limit.per) per.push_back(Text(names.NameOf(attribute)));
    out["per"] = std::move(per);
    out["match"] = Match(limit.match, names);
    return;
  }
  json::array entries;
  for (const EntryPattern& entry : limit.descriptor->entries) {
    json::object item{{"key", Text(entry.key)}};
    if (entry.kind != EntryPattern::Kind::kAnyValue) item["value"] = Text(entry.value);
    entries.push_back(std::move(item));
  }
  out["domain"] = Text(limit.descriptor->domain);
  out["descriptor"] = std::move(entries);
}

json::object LimitObject(const Limit& limit, const AttributeTable& names) {
  const Variant& usual = limit.variants[0];
  json::object out{{"name", Text(limit.name)},
                   {"unit", Text(UnitName(limit.unit))},
                   {"layer", Text(LayerName(limit.layer))}};
  AddBinding(limit, names, out);
  out["algorithm"] = Text(AlgorithmName(usual.spec.algorithm));
  AddRate(limit, usual, out);
  if (usual.spec.strict)
    out["sliding_counter"] = {{"strict", true}, {"buckets", usual.spec.buckets}};
  if (usual.spec.alignment != core::Alignment::kNone) {
    out["align"] = "calendar";
    out["timezone"] = Text(usual.spec.timezone);
  }
  out["enforce"] = EnforceText(limit);
  out["consistency"] = Text(ConsistencyName(limit.consistency));
  out["missing"] = Text(MissingName(limit.missing));
  json::array overrides;
  for (size_t i = 1; i < limit.variants.size(); ++i) {
    json::object item{{"when", Match(limit.variants[i].when, names)}};
    AddRate(limit, limit.variants[i], item);
    overrides.push_back(std::move(item));
  }
  out["overrides"] = std::move(overrides);
  return out;
}

}  // namespace

std::string ToJson(const Policy& policy) {
  const Config& config = policy.config();
  json::array origins;
  for (const std::string& origin : config.cors.origins) origins.push_back(Text(origin));
  json::array attributes;
  for (int i = kWellKnownAttributes; i < policy.attributes().size(); ++i) {
    const std::string_view name = policy.attributes().NameOf(i);
    if (!name.starts_with("header.")) attributes.push_back(Text(name));
  }
  json::array limits;
  for (const Limit& limit : policy.limits()) {
    limits.push_back(LimitObject(limit, policy.attributes()));
  }
  const json::object out{
      {"listen", Listen(config.listen)},
      {"threads", config.threads},
      {"config", {{"watch", config.watch}}},
      {"store", Store(config.store)},
      {"identity", Identity(config.identity)},
      {"timeouts", Timeouts(config.timeouts)},
      {"bounds",
       {{"header", config.bounds.header_bytes},
        {"body", config.bounds.body_bytes},
        {"inspect", config.bounds.inspect_bytes},
        {"connections", config.bounds.connections}}},
      {"answers", Answers(config.answers)},
      {"cors", {{"origins", std::move(origins)}}},
      {"upstreams", Upstreams(config)},
      {"routes", Routes(policy)},
      {"attributes", std::move(attributes)},
      {"limits", std::move(limits)},
  };
  return json::serialize(out);
}

}  // namespace weir::policy
