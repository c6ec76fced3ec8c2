#include "decide/bound_policy.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/int128.h"

namespace weir::decide {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr size_t kKeyFileBytesMax = 1 << 20;

Result<std::string> ReadKeys(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return MakeError(ErrorCode::kNotFound, "identity.jwt.keys: cannot read " + path);
  std::string text(kKeyFileBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kKeyFileBytesMax)
    return InvalidArgument("identity.jwt.keys: " + path + " is larger than 1 MiB");
  return text;
}

identity::ClientSource SourceOf(const policy::IdentitySource& source) {
  using Kind = identity::ClientSource::Kind;
  switch (source.kind) {
    case policy::IdentityKind::kApiKey:
      return {Kind::kApiKey, {}};
    case policy::IdentityKind::kJwtSubject:
      return {Kind::kJwtSubject, {}};
    case policy::IdentityKind::kHeader:
      return {Kind::kHeader, source.header};
    case policy::IdentityKind::kIp:
      break;
  }
  return {Kind::kIp, {}};
}

identity::JwtAlgorithm AlgorithmOf(policy::JwtAlgorithm algorithm) {
  switch (algorithm) {
    case policy::JwtAlgorithm::kHs256:
      return identity::JwtAlgorithm::kHs256;
    case policy::JwtAlgorithm::kRs256:
      return identity::JwtAlgorithm::kRs256;
    case policy::JwtAlgorithm::kEs256:
      break;
  }
  return identity::JwtAlgorithm::kEs256;
}

Result<identity::JwtOptions> JwtOptionsOf(const policy::JwtConfig& config) {
  Result<std::string> keys = ReadKeys(config.keys);
  if (!keys) return std::unexpected(keys.error());
  identity::JwtOptions options{.keys = std::move(*keys),
                               .algorithms = {},
                               .issuer = config.issuer,
                               .audience = config.audience,
                               .leeway = config.leeway};
  for (const policy::JwtAlgorithm algorithm : config.algorithms)
    options.algorithms.push_back(AlgorithmOf(algorithm));
  return options;
}

Result<std::unique_ptr<identity::IdentityResolver>> ResolverOf(
    const policy::IdentityConfig& config) {
  identity::IdentityOptions options;
  for (const policy::IdentitySource& source : config.client)
    options.client.push_back(SourceOf(source));
  if (config.require) options.require = SourceOf(*config.require);
  if (config.jwt) {
    Result<identity::JwtOptions> jwt = JwtOptionsOf(*config.jwt);
    if (!jwt) return std::unexpected(jwt.error());
    options.jwt = std::move(*jwt);
  }
  Result<identity::CidrSet> trusted = identity::CidrSet::Create(config.trusted_proxies);
  if (!trusted) return std::unexpected(trusted.error());
  options.trusted_proxies = std::move(*trusted);
  options.ipv6_prefix = config.ipv6_prefix;
  return identity::IdentityResolver::Create(std::move(options));
}

// The terms under which a variant is leased; null when it is not.
Result<const store::lease::LeasedMeter*> Lease(const policy::Policy& policy,
                                               const policy::Limit& limit, const core::Meter& meter,
                                               store::lease::LeasedMeters* leased) {
  const bool nothing_to_lease = meter.form() == core::Form::kDenyAll;
  if (leased == nullptr || !policy::IsLeased(limit.consistency) || nothing_to_lease) return nullptr;
  std::string per;
  for (const int attribute : limit.per) {
    if (!per.empty()) per += ',';
    per += policy.attributes().NameOf(attribute);
  }
  const bool fast = limit.consistency == policy::Consistency::kLeasedFast;
  return leased->Intern(meter, limit.unit, per,
                        fast ? store::lease::LeaseKind::kFast : store::lease::LeaseKind::kReserved);
}

Result<BoundLimit> BindLimit(const policy::Policy& policy, const policy::Limit& limit,
                             store::MemoryStore& store, store::lease::LeasedMeters* leased,
                             const base::KeyHasher& hasher) {
  BoundLimit bound;
  bound.limit = &limit;
  bound.per_client = std::ranges::find(limit.per, policy::kClientAttribute) != limit.per.end();
  std::unordered_set<std::string_view> identities;
  for (const policy::Variant& variant : limit.variants) {
    BoundVariant& made = bound.variants.emplace_back();
    if (variant.unlimited) continue;
    Result<const core::Meter*> meter = store.Intern(variant.spec);
    if (!meter)
      return MakeError(meter.error().code, "limits." + limit.name + ": " + meter.error().message);
    made.meter = *meter;
    Result<const store::lease::LeasedMeter*> terms = Lease(policy, limit, **meter, leased);
    if (!terms)
      return MakeError(terms.error().code, "limits." + limit.name + ": " + terms.error().message);
    made.leased = *terms;
    made.key_front = hasher.Begin(variant.identity);
    made.figures = RateFigures::Of(variant.spec);
    if (identities.insert(variant.identity).second)
      bound.distinct.push_back(static_cast<int>(bound.variants.size()) - 1);
  }
  return bound;
}

}  // namespace

