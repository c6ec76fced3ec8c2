// A worker's memory between decisions: sized when a policy is taken, so that a decision allocates
// nothing.
//
// Thread safety: none; one worker.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "decide/decision.h"
#include "decide/engine.h"
#include "decide/engine_impl.h"
#include "decide/shared_names.h"

namespace weir::decide {

// A rule that came with a call, compiled. Found again by its parameters, so that a caller who
// repeats a rule pays for one comparison.
struct CompiledRule {
  core::MeterSpec spec;
  const core::Meter* meter = nullptr;  // Null: the slot is free.
  RateFigures figures;
};

Settled SettledOf(const Reservation& held, const Costs& actual);

struct Worker::Scratch {
  static constexpr size_t kRules = 64;
  static constexpr size_t kSpareDecisions = 256;

  Decision decision;                             // Of Decide and DecideAdHoc: one at a time.
  std::vector<std::unique_ptr<Decision>> spare;  // Of Begin.
  SharedNames names;
  RandomIds ids;
  std::optional<identity::IdentityCache>
      identity_cache;  // Made when first asked for: a third of a MiB.
  std::array<CompiledRule, kRules> rules;
  uint32_t hot_turn = 0;
};

}  // namespace weir::decide
