#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "testing/simulation/bound_check.h"
#include "testing/simulation/fleet.h"

namespace weir::testing {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSec = 1000 * kMs;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeeds = 300;
#else
constexpr uint64_t kSeeds = 5000;
#endif

uint64_t SeedsToRun() {
  const char* text = std::getenv("WEIR_SIMULATION_SEEDS");
  return text == nullptr ? kSeeds : std::strtoull(text, nullptr, 10);
}

TEST(Simulation, EveryModeKeepsItsBoundOverThousandsOfSeeds) {
  Report sum;
  for (uint64_t seed = 1; seed <= SeedsToRun(); ++seed) {
    const Report report = Fleet(Scenario::FromSeed(seed)).Run();
    ASSERT_FALSE(report.violation) << *report.violation << "\n"
                                   << "replay with: make simulate SEED=" << seed;
    sum.leased_calls += report.leased_calls;
    sum.local_calls += report.local_calls;
    sum.trips += report.trips;
  }
  // The bounds held because there was something to hold, not because nothing was admitted.
  EXPECT_GT(sum.leased_calls, 100 * static_cast<int64_t>(SeedsToRun()));
  EXPECT_GT(sum.local_calls, 10 * static_cast<int64_t>(SeedsToRun()));
}

TEST(Simulation, ASeedIsOneHistory) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Report one = Fleet(Scenario::FromSeed(seed)).Run();
    const Report two = Fleet(Scenario::FromSeed(seed)).Run();
    EXPECT_EQ(one.calls, two.calls);
    EXPECT_EQ(one.admitted_units, two.admitted_units);
    EXPECT_EQ(one.leased_calls, two.leased_calls);
    EXPECT_EQ(one.trips, two.trips);
  }
}

// Four nodes and one hot key, nothing goes wrong.
Scenario Calm(FleetMode mode, double load) {
  Scenario scenario{.mode = mode};
  scenario.spec.rate = {.units = 4000, .period = std::chrono::seconds(1), .burst = 4000};
  scenario.other = scenario.spec;
  scenario.nodes = 4;
  scenario.length_ns = 10 * kSec;
  const double calls_per_ns = load * 4000 / 1e9 / scenario.nodes;
  scenario.phases.push_back({.at_ns = 0,
                             .lasts_ns = scenario.length_ns,
                             .gap_ns = static_cast<int64_t>(1 / calls_per_ns)});
  return scenario;
}

TEST(Simulation, AHotLeasedKeySeldomAsksTheStore) {
  for (const FleetMode mode : {FleetMode::kLeased, FleetMode::kLeasedFast}) {
    const Report report = Fleet(Calm(mode, 0.8)).Run();
    EXPECT_FALSE(report.violation);
    EXPECT_EQ(report.admitted_units, report.calls);  // Below the limit nobody is denied.
    EXPECT_LE(report.trips * 50, report.calls) << report.trips << " of " << report.calls;
  }
}

TEST(Simulation, ALeasedKeyUnderTwiceItsLimitAdmitsTheLimit) {
  for (const FleetMode mode : {FleetMode::kLeased, FleetMode::kLeasedFast, FleetMode::kExact}) {
    const Report report = Fleet(Calm(mode, 2)).Run();
    EXPECT_FALSE(report.violation);
    EXPECT_GE(report.admitted_units, 40'000) << ModeName(mode);  // The rate, over ten seconds.
    EXPECT_LE(report.admitted_units, 44'000 + (mode == FleetMode::kLeasedFast ? 2000 : 0));
  }
}

TEST(BoundCheck, SeesTheFirstUnitTooMany) {
  BoundCheck check({.capacity = 10, .units = 2, .period_ns = 100});
  EXPECT_FALSE(check.Admit(0, 10));
  EXPECT_FALSE(check.Admit(50, 1));
  EXPECT_TRUE(check.Admit(50, 1));
}

TEST(BoundCheck, SeesTheIntervalThatBeginsLater) {
  BoundCheck check({.capacity = 10, .units = 1, .period_ns = 100});
  EXPECT_FALSE(check.Admit(0, 1));
  EXPECT_FALSE(check.Admit(10'000, 10));
  const auto fault = check.Admit(10'099, 1);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->from_ns, 10'000);
  EXPECT_EQ(fault->to_ns, 10'099);
  EXPECT_EQ(fault->admitted, 11);
  EXPECT_NEAR(fault->allowed, 10.99, 1e-9);
}

TEST(BoundCheck, AFaultCountsForTheIntervalsThatHoldIt) {
  const BoundCheck::Bound bound{.capacity = 10, .units = 1, .period_ns = 100, .grace_ns = 50};
  BoundCheck check(bound);
  check.Allow(1000, 5);
  EXPECT_FALSE(check.Admit(999, 10));
  EXPECT_FALSE(check.Admit(1000, 5));
  EXPECT_TRUE(check.Admit(1000, 1));
  BoundCheck late(bound);
  late.Allow(1000, 5);
  EXPECT_FALSE(late.Admit(1050, 15));  // Within the grace.
  BoundCheck too_late(bound);
  too_late.Allow(1000, 5);
  EXPECT_TRUE(too_late.Admit(1051, 15));
}

TEST(BoundCheck, FromTheStartLooksAtTheWholeOnly) {
  BoundCheck check({.capacity = 10, .units = 1, .period_ns = 100, .from_start = true});
  EXPECT_FALSE(check.Admit(1000, 20));  // Too many for a bucket, not for ten periods.
  EXPECT_TRUE(check.Admit(1000, 1));
}

}  // namespace
}  // namespace weir::testing
