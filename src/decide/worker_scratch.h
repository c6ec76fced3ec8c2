// A worker's memory between decisions: sized when a policy is taken, so that a decision allocates
// nothing.
//
// Thread safety: none; one worker.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "decide/engine.h"
#include "decide/engine_impl.h"

namespace weir::decide {

// A rule that came with a call, compiled. Found again by its parameters, so that a caller who
// repeats a rule pays for one comparison.
struct CompiledRule {
  core::MeterSpec spec;
  const core::Meter* meter = nullptr;  // Null: the slot is free.
  RateFigures figures;
};

struct Worker::Scratch {
  // Charges, outcomes, verdicts and rows stand side by side: row i says where charge i came from
  // and goes to.
  struct Row {
    const BoundLimit* limit = nullptr;  // Null for ad-hoc rules.
    int variant = 0;
    const RateFigures* figures = nullptr;
    size_t verdict = 0;
  };
  static constexpr size_t kRules = 64;

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
  RandomIds ids;
  std::optional<identity::IdentityCache>
      identity_cache;  // Made when first asked for: a third of a MiB.
  std::array<CompiledRule, kRules> rules;
  uint32_t hot_turn = 0;
};

}  // namespace weir::decide