RateFigures RateFigures::Of(const core::MeterSpec& spec) {
  const int64_t units = spec.rate.units;
  const int64_t period_ns = spec.rate.period.count();
  if (spec.algorithm == Algorithm::kParallel) return {.quota = units};
  if (units == 0) return {.quota = 0, .window_s = core::CeilDiv64(period_ns, kSecondNs)};
  const bool bucket = spec.algorithm == Algorithm::kTokenBucket;
  const int64_t quota = bucket ? spec.rate.burst : units;
  const core::Int128 window_ns = core::CeilDiv(core::Int128{quota} * period_ns, units);
  return {.quota = quota,
          .window_s = core::Clamp64(core::CeilDiv(window_ns, kSecondNs)),
          .interval_ns = bucket && period_ns % units == 0 ? period_ns / units : 0};
}

base::Key128 BoundLimit::SharedKeyOf(int variant, const policy::Attributes& call,
                                     const base::HmacKeys& keys) const {
  std::array<std::string_view, 1 + policy::Policy::kMaxPer> parts;
  parts[0] = limit->variants[static_cast<size_t>(variant)].identity;
  size_t count = 1;
  for (const int attribute : limit->per) parts[count++] = call.Get(attribute);
  return keys.Of({parts.data(), count});
}

int BoundLimit::VariantByOverrides(const policy::Attributes& call) const {
  for (size_t i = 1; i < limit->variants.size(); ++i) {
    if (limit->variants[i].when.Matches(call)) return static_cast<int>(i);
  }
  return 0;
}

Result<std::shared_ptr<const BoundPolicy>> BoundPolicy::Bind(
    std::shared_ptr<const policy::Policy> policy, store::MemoryStore& store,
    store::lease::LeasedMeters* leased, metrics::WeirMetrics& metrics,
    const base::KeyHasher& hasher) {
  auto bound = std::make_shared<BoundPolicy>();
  bound->policy = std::move(policy);
  std::vector<metrics::LimitLabels> labels;
  for (const policy::Limit& limit : bound->policy->limits()) {
    Result<BoundLimit> made = BindLimit(*bound->policy, limit, store, leased, hasher);
    if (!made) return std::unexpected(made.error());
    bound->limits.push_back(std::move(*made));
    labels.push_back({limit.name, policy::LayerName(limit.layer)});
  }
  for (const BoundLimit& limit : bound->limits) {
    if (!limit.limit->descriptor) bound->by_attributes.push_back(&limit);
  }
  Result<std::unique_ptr<identity::IdentityResolver>> identity =
      ResolverOf(bound->policy->config().identity);
  if (!identity) return std::unexpected(identity.error());
  bound->identity = std::move(*identity);
  // Last, since it changes what /metrics shows: nothing may fail after it.
  const std::vector<metrics::LimitSeries> series = metrics.BindLimits(labels);
  for (size_t i = 0; i < series.size(); ++i) bound->limits[i].series = series[i];
  return bound;
}

}  // namespace weir::decide
