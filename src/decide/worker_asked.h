// What a decision asks of a shared store, and on which terms.
//
//   const Asked asked(decision, now);
//   co_await shared.Decide(asked.charges, asked.terms, asked.outcomes, now, asked.mode);
//
// Thread safety: none; one worker. Views into a Decision, which must outlive them.
#pragma once

#include <span>

#include "decide/decision.h"
#include "store/shared_store.h"

namespace weir::decide {

inline store::Consistency ConsistencyOf(policy::Consistency consistency) {
  return consistency == policy::Consistency::kLocal ? store::Consistency::kLocal
                                                    : store::Consistency::kShared;
}

inline store::OnFailure OnFailureOf(policy::OnFailure on_failure) {
  switch (on_failure) {
    case policy::OnFailure::kOpen:
      return store::OnFailure::kOpen;
    case policy::OnFailure::kClosed:
      return store::OnFailure::kClosed;
    case policy::OnFailure::kLocalShare:
      break;
  }
  return store::OnFailure::kLocalShare;
}

// The terms of a limit's charges, but for leases.
inline store::SharedTerms TermsOf(const policy::Limit& limit, const policy::StoreConfig& store,
                                  uint64_t tag) {
  return {.tag = tag,
          .consistency = ConsistencyOf(limit.consistency),
          .on_failure = OnFailureOf(limit.on_failure.value_or(store.on_failure))};
}

struct Asked {
  Asked(Decision& decision, core::Now at)
      : charges(decision.charges.data(), decision.charge_count),
        terms(decision.waiting->terms.data(), decision.charge_count),
        outcomes(decision.waiting->outcomes.data(), decision.charge_count),
        now(at),
        mode(decision.waiting->options.peek || decision.denied_missing ? store::Mode::kPeek
                                                                       : store::Mode::kReserve) {}
  std::span<const store::Charge> charges;
  std::span<const store::SharedTerms> terms;
  std::span<store::SharedOutcome> outcomes;
  core::Now now;
  store::Mode mode;
};

}  // namespace weir::decide
