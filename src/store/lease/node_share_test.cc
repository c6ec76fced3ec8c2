#include "store/lease/node_share.h"

#include <gtest/gtest.h>

#include <chrono>

#include "core/step.h"
#include "store/memory/memory_store.h"

namespace weir::store::lease {
namespace {

using std::chrono::seconds;

core::MeterSpec Bucket(int64_t units, seconds period, int64_t burst) {
  return {.rate = {.units = units, .period = period, .burst = burst}};
}

// A node's decision by its share, as a server makes it.
bool Decide(MemoryStore* store, const NodeShare& share, int64_t cost, int64_t now_ns) {
  const NodeShare::Parts parts = share.Split(cost);
  if (!parts.possible) return false;
  const core::Meter* meter = *store->Intern(share.spec());
  const Charge charge{.meter = meter, .key = {1, 2}, .cost = parts.charge};
  Outcome outcome;
  const core::Now now{.mono_ns = now_ns};
  if (!store->Decide({&charge, 1}, {&outcome, 1}, now, Mode::kCharge)) return false;
  if (parts.debt > 0) {
    store->Settle(*meter, charge.key, outcome.receipt, parts.charge, cost, now);
  }
  return true;
}

TEST(NodeShare, Case82_FiveNodesShareThreePerSecond) {
  for (const core::MeterSpec& limit :
       {Bucket(3, seconds(1), 3),
        core::MeterSpec{.algorithm = Algorithm::kFixedWindow, .rate = {.units = 3}}}) {
    int64_t admitted = 0;
    for (int node = 0; node < 5; ++node) {
      MemoryStore store({.max_keys = 16});
      const auto share = NodeShare::Of(limit, 5);
      ASSERT_TRUE(share);
      int64_t here = 0;
      for (int64_t poll = 0; poll < 100; ++poll) {
        here += Decide(&store, *share, 1, poll * 100'000'000) ? 1 : 0;
      }
      EXPECT_EQ(here, 6);
      admitted += here;
    }
    EXPECT_EQ(admitted, 30);
  }
}

TEST(NodeShare, IsBurstAndRateOverTheNodes) {
  const auto share = NodeShare::Of(Bucket(100, seconds(60), 50), 4);
  ASSERT_TRUE(share);
  EXPECT_EQ(share->spec().rate, (Rate{.units = 100, .period = seconds(240), .burst = 12}));
  EXPECT_EQ(share->Split(12), (NodeShare::Parts{.charge = 12, .debt = 0}));
  EXPECT_EQ(share->Split(50), (NodeShare::Parts{.charge = 12, .debt = 38}));
  EXPECT_EQ(share->Split(51), (NodeShare::Parts{.possible = false}));
  EXPECT_EQ(share->Split(0), (NodeShare::Parts{}));
}

TEST(NodeShare, ACostAboveTheSharePassesOnAFullShareAndLeavesDebt) {
  // 10/s and burst 10 over 5 nodes: 2/s and burst 2.
  MemoryStore store({.max_keys = 16});
  const auto share = NodeShare::Of(Bucket(10, seconds(1), 10), 5);
  ASSERT_TRUE(share);
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_FALSE(Decide(&store, *share, 11, 0));
  EXPECT_TRUE(Decide(&store, *share, 1, 0));
  EXPECT_FALSE(Decide(&store, *share, 8, 0));  // The share is not full.
  EXPECT_TRUE(Decide(&store, *share, 8, kSecond / 2));
  // 8 used of 2: 6 of debt, and room for 1 after 3.5 s.
  EXPECT_FALSE(Decide(&store, *share, 1, 4 * kSecond - 1));
  EXPECT_TRUE(Decide(&store, *share, 1, 4 * kSecond));
}

TEST(NodeShare, ALimitOf0DeniesAll) {
  MemoryStore store({.max_keys = 16});
  const auto share = NodeShare::Of(Bucket(0, seconds(1), 1), 5);
  ASSERT_TRUE(share);
  EXPECT_FALSE(Decide(&store, *share, 1, 0));
}

TEST(NodeShare, RefusesWhatCannotBeShared) {
  EXPECT_FALSE(NodeShare::Of({.algorithm = Algorithm::kParallel, .rate = {.units = 5}}, 2));
  EXPECT_FALSE(NodeShare::Of(Bucket(1, seconds(int64_t{86400} * 365 * 30), 4), 1000));
}

TEST(NodeShare, ACalendarMonthCountsAsItsLongest) {
  const auto share = NodeShare::Of({.algorithm = Algorithm::kFixedWindow,
                                    .rate = {.units = 1000},
                                    .alignment = core::Alignment::kMonth},
                                   2);
  ASSERT_TRUE(share);
  EXPECT_EQ(share->spec().rate.period, std::chrono::hours(2 * (31 * 24 + 1)));
  EXPECT_EQ(share->spec().rate.burst, 500);
}

TEST(NodeRegistry, CountsWhoWasThereLately) {
  NodeRegistry registry;
  EXPECT_EQ(registry.Beat(1, 0, 3'000'000), 1);
  EXPECT_EQ(registry.Beat(2, 1'000'000, 3'000'000), 2);
  EXPECT_EQ(registry.Beat(1, 2'000'000, 3'000'000), 2);
  EXPECT_EQ(registry.Beat(3, 3'999'999, 3'000'000), 3);
  EXPECT_EQ(registry.Beat(3, 4'000'000, 3'000'000), 2);  // Node 2 has not been there for 3 s.
  registry.Leave(1);
  EXPECT_EQ(registry.Beat(3, 4'000'001, 3'000'000), 1);
  EXPECT_EQ(registry.Beat(3, 9'000'000, 3'000'000), 1);
}

TEST(NodesSeen, IsWhatIsConfiguredElseTheMostOfTheLastAnswers) {
  NodesSeen seen;
  EXPECT_EQ(seen.count(), 1);
  seen.Answered(5);
  EXPECT_EQ(seen.count(), 5);
  for (const int64_t nodes : {1, 2, 3}) {  // The store has lost its list.
    seen.Answered(nodes);
    EXPECT_EQ(seen.count(), 5);
  }
  seen.Answered(4);  // One node is gone for good.
  EXPECT_EQ(seen.count(), 4);
  for (int i = 0; i < 4; ++i) seen.Answered(0);
  EXPECT_EQ(seen.count(), 1);
  NodesSeen fixed(3);
  fixed.Answered(5);
  EXPECT_EQ(fixed.count(), 3);
}

}  // namespace
}  // namespace weir::store::lease
