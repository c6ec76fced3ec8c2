#include "shared_store/fallback.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace weir::shared_store {
namespace {

using store::OnFailure;

constexpr int64_t kMs = 1'000'000;

class FallbackTest : public ::testing::Test {
 protected:
  const core::Meter* Meter(int64_t units, std::chrono::nanoseconds period,
                           Algorithm algorithm = Algorithm::kTokenBucket) {
    return *memory_.Intern(
        {.algorithm = algorithm, .rate = {.units = units, .period = period, .burst = units}});
  }
  bool Decide(std::vector<Charge> charges, std::vector<OnFailure> on_failure, int64_t now_ns = 0,
              Mode mode = Mode::kCharge) {
    std::vector<SharedTerms> terms;
    for (const OnFailure each : on_failure) terms.push_back({.on_failure = each});
    outcomes_.assign(charges.size(), {});
    return fallback_.Decide(charges, terms, outcomes_, {.mono_ns = now_ns, .wall_ns = now_ns},
                            mode);
  }

  store::MemoryStore memory_;
  std::atomic<int64_t> nodes_{1};
  Fallback fallback_{memory_, nodes_};
  std::vector<SharedOutcome> outcomes_;
};

TEST_F(FallbackTest, OpenAdmitsAndCountsNothing) {
  const auto* meter = Meter(2, std::chrono::minutes(1));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(Decide({{.meter = meter, .key = {1, 1}}}, {OnFailure::kOpen}));
    EXPECT_FALSE(outcomes_[0].charged);
    EXPECT_EQ(outcomes_[0].step.remaining, 2);
    EXPECT_EQ(outcomes_[0].source, Source::kFallback);
  }
  EXPECT_EQ(memory_.TrackedKeys({}), 0);
}

TEST_F(FallbackTest, Case21_OpenDoesNotOpenWhatIsShutAltogether) {
  const auto* none = Meter(0, std::chrono::minutes(1));
  EXPECT_FALSE(Decide({{.meter = none, .key = {1, 1}}}, {OnFailure::kOpen}));
}

TEST_F(FallbackTest, ClosedDeniesAndSaysWhenToAskAgain) {
  const auto* meter = Meter(2, std::chrono::minutes(1));
  EXPECT_FALSE(Decide({{.meter = meter, .key = {1, 1}}}, {OnFailure::kClosed}));
  EXPECT_EQ(outcomes_[0].step, (core::Step{false, 0, 0, 1'000 * kMs}));
}

TEST_F(FallbackTest, Case82_FiveNodesAtThreeASecondAdmitSixEachInTenSeconds) {
  nodes_ = 5;
  const auto* meter = Meter(3, std::chrono::seconds(1));
  int passed = 0;
  for (int i = 0; i < 100; ++i) {
    passed +=
        Decide({{.meter = meter, .key = {1, 1}}}, {OnFailure::kLocalShare}, int64_t{i} * 100 * kMs);
  }
  EXPECT_EQ(passed, 6);
}

TEST_F(FallbackTest, ACostAboveTheSharePassesOnAFullOneAndLeavesDebt) {
  nodes_ = 4;
  const auto* meter = Meter(8, std::chrono::seconds(8));  // A share of 2, one unit in 4 s.
  const Charge six{.meter = meter, .key = {1, 1}, .cost = 6};
  EXPECT_TRUE(Decide({six}, {OnFailure::kLocalShare}));
  EXPECT_FALSE(Decide({six}, {OnFailure::kLocalShare}, 23'999 * kMs));
  EXPECT_TRUE(Decide({six}, {OnFailure::kLocalShare}, 24'000 * kMs));
  const Charge nine{.meter = meter, .key = {2, 2}, .cost = 9};
  EXPECT_FALSE(Decide({nine}, {OnFailure::kLocalShare}));
  EXPECT_EQ(outcomes_[0].step.retry_after_ns, core::kNever);
}

TEST_F(FallbackTest, LimitsWithDifferentTermsAreStillAllOrNothing) {
  const auto* meter = Meter(2, std::chrono::minutes(1));
  const std::vector<Charge> both = {{.meter = meter, .key = {1, 1}},
                                    {.meter = meter, .key = {2, 2}}};
  EXPECT_FALSE(Decide(both, {OnFailure::kLocalShare, OnFailure::kClosed}));
  EXPECT_TRUE(outcomes_[0].step.allowed);
  EXPECT_FALSE(outcomes_[0].charged);
  EXPECT_TRUE(Decide(both, {OnFailure::kLocalShare, OnFailure::kOpen}));
  EXPECT_TRUE(outcomes_[0].charged);
  EXPECT_EQ(outcomes_[0].step.remaining, 1);  // The first attempt took nothing.
}

TEST_F(FallbackTest, ShadowLimitsDenyNobody) {
  const auto* meter = Meter(2, std::chrono::minutes(1));
  EXPECT_TRUE(Decide({{.meter = meter, .key = {1, 1}, .enforced = false}}, {OnFailure::kClosed}));
  EXPECT_FALSE(outcomes_[0].step.allowed);
}

TEST_F(FallbackTest, SlotsAreSharedOutAndNeverNone) {
  nodes_ = 3;
  const auto* slots = Meter(2, std::chrono::seconds(1), Algorithm::kParallel);
  Charge charge{.meter = slots, .key = {1, 1}, .lease_id = 1, .lease_ttl_ns = 1'000 * kMs};
  EXPECT_TRUE(Decide({charge}, {OnFailure::kLocalShare}));
  const SharedCharge held{.meter = slots,
                          .key = {1, 1},
                          .receipt = outcomes_[0].receipt,
                          .source = Source::kFallback,
                          .reserved = 1};
  charge.lease_id = 2;
  EXPECT_FALSE(Decide({charge}, {OnFailure::kLocalShare}));
  EXPECT_TRUE(fallback_.Renew(held, 5'000 * kMs, {}));
  EXPECT_FALSE(Decide({charge}, {OnFailure::kLocalShare}, 4'999 * kMs));
  fallback_.Settle(held, {});
  EXPECT_TRUE(Decide({charge}, {OnFailure::kLocalShare}));
}

TEST_F(FallbackTest, WhatASettleGivesBackComesBack) {
  nodes_ = 2;
  const auto* meter = Meter(10, std::chrono::hours(1));
  EXPECT_TRUE(Decide({{.meter = meter, .key = {1, 1}, .cost = 5}}, {OnFailure::kLocalShare}));
  EXPECT_EQ(outcomes_[0].step.remaining, 0);
  fallback_.Settle({.meter = meter,
                    .key = {1, 1},
                    .receipt = outcomes_[0].receipt,
                    .source = Source::kFallback,
                    .reserved = 5,
                    .actual = 2},
                   {});
  EXPECT_TRUE(Decide({{.meter = meter, .key = {1, 1}, .cost = 3}}, {OnFailure::kLocalShare}));
}

}  // namespace
}  // namespace weir::shared_store
