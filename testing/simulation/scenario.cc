#include "testing/simulation/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "testing/simulation/random.h"

namespace weir::testing {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSec = 1000 * kMs;

core::MeterSpec PickSpec(Random* random, FleetMode mode) {
  core::MeterSpec spec;
  const bool leased = mode == FleetMode::kLeased || mode == FleetMode::kLeasedFast;
  spec.algorithm =
      leased && random->Chance(0.25) ? Algorithm::kFixedWindow : Algorithm::kTokenBucket;
  constexpr int64_t kPeriods[] = {kSec, kSec, 3 * kSec, 700 * kMs, 60 * kSec};
  spec.rate.period = std::chrono::nanoseconds(kPeriods[random->Between(0, 4)]);
  const double seconds = static_cast<double>(spec.rate.period.count()) / 1e9;
  const int64_t per_second = random->BetweenByScale(5, 800);
  spec.rate.units =
      std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(per_second) * seconds));
  if (spec.algorithm == Algorithm::kTokenBucket) {
    spec.rate.burst = std::max<int64_t>(
        1, random->BetweenByScale(random->Chance(0.3) ? 2 : 50, 100 + 2 * per_second));
  }
  return spec;
}

void PickNetwork(Random* random, Scenario* scenario) {
  scenario->delay_ns = random->BetweenByScale(100'000, 5 * kMs);
  if (random->Chance(0.5)) return;
  scenario->loss = random->Chance(0.5) ? random->Share() * 0.2 : 0;
  scenario->slow_share = random->Chance(0.7) ? random->Share() * 0.3 : 0;
  scenario->slow_ns = random->BetweenByScale(10 * kMs, 3 * kSec);
}

void PickLoad(Random* random, Scenario* scenario) {
  const double per_ns = static_cast<double>(scenario->spec.rate.units) /
                        static_cast<double>(scenario->spec.rate.period.count());
  const double mean_cost = static_cast<double>(scenario->cost_max + 1) / 2;
  int64_t at_ns = 200 * kMs;
  while (at_ns < scenario->length_ns) {
    Phase phase{.at_ns = at_ns, .lasts_ns = random->BetweenByScale(50 * kMs, 4 * kSec)};
    const int kind = static_cast<int>(random->Between(0, 4));
    if (kind >= 2) {
      const double load = 0.2 + 3 * random->Share();
      const double calls_per_ns = load * per_ns / mean_cost / scenario->nodes;
      phase.gap_ns = std::max<int64_t>(2 * kMs, static_cast<int64_t>(1 / calls_per_ns));
    }
    if (kind % 2 == 1) phase.burst = static_cast<int>(random->BetweenByScale(2, 120));
    scenario->phases.push_back(phase);
    at_ns += phase.lasts_ns;
  }
}

bool Applies(FaultKind kind, FleetMode mode) {
  const bool leased = mode == FleetMode::kLeased || mode == FleetMode::kLeasedFast;
  return leased || (kind != FaultKind::kLongSuspend && kind != FaultKind::kRollout &&
                    kind != FaultKind::kSuspend && kind != FaultKind::kShutdown);
}

// A rush of calls when a fault ends, or soon after: what was counted wrongly shows when everything
// is asked for at once.
void PickAftermath(Random* random, const Fault& fault, Scenario* scenario) {
  const bool lasts = fault.kind != FaultKind::kKill && fault.kind != FaultKind::kShutdown &&
                     fault.kind != FaultKind::kRollout;
  Phase rush{.at_ns = fault.at_ns + (lasts ? fault.lasts_ns : 0), .lasts_ns = 100 * kMs};
  if (!lasts || random->Chance(0.3)) rush.at_ns += random->BetweenByScale(kMs, 500 * kMs);
  const int64_t capacity = std::max(scenario->spec.rate.burst, scenario->spec.rate.units);
  rush.burst = static_cast<int>(random->BetweenByScale(5, 10 + 2 * capacity / scenario->nodes));
  rush.burst = std::min(rush.burst, 500);
  if (random->Chance(0.5)) rush.gap_ns = 2 * kMs;
  scenario->phases.push_back(rush);
}

void PickFaults(Random* random, Scenario* scenario) {
  if (random->Chance(0.15)) return;  // A calm day.
  // A few kinds at a time, so that their combinations are met and a trace stays readable.
  bool chosen[kFaultKinds] = {};
  for (int i = static_cast<int>(random->Between(1, 3)); i > 0; --i) {
    chosen[random->Between(0, kFaultKinds - 1)] = true;
  }
  int suspends = 0;
  for (int64_t at_ns = random->Between(0, kSec); at_ns < scenario->length_ns;
       at_ns += random->BetweenByScale(20 * kMs, 3 * kSec)) {
    Fault fault{.kind = static_cast<FaultKind>(random->Between(0, kFaultKinds - 1)),
                .at_ns = at_ns,
                .lasts_ns = random->BetweenByScale(kMs, 3 * kSec),
                .lag_ns = random->BetweenByScale(kMs, kSec),
                .node = static_cast<int>(random->Between(0, scenario->nodes - 1))};
    if (!chosen[static_cast<int>(fault.kind)] || !Applies(fault.kind, scenario->mode)) continue;
    if (fault.kind == FaultKind::kFailover && scenario->spec.algorithm == Algorithm::kTokenBucket) {
      // Ahead by what the margin pays for; behind by anything.
      fault.ahead_us = random->Chance(0.7) ? random->Between(0, scenario->book.margin_ns / 4000)
                                           : random->Between(-3'000'000, 0);
    }
    if (fault.kind == FaultKind::kSuspend) {
      // The margin is for all of them that fall into one term.
      if (++suspends > 3) continue;
      fault.lasts_ns = random->BetweenByScale(kMs, scenario->book.margin_ns / 4);
    } else if (fault.kind == FaultKind::kLongSuspend) {
      fault.lasts_ns = scenario->book.term_ns + random->BetweenByScale(kMs, 3 * kSec);
    }
    scenario->faults.push_back(fault);
    if (random->Chance(0.6)) PickAftermath(random, fault, scenario);
  }
}

}  // namespace

