#include "store/lease/lease_counter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace weir::store::lease {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kSec = 1'000'000;  // The store's clock counts microseconds.
constexpr int64_t kNow = 1'796'068'800 * kSec;

LeaseDefinition Bucket(int64_t units, std::chrono::nanoseconds period, int64_t burst) {
  return {.spec = {.rate = {.units = units, .period = period, .burst = burst}}, .per = "client"};
}
LeaseTerms Reserved(int64_t units, std::chrono::nanoseconds period, int64_t burst) {
  return LeaseTerms::Compile(Bucket(units, period, burst), LeaseKind::kReserved).value();
}
LeaseTerms Window(int64_t units, std::chrono::nanoseconds period) {
  return LeaseTerms::Compile({.spec = {.algorithm = Algorithm::kFixedWindow,
                                       .rate = {.units = units, .period = period}}},
                             LeaseKind::kReserved)
      .value();
}

// 100 units per second, one tick a microsecond.
const LeaseTerms kHundred = Reserved(100, seconds(1), 100);

RefillRequest First(uint64_t holder, int64_t want = 40, int64_t number = 1) {
  return {.holder = holder, .number = number, .want = want, .term_us = 2 * kSec};
}
RefillRequest Next(const RefillRequest& last, const Grant& grant, int64_t left) {
  RefillRequest request = last;
  request.number = last.number + 1;
  request.since_us = grant.since_us;
  request.applied = grant.number;
  request.left = left;
  return request;
}

class LeaseCounterTest : public testing::Test {
 protected:
  Grant Ask(const RefillRequest& request, int64_t now_us) {
    return Refill(&state_, terms_, request, {}, now_us);
  }
  TakeReply TakeAt(int64_t cost, int64_t now_us) { return Take(&state_, terms_, cost, {}, now_us); }
  int64_t RemainingAt(int64_t now_us) const {
    return Peek(state_, terms_, 0, {}, now_us).remaining;
  }

  LeaseTerms terms_ = kHundred;
  LeaseState state_;
};

