#include "policy/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "policy/rate_text.h"

namespace weir::policy {
namespace {

using std::chrono::nanoseconds;

constexpr int64_t kSecondNs = 1'000'000'000;

std::string AmountText(int64_t units, Unit unit) {
  if (unit == Unit::kUsd) return UsdText(units) + " usd";
  if (unit == Unit::kRequests || unit == Unit::kParallel) return std::to_string(units);
  return std::to_string(units) + " " + std::string(UnitName(unit));
}

// "minute", "60 days": what stands behind "any".
bool StartsWithDigit(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

std::string PeriodWords(nanoseconds period) {
  switch (period.count() / kSecondNs * (period.count() % kSecondNs == 0 ? 1 : 0)) {
    case 1:
      return "second";
    case 60:
      return "minute";
    case 3600:
      return "hour";
    case 86'400:
      return "day";
    case 7 * 86'400:
      return "week";
    case 30 * 86'400:
      return "30 days";
    case 365 * 86'400:
      return "365 days";
    default:
      return DurationText(period);
  }
}

std::string CalendarWords(core::Alignment alignment) {
  switch (alignment) {
    case core::Alignment::kMinute:
      return "minute";
    case core::Alignment::kHour:
      return "hour";
    case core::Alignment::kDay:
      return "day";
    case core::Alignment::kWeek:
      return "week";
    case core::Alignment::kMonth:
      return "month";
    case core::Alignment::kYear:
      return "year";
    case core::Alignment::kNone:
      break;
  }
  return "";
}

std::string PerWords(const Policy& policy, const Limit& limit) {
  if (limit.descriptor) return "per values of its descriptors";
  if (limit.per.empty()) return "one counter for all";
  std::string out = "per ";
  for (size_t i = 0; i < limit.per.size(); ++i) {
    if (i > 0) out += i + 1 == limit.per.size() ? " and " : ", ";
    out += policy.attributes().NameOf(limit.per[i]);
  }
  return out;
}

// Which calls the limit is for.
std::string CallsWords(const Policy& policy, const Limit& limit) {
  if (!limit.descriptor) return ToString(limit.match, policy.attributes());
  return fmt::format("descriptors of {}: {}", limit.descriptor->domain,
                     ToString(limit.descriptor->entries));
}

std::string EnforceWords(const Limit& limit) {
  switch (limit.enforce) {
    case Enforce::kAll:
      return "";
    case Enforce::kShadow:
      return "; shadow: counted, never denying";
    case Enforce::kPercent:
      return fmt::format("; enforced for {} % of the keys", limit.enforce_percent);
  }
  return "";
}

std::string_view MissingWords(Missing missing) {
  switch (missing) {
    case Missing::kDoor:
      return "";
    case Missing::kSkip:
      return "; does not apply when an attribute is missing";
    case Missing::kEmpty:
      return "; a missing attribute counts as empty";
    case Missing::kDeny:
      return "; denies when an attribute is missing";
  }
  return "";
}

void DescribeDoor(std::string_view name, const std::optional<DoorConfig>& door, std::string& out) {
  if (!door) return;
  out += fmt::format("  {}: {}", name, door->address);
  if (door->tls) out += door->tls->client_ca.empty() ? ", TLS" : ", TLS with client certificates";
  if (!door->token.empty()) out += ", token required";
  if (door->max_connection_age.count() > 0)
    out += ", connections up to " + DurationText(door->max_connection_age);
  out += "\n";
}

void DescribeListen(const Policy& policy, std::string& out) {
  const ListenConfig& listen = policy.config().listen;
  if (listen == ListenConfig()) {
    const bool for_envoy =
        !policy.limits().empty() && std::ranges::all_of(policy.limits(), [](const Limit& limit) {
          return limit.descriptor.has_value();
        });
    out += fmt::format("doors: none; `weir serve` needs one, as in `listen: {{{}}}`\n",
                       for_envoy ? "grpc: 127.0.0.1:8083" : "api: 127.0.0.1:8081");
    return;
  }
  out += "doors:\n";
  DescribeDoor("gateway", listen.gateway, out);
  DescribeDoor("api", listen.api, out);
  DescribeDoor("admin", listen.admin, out);
  DescribeDoor("ops", listen.ops, out);
  DescribeDoor("resp", listen.resp, out);
  DescribeDoor("grpc", listen.grpc, out);
}

void DescribeIdentity(const IdentityConfig& identity, std::string& out) {
  out += "clients: by ";
  for (size_t i = 0; i < identity.client.size(); ++i) {
    if (i > 0) out += ", else by ";
    out += identity.client[i].kind == IdentityKind::kHeader
               ? "header." + identity.client[i].header
               : std::string(IdentityKindName(identity.client[i].kind));
  }
  if (identity.require) {
    out += fmt::format("; 401 without {}",
                       identity.require->kind == IdentityKind::kHeader
                           ? "header." + identity.require->header
                           : std::string(IdentityKindName(identity.require->kind)));
  }
  out += "\n";
}

void DescribeRoutes(const Policy& policy, std::string& out) {
  if (policy.routes().routes().empty()) return;
  out += "routes, the most exact first:\n";
  for (const Route& route : policy.routes().routes()) {
    out += "  ";
    for (const std::string& method : route.methods) out += method + " ";
    out += route.host + route.path.spelling() + " -> " +
           policy.config().upstreams[static_cast<size_t>(route.upstream)].name;
    if (route.rewrite_prefix) out += " as " + *route.rewrite_prefix + "/";
    out += "\n";
  }
}

}  // namespace

std::string RateInWords(const Variant& variant) {
  if (variant.unlimited) return "unlimited";
  std::string out = variant.rate_text;
  const core::MeterSpec& spec = variant.spec;
  if (spec.algorithm == Algorithm::kParallel) return out;
  if (spec.algorithm == Algorithm::kTokenBucket && spec.rate.burst != spec.rate.units) {
    out += fmt::format(", burst {}", spec.rate.burst);
  }
  out += fmt::format(", {}", AlgorithmName(spec.algorithm));
  if (spec.strict) out += fmt::format(", strict in {} buckets", spec.buckets);
  return out;
}

std::string_view ConsistencyInWords(const Policy& policy, const Limit& limit) {
  if (policy.config().store.kind != StoreKind::kRedis) return "";
  switch (limit.consistency) {
    case Consistency::kExact:
      return "";
    case Consistency::kLocal:
      return "; counted on each node alone";
    case Consistency::kLeasedFast:
      // A window's leases end with it, so nothing comes on top.
      if (limit.variants[0].spec.algorithm == Algorithm::kTokenBucket)
        return "; leased to the nodes in parts, of which half the burst can come on top at once";
      break;
    case Consistency::kLeased:
      break;
  }
  return "; leased to the nodes in parts";
}

std::string BoundInWords(const Limit& limit, const Variant& variant) {
  if (variant.unlimited) return "unlimited";
  const core::MeterSpec& spec = variant.spec;
  const int64_t n = spec.rate.units;
  if (n == 0) return "denies every call";
  const auto amount = [&](int64_t units) { return AmountText(units, limit.unit); };
  const std::string period = PeriodWords(spec.rate.period);
  switch (spec.algorithm) {
    case Algorithm::kTokenBucket:
      return fmt::format("at most {} in any {}", amount(n + spec.rate.burst), period);
    case Algorithm::kSlidingWindow:
      return fmt::format("at most {} in any {}", amount(n), period);
    case Algorithm::kSlidingCounter:
      return fmt::format("at most {} in any {}", amount(spec.strict ? n : 2 * n - 1), period);
    case Algorithm::kFixedWindow:
      if (spec.alignment != core::Alignment::kNone) {
        return fmt::format("at most {} in each calendar {} ({})", amount(n),
                           CalendarWords(spec.alignment), spec.timezone);
      }
      return fmt::format("at most {} in each window of {}{}, {} in any {}", amount(n),
                         StartsWithDigit(period) ? "" : "one ", period, amount(2 * n), period);
    case Algorithm::kParallel:
      return fmt::format("at most {} at once", n);
  }
  return "";
}

std::string Describe(const Policy& policy) {
  std::string out;
  DescribeListen(policy, out);
  DescribeIdentity(policy.config().identity, out);
  DescribeRoutes(policy, out);
  out += policy.limits().empty() ? "limits: none\n" : "limits:\n";
  for (const Limit& limit : policy.limits()) {
    const Variant& usual = limit.variants[0];
    out += fmt::format("  {}: {}\n", limit.name, BoundInWords(limit, usual));
    out += fmt::format("    {}; {}; on {}{}{}{}\n", RateInWords(usual), PerWords(policy, limit),
                       CallsWords(policy, limit), EnforceWords(limit), MissingWords(limit.missing),
                       ConsistencyInWords(policy, limit));
    for (size_t i = 1; i < limit.variants.size(); ++i) {
      const Variant& variant = limit.variants[i];
      out += fmt::format("    when {}: {} ({})\n", ToString(variant.when, policy.attributes()),
                         BoundInWords(limit, variant), RateInWords(variant));
    }
  }
  for (const ConfigError& warning : policy.warnings()) {
    out += fmt::format("warning: {}\n", ToString(warning));
  }
  return out;
}

}  // namespace weir::policy
