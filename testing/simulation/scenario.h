// What a seed stands for: a limit, a mode, a fleet, its load, and what goes wrong when.
//
//   Scenario scenario = Scenario::FromSeed(42);
//   fmt::print("{}\n", scenario.Describe());
//
// Thread safety: plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/meter.h"
#include "store/lease/lease_book.h"

namespace weir::testing {

enum class FleetMode : uint8_t { kExact, kLeased, kLeasedFast, kLocalShare };

enum class FaultKind : uint8_t {
  kPartition,    // One node cannot reach the store.
  kStoreAway,    // The store answers nobody, and then goes on where it was.
  kStoreLoss,    // The same, and it has forgotten everything.
  kFailover,     // The same, and it has forgotten what was written in the last moments before.
  kPause,        // A node stands still; its clock goes on.
  kSuspend,      // A node stands still and its clock with it, for less than the margin.
  kLongSuspend,  // The same for longer than a lease lasts.
  kKill,         // A node is gone with what it held; another takes its place.
  kShutdown,     // A node gives back and goes; another takes its place.
  kRollout,      // A node gets the other definition of the limit, or goes back to the first.
};
inline constexpr int kFaultKinds = 10;

struct Fault {
  FaultKind kind = FaultKind::kPartition;
  int64_t at_ns = 0;
  int64_t lasts_ns = 0;
  int64_t lag_ns = 0;    // kFailover: how much is lost,
  int64_t ahead_us = 0;  // and how far the new master's clock is ahead of the first one's.
  int node = 0;
};

// One stretch of load, on all nodes.
struct Phase {
  int64_t at_ns = 0;
  int64_t lasts_ns = 0;
  int64_t gap_ns = 0;  // Between calls of a node; 0: idle.
  int burst = 0;       // Calls of each node at the very beginning, all in one instant.
};

struct Scenario {
  uint64_t seed = 0;
  FleetMode mode = FleetMode::kLeased;
  core::MeterSpec spec;   // token_bucket or fixed_window.
  core::MeterSpec other;  // What a rollout brings.
  int nodes = 3;
  int keys = 1;
  int64_t cost_max = 1;
  int64_t length_ns = 10'000'000'000;

  store::lease::LeaseBook::Options book;
  int64_t timeout_ns = 50'000'000;
  bool nodes_configured = false;  // store.nodes is set; else heartbeats tell.

  int64_t delay_ns = 500'000;  // One way, at most; half of it at least.
  double slow_share = 0;       // Messages that take up to slow_ns instead.
  int64_t slow_ns = 0;
  double loss = 0;    // Messages that never arrive.
  double undone = 0;  // Leased spends that another limit then denies.

  std::vector<Phase> phases;
  std::vector<Fault> faults;

  static Scenario FromSeed(uint64_t seed);
  // Several lines for a reader.
  std::string Describe() const;
};

std::string_view ModeName(FleetMode mode);
std::string_view FaultName(FaultKind kind);

}  // namespace weir::testing