TEST(LeaseTerms, CountsInWholeTicks) {
  EXPECT_EQ(kHundred.ticks_per_us, 1);
  EXPECT_EQ(kHundred.ticks_per_unit, 10'000);
  EXPECT_EQ(kHundred.UnitsIn(kSec / 2), 50);
  EXPECT_EQ(kHundred.UnitsIn(100 * kSec), 100);
  const LeaseTerms odd = Reserved(7, seconds(60), 7);  // 7 / 60,000,000 per µs.
  EXPECT_EQ(odd.ticks_per_us, 7);
  EXPECT_EQ(odd.ticks_per_unit, 60'000'000);
  const LeaseTerms fast = Reserved(3'000'000, milliseconds(1), 10);
  EXPECT_EQ(fast.ticks_per_us, 3000);
  EXPECT_EQ(fast.ticks_per_unit, 1);
}

TEST(LeaseTerms, RefusesWhatIsNotLeased) {
  const auto refusal = [](const core::MeterSpec& spec) {
    const auto terms = LeaseTerms::Compile({.spec = spec}, LeaseKind::kReserved);
    return terms ? std::string() : terms.error().message;
  };
  EXPECT_EQ(refusal({.algorithm = Algorithm::kSlidingWindow, .rate = {.units = 5}}),
            "only token_bucket and fixed_window are leased, not sliding_window");
  EXPECT_NE(refusal({.algorithm = Algorithm::kSlidingCounter, .rate = {.units = 5}}), "");
  EXPECT_NE(refusal({.algorithm = Algorithm::kParallel, .rate = {.units = 5}}), "");
  EXPECT_EQ(refusal({.rate = {.units = 0, .burst = 1}}), "a limit of 0 has nothing to lease");
  EXPECT_EQ(
      refusal(
          {.rate = {.units = 999'999'937, .period = std::chrono::hours(24), .burst = 999'999'937}}),
      "rate and burst of a leased limit must fit whole ticks below 2^49");
  EXPECT_NE(refusal({.algorithm = Algorithm::kFixedWindow,
                     .rate = {.units = 5, .period = std::chrono::nanoseconds(1'500)}}),
            "");
  EXPECT_EQ(refusal({.rate = {.units = 5, .burst = 5}}), "");
}

TEST(LeaseTerms, TheFenceTellsDefinitionsApart) {
  const auto fence = [](const LeaseDefinition& definition, LeaseKind kind) {
    return LeaseTerms::Compile(definition, kind)->fence;
  };
  const LeaseDefinition one = Bucket(100, seconds(1), 100);
  const uint64_t fence_one = fence(one, LeaseKind::kReserved);
  EXPECT_EQ(fence(Bucket(100, seconds(1), 100), LeaseKind::kReserved), fence_one);
  EXPECT_NE(fence(one, LeaseKind::kFast), fence_one);
  EXPECT_NE(fence(Bucket(101, seconds(1), 100), LeaseKind::kReserved), fence_one);
  EXPECT_NE(fence(Bucket(100, seconds(2), 100), LeaseKind::kReserved), fence_one);
  EXPECT_NE(fence(Bucket(100, seconds(1), 101), LeaseKind::kReserved), fence_one);
  LeaseDefinition other = one;
  other.per = "ip";
  EXPECT_NE(fence(other, LeaseKind::kReserved), fence_one);
  other = one;
  other.unit = Unit::kTokens;
  EXPECT_NE(fence(other, LeaseKind::kReserved), fence_one);
  EXPECT_LT(fence_one, uint64_t{1} << 52);
}

TEST(LeasePays, ColdAndSmallLimitsAreExact) {
  EXPECT_TRUE(LeasePays(100, 4, 8));
  EXPECT_FALSE(LeasePays(100, 4, 7));
  EXPECT_FALSE(LeasePays(100, 13, 100));  // 3 units each.
  EXPECT_FALSE(LeasePays(7, 1, 100));
  EXPECT_TRUE(LeasePays(8, 1, 8));
}

TEST_F(LeaseCounterTest, TakesUntilTheCapacityAndSaysWhen) {
  EXPECT_EQ(TakeAt(99, kNow).remaining, 1);
  const TakeReply second = TakeAt(3, kNow);
  EXPECT_FALSE(second.allowed);
  EXPECT_EQ(second.remaining, 1);
  EXPECT_EQ(second.retry_us, 20'000);
  EXPECT_EQ(second.reset_us, 990'000);
  EXPECT_FALSE(TakeAt(3, kNow + 19'999).allowed);
  EXPECT_TRUE(TakeAt(3, kNow + 20'000).allowed);
  EXPECT_EQ(TakeAt(101, kNow).retry_us, core::kNever);
  EXPECT_TRUE(TakeAt(0, kNow).allowed);
}

TEST_F(LeaseCounterTest, AGrantIsDebitedAndItsAllotmentSetApart) {
  const Grant grant = Ask(First(7), kNow);
  EXPECT_EQ(grant, (Grant{.number = 1,
                          .since_us = kNow,
                          .units = 30,  // Half of what the reserve left: 60.
                          .allotment = 40,
                          .lasts_us = 2 * kSec,
                          .holders = 1,
                          .available = 30,
                          .reset_us = 300'000}));
  EXPECT_EQ(ReserveUnits(state_), 40);
  // 10 units are left of it: topped up by half of what is there again.
  const Grant more = Ask(Next(First(7), grant, 10), kNow + 100'000);
  EXPECT_EQ(more.units, 20);
  EXPECT_EQ(more.since_us, kNow);
  EXPECT_EQ(more.available, 20);
  // Refilled, what is set apart stays out.
  EXPECT_EQ(RemainingAt(kNow + 2 * kSec), 60);
}

TEST_F(LeaseCounterTest, AnExpiredReserveComesBackAtTheLimitsRate) {
  Ask(First(7), kNow);
  EXPECT_EQ(RemainingAt(kNow + 2 * kSec - 1), 60);
  EXPECT_EQ(RemainingAt(kNow + 2 * kSec), 60);
  EXPECT_EQ(RemainingAt(kNow + 2 * kSec + 10'000), 61);
  EXPECT_EQ(RemainingAt(kNow + 2 * kSec + 399'999), 99);
  EXPECT_EQ(RemainingAt(kNow + 2 * kSec + 400'000), 100);
}

TEST_F(LeaseCounterTest, AGrantThatWasNeverAppliedIsTakenBack) {
  Ask(First(7), kNow);
  const Grant again = Ask(First(7, 40, /*number=*/2), kNow);  // Its first reply was lost.
  EXPECT_EQ(again.units, 30);
  EXPECT_EQ(again.available, 30);
  EXPECT_EQ(again.since_us, kNow + 1);  // A registration of its own.
  // Applied and spent: not taken back.
  RefillRequest third = Next(First(7, 40, 2), again, 0);
  EXPECT_EQ(Ask(third, kNow).units, 15);
}

TEST_F(LeaseCounterTest, AnOvertakenRequestChangesNothing) {
  const Grant grant = Ask(First(7, 40, 5), kNow);
  const LeaseState before = state_;
  EXPECT_EQ(Ask(First(7, 40, 5), kNow).status, GrantStatus::kStale);
  EXPECT_EQ(Ask(First(7, 40, 4), kNow).status, GrantStatus::kStale);
  EXPECT_FALSE(GiveBack(&state_, terms_,
                        {.holder = 7, .number = 4, .since_us = grant.since_us, .left = 10}, {},
                        kNow));
  EXPECT_EQ(state_, before);
}

TEST_F(LeaseCounterTest, UnitsAreGivenBackOnce) {
  const Grant grant = Ask(First(7), kNow);
  const GiveBackRequest back{
      .holder = 7, .number = 2, .since_us = grant.since_us, .applied = 1, .left = 12};
  EXPECT_TRUE(GiveBack(&state_, terms_, back, {}, kNow));
  EXPECT_EQ(RemainingAt(kNow), 42);  // The reserve of 40 arrives as used.
  EXPECT_EQ(RemainingAt(kNow + 580'000), 100);
  EXPECT_FALSE(GiveBack(&state_, terms_, back, {}, kNow));
  EXPECT_EQ(RemainingAt(kNow), 42);
  // Nor of another registration, nor of one that has run out.
  const Grant other = Ask(First(7, 40, 3), kNow + kSec);
  EXPECT_FALSE(GiveBack(&state_, terms_,
                        {.holder = 7, .number = 4, .since_us = grant.since_us, .left = 12}, {},
                        kNow + kSec));
  EXPECT_FALSE(GiveBack(&state_, terms_,
                        {.holder = 7, .number = 4, .since_us = other.since_us, .left = 12}, {},
                        kNow + 3 * kSec));
}

TEST_F(LeaseCounterTest, AHolderThatNeverHeardOfItsLeaseCanEndIt) {
  Ask(First(7), kNow);
  EXPECT_FALSE(GiveBack(&state_, terms_, {.holder = 7, .number = 2, .left = 1}, {}, kNow));
  EXPECT_TRUE(GiveBack(&state_, terms_, {.holder = 7, .number = 2}, {}, kNow));
  EXPECT_EQ(RemainingAt(kNow), 60);
}

TEST_F(LeaseCounterTest, AJoiningNodeWaitsForFreedShare) {
  RefillRequest first = First(1, 100);
  Grant grant = Ask(first, kNow);
  EXPECT_EQ(grant.allotment, 50);  // N * q <= B / 2.
  EXPECT_EQ(grant.units, 25);
  Grant joined = Ask(First(2, 100), kNow + kSec);
  EXPECT_EQ(joined.allotment, 0);
  EXPECT_EQ(joined.units, 0);
  EXPECT_EQ(joined.holders, 2);
  EXPECT_EQ(joined.retry_us, kSec / 2);
  // The first one's share has shrunk to a quarter; it still holds 30, and keeps so many.
  first = Next(first, grant, 25);
  grant = Ask(first, kNow + kSec);
  EXPECT_EQ(grant.allotment, 25);
  EXPECT_EQ(ReserveUnits(state_), 25);
  joined = Ask(Next(First(2, 100), joined, 0), kNow + 3 * kSec / 2);
  EXPECT_EQ(joined.allotment, 18);  // A quarter of the 75 there.
  EXPECT_EQ(joined.units, 14);
}

TEST_F(LeaseCounterTest, ACostThatOnlyTheReserveKeepsOutSendsTheHoldersHome) {
  const RefillRequest first = First(7);
  const Grant grant = Ask(first, kNow);
  const TakeReply denied = TakeAt(80, kNow + kSec);
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_us, kSec);  // The lease runs out; 60 are there, 20 more come meanwhile.
  const LeaseState before = state_;
  EXPECT_EQ(Ask(Next(first, grant, 5), kNow + kSec + 1).status, GrantStatus::kDraining);
  EXPECT_EQ(Ask(First(8), kNow + 3 * kSec - 1).status, GrantStatus::kDraining);
  EXPECT_EQ(state_, before);
  EXPECT_FALSE(TakeAt(80, kNow + 2 * kSec - 1).allowed);
  EXPECT_TRUE(TakeAt(80, kNow + 2 * kSec + 200'000).allowed);
  EXPECT_EQ(Ask(First(8), kNow + 3 * kSec).status, GrantStatus::kGranted);
}

TEST_F(LeaseCounterTest, AnAnnouncedWaitForALargeCostIsEnough) {
  Ask(First(7), kNow);
  EXPECT_TRUE(TakeAt(10, kNow + 1'900'000).allowed);  // 50 of 60 are left.
  const TakeReply denied = TakeAt(80, kNow + 1'900'000);
  EXPECT_EQ(denied.retry_us, 300'000);  // 30 more have to come.
  EXPECT_FALSE(TakeAt(80, kNow + 2'199'999).allowed);
  EXPECT_TRUE(TakeAt(80, kNow + 2'200'000).allowed);
}

TEST_F(LeaseCounterTest, APutBackIsBoundedByWhatTimeHasGivenBack) {
  const TakeReply taken = TakeAt(40, kNow);
  EXPECT_TRUE(PutBack(&state_, terms_, taken.receipt, 30, {}, kNow));
  EXPECT_EQ(RemainingAt(kNow), 90);
  const TakeReply other = TakeAt(40, kNow);
  EXPECT_TRUE(PutBack(&state_, terms_, other.receipt, 40, {}, kNow + 300'000));
  EXPECT_EQ(RemainingAt(kNow + 300'000), 90);
  EXPECT_FALSE(PutBack(&state_, terms_, other.receipt, 40, {}, kNow + 400'000));
}

TEST_F(LeaseCounterTest, WhatAForgottenStateGaveDoesNotComeBackToTheNewOne) {
  const TakeReply taken = TakeAt(50, kNow);
  state_ = {};
  TakeAt(60, kNow + 1000);
  EXPECT_FALSE(PutBack(&state_, terms_, taken.receipt, 50, {}, kNow + 2000));
  EXPECT_EQ(RemainingAt(kNow + 1000), 40);
}

TEST_F(LeaseCounterTest, Case85_ATakeThatTimeHasRefilledIsNotPutBackAgain) {
  terms_ = Reserved(1000, seconds(60), 1000);
  const TakeReply reserved = TakeAt(1000, kNow);
  EXPECT_TRUE(TakeAt(1000, kNow + 60 * kSec).allowed);
  EXPECT_FALSE(PutBack(&state_, terms_, reserved.receipt, 954, {}, kNow + 60 * kSec));
  EXPECT_EQ(RemainingAt(kNow + 60 * kSec), 0);
}

TEST_F(LeaseCounterTest, PutBacksTogetherGiveNoUnitTwice) {
  terms_ = Reserved(1, seconds(1), 2);
  const TakeReply a = TakeAt(1, kNow);
  const TakeReply b = TakeAt(1, kNow);
  EXPECT_TRUE(PutBack(&state_, terms_, a.receipt, 1, {}, kNow));
  EXPECT_TRUE(TakeAt(1, kNow + kSec).allowed);  // b has refilled: this one is new.
  EXPECT_FALSE(PutBack(&state_, terms_, b.receipt, 1, {}, kNow + kSec));
  EXPECT_TRUE(TakeAt(1, kNow + kSec).allowed);
  EXPECT_FALSE(TakeAt(1, kNow + kSec).allowed);
}

TEST_F(LeaseCounterTest, PostedCostIsDebt) {
  Post(&state_, terms_, 150, {}, kNow);
  EXPECT_EQ(RemainingAt(kNow), 0);
  EXPECT_EQ(TakeAt(1, kNow).retry_us, 510'000);
  EXPECT_TRUE(TakeAt(1, kNow + 510'000).allowed);
  // Nobody leases out of a debt.
  Post(&state_, terms_, 150, {}, kNow + 510'000);
  const Grant grant = Ask(First(7), kNow + 510'000);
  EXPECT_EQ(grant.units, 0);
  EXPECT_EQ(grant.allotment, 0);
}

TEST_F(LeaseCounterTest, AWindowsLeasesEndWithIt) {
  terms_ = Window(100, seconds(10));
  const Windows windows{.offset_us = 3 * kSec};
  const int64_t end_us = kNow + 7 * kSec;  // kNow is a multiple of 10 s.
  const RefillRequest first = First(7);
  const Grant grant = Refill(&state_, terms_, first, windows, end_us - kSec);
  EXPECT_EQ(grant.allotment, 40);
  EXPECT_EQ(grant.units, 40);  // No reserve: 50 would be there.
  EXPECT_EQ(grant.lasts_us, kSec);
  EXPECT_EQ(Take(&state_, terms_, 60, windows, end_us - 1).remaining, 0);
  EXPECT_EQ(Take(&state_, terms_, 1, windows, end_us - 1).retry_us, 1);
  // In the next window what was left is void, and another registration begins.
  const Grant next = Refill(&state_, terms_, Next(first, grant, 25), windows, end_us);
  EXPECT_EQ(next.since_us, end_us);
  EXPECT_EQ(next.units, 40);
  EXPECT_EQ(next.available, 60);
  EXPECT_EQ(next.lasts_us, 2 * kSec);
}

TEST_F(LeaseCounterTest, CalendarWindowsComeFromTheCaller) {
  const LeaseTerms terms = LeaseTerms::Compile({.spec = {.algorithm = Algorithm::kFixedWindow,
                                                         .rate = {.units = 100},
                                                         .alignment = core::Alignment::kDay}},
                                               LeaseKind::kReserved)
                               .value();
  const Windows windows{.calendar = {{{kNow, kNow + kSec}, {kNow + kSec, kNow + 3 * kSec}}}};
  EXPECT_EQ(Take(&state_, terms, 100, windows, kNow + kSec - 1).remaining, 0);
  EXPECT_FALSE(Take(&state_, terms, 1, windows, kNow + kSec - 1).allowed);
  EXPECT_EQ(Take(&state_, terms, 3, windows, kNow + kSec).remaining, 97);
  EXPECT_TRUE(Take(&state_, terms, 3, windows, kNow + 3 * kSec).other_window);
  EXPECT_EQ(Refill(&state_, terms, First(7), windows, kNow + 3 * kSec).status,
            GrantStatus::kOtherWindow);
}

TEST_F(LeaseCounterTest, AnotherDefinitionKeepsWhatIsUsedAndWhoHolds) {
  TakeAt(40, kNow);
  const LeaseTerms raised = Reserved(200, seconds(1), 150);
  EXPECT_EQ(Peek(state_, raised, 0, {}, kNow).remaining, 110);
  const Grant grant = Ask(First(7), kNow);
  EXPECT_EQ(grant.allotment, 30);
  EXPECT_EQ(grant.units, 15);
  EXPECT_EQ(Peek(state_, raised, 0, {}, kNow).remaining, 150 - 40 - 30 - 15);
  // Under the other definition, and back: rounded up at most.
  const LeaseTerms odd = Reserved(7, seconds(3), 90);
  Post(&state_, odd, 0, {}, kNow);
  Post(&state_, terms_, 0, {}, kNow);
  EXPECT_EQ(RemainingAt(kNow), 15);
}

TEST_F(LeaseCounterTest, AStateFarAheadOfTheClockIsHealedAndForgivesNothing) {
  TakeAt(100, kNow + 3600 * kSec);
  EXPECT_EQ(RemainingAt(kNow), 0);
  EXPECT_TRUE(TakeAt(0, kNow).allowed);
  EXPECT_FALSE(TakeAt(1, kNow).allowed);
  Post(&state_, terms_, 0, {}, kNow);
  EXPECT_EQ(RemainingAt(kNow + kSec), 100);
}

TEST_F(LeaseCounterTest, AClockThatGoesBackALittleGivesNothingTwice) {
  TakeAt(100, kNow + 500'000);
  EXPECT_FALSE(TakeAt(1, kNow).allowed);
  EXPECT_EQ(RemainingAt(kNow + 500'000), 0);
  EXPECT_EQ(RemainingAt(kNow + 600'000), 10);
}

TEST_F(LeaseCounterTest, HoldersAreBounded) {
  terms_ = Reserved(100'000, seconds(1), 100'000);
  for (size_t i = 1; i <= kMaxHolders; ++i) {
    ASSERT_EQ(Ask(First(i, 1), kNow).status, GrantStatus::kGranted);
  }
  EXPECT_EQ(Ask(First(1000, 1), kNow).status, GrantStatus::kNoRoom);
  EXPECT_EQ(state_.holders.size(), kMaxHolders);
  EXPECT_EQ(Ask(First(1000, 1), kNow + 2 * kSec).status, GrantStatus::kGranted);
  EXPECT_EQ(state_.holders.size(), 1u);
}

// Random histories: what is kept of a state is enough, and looking at it in between changes
// nothing.
TEST(LeaseCounterProperty, AStateIsKeptForLongEnoughAndLooksChangeNothing) {
  std::mt19937_64 random(20261130);
  const auto below = [&](int64_t bound) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  };
  for (int round = 0; round < 3000; ++round) {
    const LeaseTerms terms =
        below(4) == 0 ? Window(1 + below(300), milliseconds(500 + below(3000)))
                      : Reserved(1 + below(300), milliseconds(1 + below(3000)), 1 + below(400));
    LeaseState state, looked_at;
    int64_t now_us = kNow, number = 0;
    for (int step = 0; step < 20; ++step) {
      now_us += below(2) * below(800'000);
      Post(&looked_at, terms, 0, {}, now_us - below(2) * below(100));
      if (below(2) == 0) {
        const int64_t cost = 1 + below(terms.burst);
        EXPECT_EQ(Take(&state, terms, cost, {}, now_us), Take(&looked_at, terms, cost, {}, now_us));
      } else {
        RefillRequest request = First(1 + below(3), below(200), ++number);
        request.term_us = 1 + below(2 * kSec);
        EXPECT_EQ(Refill(&state, terms, request, {}, now_us),
                  Refill(&looked_at, terms, request, {}, now_us));
      }
    }
    const int64_t later_us = now_us + KeepUs(state, now_us);
    for (const int64_t cost : {int64_t{0}, terms.burst}) {
      EXPECT_EQ(Peek(state, terms, cost, {}, later_us), Peek({}, terms, cost, {}, later_us))
          << "round " << round;
    }
  }
}

}  // namespace
}  // namespace weir::store::lease
