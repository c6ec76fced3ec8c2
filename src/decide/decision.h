// Decision: one call on its way through Decide: which limits apply, what the store said of each,
// what the answer shows.
//
// Thread safety: none; one worker. Sized when a policy is taken, so that a decision allocates
// nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "decide/bound_policy.h"
#include "decide/engine.h"
#include "decide/verdict.h"
#include "store/shared_store.h"
#include "store/store.h"

namespace weir::decide {

struct Decision {
  // Charges, outcomes, verdicts and rows stand side by side: row i says where charge i came from
  // and goes to.
  struct Row {
    const BoundLimit* limit = nullptr;  // Null for ad-hoc rules.
    int variant = 0;
    const RateFigures* figures = nullptr;
    size_t verdict = 0;
  };

  void FitTo(size_t limits) {
    charges.resize(limits);
    outcomes.resize(limits);
    rows.resize(limits);
    verdicts.resize(limits);
  }
  void Clear() {
    charge_count = verdict_count = 0;
    denied_missing = has_parallel = false;
  }

  std::vector<store::Charge> charges;
  std::vector<store::Outcome> outcomes;
  std::vector<Row> rows;
  std::vector<LimitVerdict> verdicts;
  size_t charge_count = 0;
  size_t verdict_count = 0;
  bool denied_missing = false;  // An enforced limit refuses the call for want of an attribute.
  bool has_parallel = false;
  Verdict verdict;

  // What a decision that waits for a shared store must keep, since the call's own views, the
  // running policy and the worker's memory may change meanwhile. Unused by the embedded store.
  struct Waiting {
    std::shared_ptr<const BoundPolicy> bound;
    std::vector<store::SharedTerms> terms;
    std::vector<store::SharedOutcome> outcomes;
    Costs costs;
    DecideOptions options;
    ReservationId id;
    std::string client;
    std::string rule_name;
    core::MeterSpec rule_spec;
    RateFigures rule_figures;
  };
  std::unique_ptr<Waiting> waiting;
};

}  // namespace weir::decide
