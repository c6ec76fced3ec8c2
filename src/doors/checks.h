// Checks: the calls that programs ask about, from a read item to a verdict, and the ends of their
// reservations; for every door that speaks of attributes, costs and reservations.
//
//   Checks checks(worker, metrics::Door::kResp);                   // one per loop and door
//   Result<const decide::Verdict*> decided = checks.Decide(item, /*for_headers=*/false, now);
//   Result<decide::Settled> settled = checks.Settle(ReleaseOf(id), now);
//
// Thread safety: one loop; it uses that loop's worker. Ownership: borrows the worker.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/task.h"
#include "decide/engine.h"
#include "doors/call_attributes.h"
#include "wire/json/check_request.h"

namespace weir::doors {

// A reservation that is to end: settled, or released when no amounts are given.
struct ReservationEnd {
  std::string reservation;
  std::optional<decide::ReservationId> id;  // None: the text is no id.
  std::optional<decide::Costs> actual;
};
ReservationEnd SettleOf(std::string_view reservation, const json::UnitAmounts& actual);
ReservationEnd ReleaseOf(std::string_view reservation);

class Checks {
 public:
  Checks(decide::Worker& worker, metrics::Door door) : worker_(worker), door_(door) {}

  // kInvalidArgument names the field. `for_headers`: with what the RateLimit field needs.
  Result<const decide::Verdict*> Decide(const json::CheckItem& item, bool for_headers,
                                        core::Now now);
  // kNotFound: unknown or expired.
  Result<decide::Settled> Settle(const ReservationEnd& end, core::Now now);

  // The same over a shared store. What Begin needs of the item it has when it returns.
  Result<decide::DecisionPtr> Begin(const json::CheckItem& item, bool for_headers);
  Task<Result<decide::Settled>> SettleLater(const ReservationEnd& end, core::Now now);

 private:
  // The attributes of an item into call_.
  Result<void> Describe(const json::CheckItem& item);
  decide::DecideOptions OptionsOf(const json::CheckItem& item, bool for_headers) const;

  decide::Worker& worker_;
  const metrics::Door door_;
  CallAttributes call_;
};

}  // namespace weir::doors
