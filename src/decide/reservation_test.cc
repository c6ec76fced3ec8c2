#include <chrono>

#include "gtest/gtest.h"
#include "testing/simulated_engine.h"

namespace weir::decide {
namespace {

using std::chrono::seconds;

constexpr int64_t kMinuteNs = 60'000'000'000;

Costs Tokens(int64_t n) {
  Costs costs;
  costs.Set(Unit::kTokens, n);
  return costs;
}

ReservationId Reserve(SimulatedEngine& weir, const Costs& costs, int64_t ttl_ns = kMinuteNs) {
  const Verdict& verdict = weir.Decide({{"client", "x"}}, costs, {.reserve_ttl_ns = ttl_ns});
  EXPECT_TRUE(verdict.allowed);
  return verdict.reservation.value();
}

int64_t Remaining(SimulatedEngine& weir) {
  return weir.worker->State(weir.Call({{"client", "x"}}), weir.now())[0].step.remaining;
}

TEST(ReservationTest, SettleGivesTheDifferenceBackOnce) {
  SimulatedEngine weir("limits: [{name: t, per: [client], rate: 1000 tokens/hour}]");
  const ReservationId id = Reserve(weir, Tokens(400));
  EXPECT_EQ(Remaining(weir), 600);
  const auto first = weir.worker->Settle(id, Tokens(46), weir.now());
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->charged[static_cast<size_t>(Unit::kTokens)], 46);
  EXPECT_EQ(Remaining(weir), 954);
  EXPECT_EQ(*weir.worker->Settle(id, Tokens(400), weir.now()),
            *first);  // A repeat answers the same.
  EXPECT_EQ(*weir.worker->Release(id, weir.now()), *first);
  EXPECT_EQ(Remaining(weir), 954);
}

TEST(ReservationTest, OverrunBecomesDebt) {
  SimulatedEngine weir("limits: [{name: t, per: [client], rate: 100 tokens/min}]");
  const ReservationId id = Reserve(weir, Tokens(100));
  ASSERT_TRUE(weir.worker->Settle(id, Tokens(150), weir.now()).has_value());
  const Verdict& denied = weir.Decide({{"client", "x"}}, Tokens(1));
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.limits[0].remaining, 0);
  EXPECT_EQ(denied.retry_after_ns, 30'600'000'000);
}

TEST(ReservationTest, SettleChargesAUnitThatWasOnlyLookedAt) {
  SimulatedEngine weir("limits: [{name: t, per: [client], rate: 1000 tokens/hour}]");
  const ReservationId id = Reserve(weir, Costs::Requests());
  EXPECT_EQ(Remaining(weir), 1000);
  ASSERT_TRUE(weir.worker->Settle(id, Tokens(46), weir.now()).has_value());
  EXPECT_EQ(Remaining(weir), 954);
}

TEST(ReservationTest, Case17_AReleasedUnitCanBeTakenAgainAndNoMore) {
  SimulatedEngine weir("limits: [{name: r, per: [client], rate: 10/day}]");
  EXPECT_EQ(weir.Allowed(9, {{"client", "x"}}), 9);
  const ReservationId id = Reserve(weir, Costs::Requests());
  EXPECT_FALSE(weir.Decide({{"client", "x"}}).allowed);
  ASSERT_TRUE(weir.worker->Release(id, weir.now()).has_value());
  EXPECT_TRUE(weir.Decide({{"client", "x"}}).allowed);
  EXPECT_FALSE(weir.Decide({{"client", "x"}}).allowed);
}

TEST(ReservationTest, Case17_ARefundNeverLiftsAboveTheCapacity) {
  SimulatedEngine weir("limits: [{name: r, per: [client], rate: 10/s}]");
  const ReservationId id = Reserve(weir, Costs::Requests(5));
  weir.Advance(seconds(30));
  ASSERT_TRUE(weir.worker->Release(id, weir.now()).has_value());
  EXPECT_EQ(Remaining(weir), 10);
  EXPECT_EQ(weir.Allowed(12, {{"client", "x"}}), 10);
}

TEST(ReservationTest, Case85_WhatTimeRefilledIsNotRefundedAgain) {
  SimulatedEngine weir("limits: [{name: t, per: [client], rate: 1000 tokens/min}]");
  const ReservationId id = Reserve(weir, Tokens(1000), 10 * kMinuteNs);
  weir.Advance(seconds(60));
  EXPECT_TRUE(weir.Decide({{"client", "x"}}, Tokens(1000)).allowed);
  ASSERT_TRUE(weir.worker->Settle(id, Tokens(46), weir.now()).has_value());
  EXPECT_EQ(Remaining(weir), 0);
}

TEST(ReservationTest, ParallelSlotsAreFreedByEverySettleAndByExpiry) {
  SimulatedEngine weir("limits: [{name: p, per: [client], parallel: 1}]");
  const DecideOptions hold{.reserve_ttl_ns = kMinuteNs, .reserve_parallel_only = true};
  const ReservationId id =
      weir.Decide({{"client", "x"}}, Costs::Requests(), hold).reservation.value();
  EXPECT_FALSE(weir.Decide({{"client", "x"}}, Costs::Requests(), hold).allowed);
  ASSERT_TRUE(weir.worker->Settle(id, Costs{}, weir.now()).has_value());
  EXPECT_TRUE(weir.Decide({{"client", "x"}}, Costs::Requests(), hold).allowed);
  weir.Advance(seconds(61));
  const ReservationId third =
      weir.Decide({{"client", "x"}}, Costs::Requests(), hold).reservation.value();
  weir.Advance(seconds(50));
  EXPECT_TRUE(weir.worker->Renew(third, kMinuteNs, weir.now()));
  weir.Advance(seconds(50));
  EXPECT_FALSE(weir.Decide({{"client", "x"}}).allowed);
  weir.Advance(seconds(11));
  EXPECT_FALSE(weir.worker->Renew(third, kMinuteNs, weir.now()));
  EXPECT_TRUE(weir.Decide({{"client", "x"}}).allowed);
}

TEST(ReservationTest, WithoutAParallelLimitTheGatewayKeepsNoReservation) {
  SimulatedEngine weir("limits: [{name: r, per: [client], rate: 10/min}]");
  const Verdict& verdict =
      weir.Decide({{"client", "x"}}, Costs::Requests(),
                  {.reserve_ttl_ns = kMinuteNs, .reserve_parallel_only = true});
  EXPECT_TRUE(verdict.allowed);
  EXPECT_FALSE(verdict.reservation.has_value());
}

TEST(ReservationTest, ExpiredCostStandsAsCharged) {
  SimulatedEngine weir("limits: [{name: t, per: [client], rate: 1000 tokens/day}]");
  const ReservationId id = Reserve(weir, Tokens(400), 1'000'000'000);
  weir.Advance(seconds(1));
  EXPECT_EQ(weir.worker->Settle(id, Tokens(0), weir.now()).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(Remaining(weir), 600);
}

TEST(ReservationTest, TooManyOpenOnesAreRefusedAndCostNothing) {
  SimulatedEngine weir("limits: [{name: r, per: [client], rate: 100000/day}]", 1,
                       /*max_reservations=*/64);
  const policy::Attributes call = weir.Call({{"client", "x"}});
  int64_t reserved = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto made =
        weir.worker->Decide(call, Costs::Requests(), {.reserve_ttl_ns = kMinuteNs}, weir.now());
    if (made)
      ++reserved;
    else
      EXPECT_EQ(made.error().code, ErrorCode::kResourceExhausted);
  }
  EXPECT_LE(reserved, 64);
  EXPECT_EQ(Remaining(weir), 100000 - reserved);
}

TEST(ReservationIdTest, TextRoundTrips) {
  RandomIds ids;
  const ReservationId id = ids.Next();
  const auto text = ToText(id);
  EXPECT_EQ(ParseReservationId({text.data(), text.size()}), id);
  EXPECT_NE(ids.Next(), id);
  EXPECT_EQ(ParseReservationId("x"), std::nullopt);
  EXPECT_EQ(ParseReservationId(std::string(32, 'G')), std::nullopt);
}

}  // namespace
}  // namespace weir::decide
