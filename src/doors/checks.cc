#include "doors/checks.h"

#include "doors/check_api/ad_hoc_rule.h"

namespace weir::doors {
namespace {

constexpr std::string_view kRuleName = "ad-hoc";

decide::Costs CostsOf(const json::UnitAmounts& amounts) {
  return {.amount = amounts.amount, .given = amounts.given};
}

// The rule that came with the item, if its cost is one that rules count.
Result<core::MeterSpec> RuleOf(const json::CheckItem& item) {
  const Result<core::MeterSpec> spec = SpecOf(*item.rule);
  const uint8_t requests_only = static_cast<uint8_t>(1u << static_cast<unsigned>(Unit::kRequests));
  if (spec && item.cost.given != requests_only)
    return InvalidArgument("cost: a rule that comes with the call counts requests");
  return spec;
}

std::unexpected<Error> UnknownReservation() {
  return MakeError(ErrorCode::kNotFound, "reservation: unknown or expired");
}

}  // namespace

ReservationEnd SettleOf(std::string_view reservation, const json::UnitAmounts& actual) {
  ReservationEnd end = ReleaseOf(reservation);
  end.actual = CostsOf(actual);
  return end;
}

ReservationEnd ReleaseOf(std::string_view reservation) {
  ReservationEnd end;
  end.reservation = reservation;
  end.id = decide::ParseReservationId(reservation);
  return end;
}

Result<void> Checks::Describe(const json::CheckItem& item) {
  call_.Begin(worker_);
  for (const json::NameValue& attribute : item.attributes) {
    Result<void> set = call_.Set(attribute.name, attribute.value);
    if (!set) return set;
  }
  if (item.api_key) return call_.SetApiKey(*item.api_key);
  return {};
}

decide::DecideOptions Checks::OptionsOf(const json::CheckItem& item, bool for_headers) const {
  return {.door = door_,
          .missing = policy::Missing::kSkip,
          .peek = item.peek,
          .reserve_ttl_ns = item.reserve ? item.reserve_ttl.count() : 0,
          .next_unit = for_headers};
}

Result<const decide::Verdict*> Checks::Decide(const json::CheckItem& item, bool for_headers,
                                              core::Now now) {
  if (!item.error.empty()) return InvalidArgument(std::string(item.error));
  decide::DecideOptions options = OptionsOf(item, for_headers);
  if (item.rule) {
    const Result<core::MeterSpec> spec = RuleOf(item);
    if (!spec) return std::unexpected(spec.error());
    return worker_.DecideAdHoc({.key = item.key, .spec = *spec, .name = kRuleName},
                               item.cost[Unit::kRequests], options, now);
  }
  const Result<void> described = Describe(item);
  if (!described) return std::unexpected(described.error());
  options.client_hashed = call_.client_hashed();
  return worker_.Decide(call_.attributes(), CostsOf(item.cost), options, now);
}

Result<decide::DecisionPtr> Checks::Begin(const json::CheckItem& item, bool for_headers) {
  if (!item.error.empty()) return InvalidArgument(std::string(item.error));
  decide::DecideOptions options = OptionsOf(item, for_headers);
  if (item.rule) {
    const Result<core::MeterSpec> spec = RuleOf(item);
    if (!spec) return std::unexpected(spec.error());
    return worker_.BeginAdHoc({.key = item.key, .spec = *spec, .name = kRuleName},
                              item.cost[Unit::kRequests], options);
  }
  const Result<void> described = Describe(item);
  if (!described) return std::unexpected(described.error());
  options.client_hashed = call_.client_hashed();
  return worker_.Begin(call_.attributes(), CostsOf(item.cost), options);
}

Result<decide::Settled> Checks::Settle(const ReservationEnd& end, core::Now now) {
  if (!end.id) return UnknownReservation();
  return end.actual ? worker_.Settle(*end.id, *end.actual, now) : worker_.Release(*end.id, now);
}

Task<Result<decide::Settled>> Checks::SettleLater(const ReservationEnd& end, core::Now now) {
  if (!end.id) co_return UnknownReservation();
  if (!end.actual) co_return co_await worker_.ReleaseShared(*end.id, now);
  co_return co_await worker_.SettleShared(*end.id, *end.actual, now);
}

}  // namespace weir::doors
