// Decision: one call on its way through Decide: which limits apply, what the store said of each,
// what the answer shows.
//
// Thread safety: none; one worker. Sized when a policy is taken, so that a decision allocates
// nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
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

  // What a call by descriptors has besides: a descriptor has parts, each with its share of a
  // charge, since two descriptors may meet on one counter, and a store takes a counter once.
  struct Descriptors {
    struct Part {
      size_t charge = 0;  // Its verdict stands at the same index.
      int64_t hits = 0;
      int64_t before = 0;  // Hits of earlier parts on the same counter.
    };
    struct Met {
      std::span<const int> limits;  // Of the pattern that matched.
      size_t parts_end = 0;         // Where its parts end; they begin where the last one's end.
      bool unlimited = false;
    };

    std::vector<Met> met;
    std::vector<Part> parts;
    std::vector<DescriptorStatus> statuses;
    std::vector<RateFigures> own_figures;  // Of rates that came with the call, by charge.
    size_t looks = 0;                      // Charges of no hits.
    bool used = false;
  };

  void FitTo(size_t limits) {
    charges.resize(limits);
    outcomes.resize(limits);
    rows.resize(limits);
    verdicts.resize(limits);
  }
  void Clear() {
    charge_count = verdict_count = 0;
    denied_missing = has_parallel = descriptors.used = false;
  }
  // Makes room for so many charges where FitTo left less; what is there already is of no account.
  void MakeRoom(size_t count) {
    if (charges.size() < count) FitTo(count);
    if (waiting && waiting->terms.size() < count) {
      waiting->terms.resize(count);
      waiting->outcomes.resize(count);
    }
    if (descriptors.own_figures.size() < count) descriptors.own_figures.resize(count);
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
  Descriptors descriptors;

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