std::string_view ModeName(FleetMode mode) {
  constexpr std::string_view kNames[] = {"exact", "leased", "leased_fast", "local_share"};
  return kNames[static_cast<int>(mode)];
}

std::string_view FaultName(FaultKind kind) {
  constexpr std::string_view kNames[] = {"partition", "store away", "store loss",   "failover",
                                         "pause",     "suspend",    "long suspend", "kill",
                                         "shutdown",  "rollout"};
  return kNames[static_cast<int>(kind)];
}

Scenario Scenario::FromSeed(uint64_t seed) {
  Random random(seed);
  Scenario scenario{.seed = seed};
  constexpr FleetMode kModes[] = {FleetMode::kLeased, FleetMode::kLeased, FleetMode::kLeasedFast,
                                  FleetMode::kExact, FleetMode::kLocalShare};
  scenario.mode = kModes[random.Between(0, 4)];
  scenario.spec = PickSpec(&random, scenario.mode);
  scenario.other = scenario.spec;
  scenario.other.rate.units =
      std::max<int64_t>(1, scenario.spec.rate.units * random.Between(1, 8) / 4);
  if (scenario.spec.algorithm == Algorithm::kTokenBucket) {
    scenario.other.rate.burst =
        std::max<int64_t>(1, scenario.spec.rate.burst * random.Between(1, 8) / 4);
  }
  scenario.nodes = static_cast<int>(random.BetweenByScale(1, 7));
  scenario.keys = random.Chance(0.2) ? static_cast<int>(random.Between(2, 20)) : 1;
  const int64_t capacity = std::max(scenario.spec.rate.burst, int64_t{1});
  scenario.cost_max =
      random.Chance(0.7) ? 1 : random.BetweenByScale(1, random.Chance(0.5) ? capacity + 2 : 5);
  scenario.length_ns = random.Between(6, 14) * kSec;

  scenario.book.keys = 8;
  scenario.book.term_ns = random.BetweenByScale(300 * kMs, 3 * kSec);
  scenario.book.margin_ns = scenario.book.term_ns / random.Between(5, 20);
  scenario.book.horizon_ns = scenario.book.term_ns / random.Between(1, 3);
  scenario.book.patience_ns = random.BetweenByScale(20 * kMs, 300 * kMs);
  scenario.timeout_ns = random.BetweenByScale(5 * kMs, 100 * kMs);
  scenario.nodes_configured = random.Chance(0.5);
  scenario.undone = random.Chance(0.3) ? 0.1 : 0;
  PickNetwork(&random, &scenario);
  PickLoad(&random, &scenario);
  PickFaults(&random, &scenario);
  return scenario;
}

std::string Scenario::Describe() const {
  std::string text = fmt::format(
      "seed {}: {}, {}, {} per {} ms, burst {}, {} nodes, {} keys, costs to {}, {} s\n"
      "lease term {} ms, margin {} ms, horizon {} ms, patience {} ms; timeout {} ms\n"
      "network {} us, slow {:.0f} % to {} ms, loss {:.0f} %\n",
      seed, ModeName(mode), AlgorithmName(spec.algorithm), spec.rate.units,
      spec.rate.period.count() / kMs, spec.rate.burst, nodes, keys, cost_max, length_ns / kSec,
      book.term_ns / kMs, book.margin_ns / kMs, book.horizon_ns / kMs, book.patience_ns / kMs,
      timeout_ns / kMs, delay_ns / 1000, slow_share * 100, slow_ns / kMs, loss * 100);
  for (const Fault& fault : faults) {
    text += fmt::format("{:10.6f} s: {} of node {} for {} ms (lag {} ms, clock ahead {} us)\n",
                        static_cast<double>(fault.at_ns) / 1e9, FaultName(fault.kind), fault.node,
                        fault.lasts_ns / kMs, fault.lag_ns / kMs, fault.ahead_us);
  }
  return text;
}

}  // namespace weir::testing
