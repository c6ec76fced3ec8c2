// What every store must do, as a suite that each store's test instantiates.
//
//   struct MemoryFixture { std::unique_ptr<MemoryStore> Make(int64_t max_keys, store::OnFull
//   on_full); }; INSTANTIATE_TYPED_TEST_SUITE_P(Memory, StoreContract, MemoryFixture);
//
// A store over the network is driven by a fixture whose Make returns an adapter with the same,
// blocking, operations.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/keyed_hash.h"
#include "store/store.h"

namespace weir::testing {

using store::Charge;
using store::Mode;
using store::OnFull;
using store::Outcome;

inline constexpr int64_t kSec = 1'000'000'000;

template <typename Fixture>
class StoreContract : public ::testing::Test {
 protected:
  void Start(int64_t max_keys = 1000, OnFull on_full = OnFull::kClosed) {
    store_ = fixture_.Make(max_keys, on_full);
  }
  const core::Meter* Meter(Algorithm algorithm, int64_t units, std::chrono::nanoseconds period) {
    return *store_->Intern(
        {.algorithm = algorithm, .rate = {.units = units, .period = period, .burst = units}});
  }
  store::Key128 Key(std::string_view text) { return hasher_.Begin("limit").Add(text).Finish(); }
  Outcome Take(const core::Meter* meter, std::string_view key, int64_t cost, int64_t now_ns) {
    const Charge charge{.meter = meter, .key = Key(key), .cost = cost};
    Outcome outcome;
    store_->Decide({&charge, 1}, {&outcome, 1}, At(now_ns), Mode::kCharge);
    return outcome;
  }
  bool DecideAll(const std::vector<Charge>& charges, int64_t now_ns, Mode mode = Mode::kCharge) {
    outcomes_.assign(charges.size(), {});
    return store_->Decide(charges, outcomes_, At(now_ns), mode);
  }
  int64_t Remaining(const core::Meter* meter, std::string_view key, int64_t now_ns) {
    return store_->Peek(*meter, Key(key), 0, At(now_ns)).remaining;
  }
  static core::Now At(int64_t now_ns) {
    return {.mono_ns = now_ns, .wall_ns = now_ns + 1'767'225'600 * kSec};  // From 2026 on.
  }

  Fixture fixture_;
  decltype(std::declval<Fixture>().Make(1, OnFull::kClosed)) store_;
  base::KeyHasher hasher_{1};
  std::vector<Outcome> outcomes_;
};
TYPED_TEST_SUITE_P(StoreContract);

// What a store that holds a bounded number of keys must do beside.
template <typename Fixture>
class BoundedStoreContract : public StoreContract<Fixture> {};
TYPED_TEST_SUITE_P(BoundedStoreContract);

inline constexpr Algorithm kCounting[] = {Algorithm::kTokenBucket, Algorithm::kSlidingWindow,
                                          Algorithm::kSlidingCounter, Algorithm::kFixedWindow};

TYPED_TEST_P(StoreContract, Case15_ExactlyTheLimitPasses) {
  this->Start();
  for (const Algorithm algorithm : kCounting) {
    const auto* meter = this->Meter(algorithm, 5, std::chrono::seconds(5));
    const std::string key(AlgorithmName(algorithm));
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(this->Take(meter, key, 1, kSec).step.allowed) << key;
    const Outcome denied = this->Take(meter, key, 1, kSec);
    EXPECT_FALSE(denied.step.allowed) << key;
    EXPECT_FALSE(denied.charged);
    EXPECT_TRUE(this->Take(meter, key, 1, kSec + denied.step.retry_after_ns).step.allowed) << key;
  }
}

TYPED_TEST_P(StoreContract, Case18_CostZeroStoresNothing) {
  this->Start();
  for (const Algorithm algorithm : kCounting) {
    const auto* meter = this->Meter(algorithm, 3, std::chrono::minutes(1));
    for (int i = 0; i < 5; ++i) {
      const Outcome outcome = this->Take(meter, "peeked", 0, kSec);
      EXPECT_EQ(outcome.step, (core::Step{true, 3, 0, 0}));
      EXPECT_FALSE(outcome.charged);
    }
  }
  EXPECT_EQ(this->store_->TrackedKeys(this->At(kSec)), 0);
}

TYPED_TEST_P(StoreContract, Case17_RefundsThroughSettleAndRelease) {
  this->Start();
  for (const Algorithm algorithm : kCounting) {
    const auto* meter = this->Meter(algorithm, 10, std::chrono::minutes(1));
    const std::string key(AlgorithmName(algorithm));
    const store::Key128 hash = this->Key(key);
    const Outcome ten = this->Take(meter, key, 10, kSec);
    EXPECT_TRUE(ten.charged);
    EXPECT_TRUE(this->store_->Settle(*meter, hash, ten.receipt, 10, 9, this->At(kSec)));
    EXPECT_TRUE(this->Take(meter, key, 1, kSec).step.allowed) << key;
    EXPECT_FALSE(this->Take(meter, key, 1, kSec).step.allowed) << key;
    EXPECT_TRUE(this->store_->Release(*meter, hash, ten.receipt, 9, this->At(kSec)));
    EXPECT_EQ(this->Remaining(meter, key, kSec), 9) << key;
    EXPECT_TRUE(this->store_->Reset(*meter, hash, this->At(kSec)));
    EXPECT_FALSE(this->store_->Reset(*meter, hash, this->At(kSec)));
    EXPECT_EQ(this->Remaining(meter, key, kSec), 10) << key;
  }
}

TYPED_TEST_P(StoreContract, Case83e_OverrunsAreDebt) {
  this->Start();
  const auto* meter = this->Meter(Algorithm::kTokenBucket, 100, std::chrono::minutes(1));
  const Outcome taken = this->Take(meter, "k", 100, 0);
  EXPECT_TRUE(this->store_->Settle(*meter, this->Key("k"), taken.receipt, 100, 150, this->At(0)));
  EXPECT_EQ(this->Take(meter, "k", 1, 0).step.retry_after_ns, 30'600'000'000);
  EXPECT_EQ(this->Remaining(meter, "k", 0), 0);
  // A debt stands even where nothing was tracked.
  EXPECT_TRUE(this->store_->Settle(*meter, this->Key("new"), {}, 0, 150, this->At(0)));
  EXPECT_FALSE(this->Take(meter, "new", 1, 0).step.allowed);
}

TYPED_TEST_P(StoreContract, Case85_TimeThatRefilledIsNotRefundedAgain) {
  this->Start();
  const auto* meter = this->Meter(Algorithm::kTokenBucket, 1000, std::chrono::minutes(1));
  const Outcome first = this->Take(meter, "k", 1000, 0);
  EXPECT_TRUE(this->Take(meter, "k", 1000, 60 * kSec).step.allowed);
  EXPECT_FALSE(
      this->store_->Settle(*meter, this->Key("k"), first.receipt, 1000, 46, this->At(60 * kSec)));
  EXPECT_EQ(this->Remaining(meter, "k", 60 * kSec), 0);
}

// At 1/s and a burst of 2, of two open charges the first is given back: what is left of the second
// has refilled a second later, whatever has been charged since.
TYPED_TEST_P(StoreContract, Case85_ARefundMovesTheOpenChargesDown) {
  this->Start();
  constexpr int64_t kLater = kSec + 1000;
  for (const int64_t units : {1, 97}) {  // The second takes the exact form of the bucket.
    const auto period = std::chrono::seconds(units) + std::chrono::microseconds(units / 2);
    const auto* meter =
        *this->store_->Intern({.algorithm = Algorithm::kTokenBucket,
                               .rate = {.units = units, .period = period, .burst = 2}});
    const std::string key = std::to_string(units);
    const store::Key128 hash = this->Key(key);
    const auto reserve = [&](int64_t now_ns) {
      this->DecideAll({{.meter = meter, .key = hash, .cost = 1}}, now_ns, Mode::kReserve);
      return this->outcomes_[0];
    };
    const auto release = [&](const Outcome& outcome, int64_t now_ns) {
      return this->store_->Release(*meter, hash, outcome.receipt, 1, this->At(now_ns));
    };
    const Outcome first = reserve(0), second = reserve(0);
    EXPECT_TRUE(release(first, 0));
    EXPECT_TRUE(reserve(kLater).charged) << key;
    EXPECT_FALSE(release(second, kLater)) << key;
    EXPECT_EQ(this->Remaining(meter, key, kLater), 1) << key;
    // All comes back in the order of the charges and in the reverse one.
    const Outcome third = reserve(9 * kSec), fourth = reserve(9 * kSec);
    EXPECT_TRUE(release(fourth, 9 * kSec)) << key;
    EXPECT_TRUE(release(third, 9 * kSec)) << key;
    EXPECT_EQ(this->Remaining(meter, key, 9 * kSec), 2) << key;
    const Outcome fifth = reserve(9 * kSec), sixth = reserve(9 * kSec);
    EXPECT_TRUE(release(fifth, 9 * kSec)) << key;
    EXPECT_TRUE(release(sixth, 9 * kSec)) << key;
    EXPECT_EQ(this->Remaining(meter, key, 9 * kSec), 2) << key;
  }
}

// The same where a charge was made under another rate: its place is not known, so that its refund
// moves down all that are open.
TYPED_TEST_P(StoreContract, Case85_ARefundOfAnotherRateMovesTheOpenChargesDown) {
  this->Start();
  const auto bucket = [&](int64_t burst) {
    return *this->store_->Intern(
        {.algorithm = Algorithm::kTokenBucket,
         .rate = {.units = 1, .period = std::chrono::seconds(1), .burst = burst}});
  };
  const core::Meter *before = bucket(6), *meter = bucket(5);
  const store::Key128 hash = this->Key("k");
  const auto reserve = [&](const core::Meter* under, int64_t now_ns, int64_t cost = 1) {
    this->DecideAll({{.meter = under, .key = hash, .cost = cost}}, now_ns, Mode::kReserve);
    EXPECT_TRUE(this->outcomes_[0].charged);
    return this->outcomes_[0];
  };
  const auto release = [&](const core::Meter* under, const Outcome& outcome, int64_t now_ns,
                           int64_t cost = 1) {
    return this->store_->Release(*under, hash, outcome.receipt, cost, this->At(now_ns));
  };
  const Outcome first = reserve(before, 0, 2), second = reserve(meter, 0);
  const Outcome third = reserve(meter, 0);
  reserve(meter, 0);
  EXPECT_TRUE(release(meter, second, 0));
  EXPECT_TRUE(release(before, first, 0, 2));  // One of the two, since it may have been the later.
  EXPECT_EQ(this->Remaining(meter, "k", 0), 2);
  reserve(meter, 2 * kSec);
  EXPECT_FALSE(release(meter, third, 2 * kSec));
  EXPECT_EQ(this->Remaining(meter, "k", 2 * kSec), 3);
}

// What is charged after a counter was forgotten is not given back by who was charged before.
TYPED_TEST_P(StoreContract, AResetForgetsWhatWasReserved) {
  this->Start();
  for (const Algorithm algorithm : kCounting) {
    for (const int64_t period_s : {3600, 3607}) {  // The second takes wider forms.
      const auto* meter = this->Meter(algorithm, 100, std::chrono::seconds(period_s));
      const std::string key = std::string(AlgorithmName(algorithm)) + std::to_string(period_s);
      const store::Key128 hash = this->Key(key);
      const auto reserve = [&](int64_t cost, int64_t now_ns) {
        this->DecideAll({{.meter = meter, .key = hash, .cost = cost}}, now_ns, Mode::kReserve);
        return this->outcomes_[0];
      };
      constexpr int64_t kStart = 7200 * kSec, kStep = kSec / 1000;
      const Outcome before = reserve(50, kStart);
      EXPECT_TRUE(this->store_->Reset(*meter, hash, this->At(kStart + kStep)));
      const Outcome after = reserve(60, kStart + 2 * kStep);
      EXPECT_TRUE(after.charged) << key;
      EXPECT_FALSE(
          this->store_->Release(*meter, hash, before.receipt, 50, this->At(kStart + 3 * kStep)))
          << key;
      EXPECT_EQ(this->Remaining(meter, key, kStart + 3 * kStep), 40) << key;
      EXPECT_TRUE(
          this->store_->Release(*meter, hash, after.receipt, 20, this->At(kStart + 3 * kStep)))
          << key;
      EXPECT_EQ(this->Remaining(meter, key, kStart + 3 * kStep), 60) << key;
    }
  }
}

TYPED_TEST_P(StoreContract, Case32a_ARefusedCallSpendsNoOtherLimit) {
  this->Start();
  const auto* group = this->Meter(Algorithm::kTokenBucket, 10, std::chrono::minutes(1));
  const auto* special = this->Meter(Algorithm::kFixedWindow, 3, std::chrono::minutes(1));
  const std::vector<Charge> both = {{.meter = group, .key = this->Key("group")},
                                    {.meter = special, .key = this->Key("special")}};
  int passed = 0;
  for (int i = 0; i < 5; ++i) passed += this->DecideAll(both, 0);
  EXPECT_EQ(passed, 3);
  EXPECT_TRUE(this->outcomes_[0].step.allowed);
  EXPECT_EQ(this->outcomes_[0].step.remaining, 7);
  EXPECT_FALSE(this->outcomes_[1].step.allowed);
  passed = 0;
  for (int i = 0; i < 8; ++i) passed += this->Take(group, "group", 1, 0).step.allowed;
  EXPECT_EQ(passed, 7);
}

TYPED_TEST_P(StoreContract, Case32b_EitherOrderOfTheLimits) {
  for (const bool day_first : {true, false}) {
    this->Start();
    const Charge day{.meter = this->Meter(Algorithm::kTokenBucket, 100, std::chrono::hours(24)),
                     .key = this->Key("day")};
    const Charge second{.meter = this->Meter(Algorithm::kFixedWindow, 10, std::chrono::seconds(1)),
                        .key = this->Key("second")};
    const std::vector<Charge> charges =
        day_first ? std::vector<Charge>{day, second} : std::vector<Charge>{second, day};
    for (int64_t t = 0; t < 12; ++t) {
      int passed = 0;
      for (int i = 0; i < 50; ++i) passed += this->DecideAll(charges, t * kSec);
      EXPECT_EQ(passed, t < 10 ? 10 : 0) << t;
    }
  }
}

TYPED_TEST_P(StoreContract, ShadowLimitsCountAndNeverDeny) {
  this->Start();
  const auto* enforced = this->Meter(Algorithm::kTokenBucket, 5, std::chrono::minutes(1));
  const auto* trial = this->Meter(Algorithm::kTokenBucket, 3, std::chrono::minutes(1));
  const std::vector<Charge> charges = {
      {.meter = trial, .key = this->Key("trial"), .enforced = false},
      {.meter = enforced, .key = this->Key("enforced")}};
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(this->DecideAll(charges, 0));
    EXPECT_EQ(this->outcomes_[0].step.allowed, i < 3) << i;
    EXPECT_EQ(this->outcomes_[0].charged, i < 3) << i;
  }
  const Charge alone{.meter = trial, .key = this->Key("trial"), .enforced = false};
  EXPECT_TRUE(this->DecideAll({alone}, 0));
  EXPECT_FALSE(this->outcomes_[0].step.allowed);
  EXPECT_TRUE(this->store_->Reset(*trial, this->Key("trial"), this->At(0)));
  EXPECT_FALSE(
      this->DecideAll(charges, 0));  // Denied by the enforced one: the shadow is not charged.
  EXPECT_EQ(this->Remaining(trial, "trial", 0), 3);
}

TYPED_TEST_P(StoreContract, PeekSaysAndChangesNothing) {
  this->Start();
  for (const Algorithm algorithm : kCounting) {
    const auto* meter = this->Meter(algorithm, 5, std::chrono::minutes(1));
    const std::string name(AlgorithmName(algorithm));
    const Charge charge{.meter = meter, .key = this->Key(name), .cost = 4};
    EXPECT_TRUE(this->DecideAll({charge}, 0, Mode::kPeek));
    EXPECT_TRUE(this->DecideAll({charge}, 0));
    EXPECT_FALSE(this->DecideAll({charge}, 0, Mode::kPeek));
    EXPECT_EQ(this->Remaining(meter, name, 0), 1);
  }
}

TYPED_TEST_P(StoreContract, Case42_ARaisedRateCarriesUsedUnitsOver) {
  this->Start();
  // The third rate is one that no store can pack into a word.
  for (const int64_t raised : {20, 40, 99'991}) {
    const auto* before = this->Meter(Algorithm::kTokenBucket, 10, std::chrono::hours(1));
    const auto* after = this->Meter(Algorithm::kTokenBucket, raised, std::chrono::hours(1));
    const std::string key = std::to_string(raised);
    for (int i = 0; i < 50; ++i) this->Take(before, key, 1, kSec);
    EXPECT_EQ(this->Remaining(after, key, kSec), raised - 10);
    int64_t passed = 0;
    for (const int64_t cost : {1000, 1}) {
      while (passed < raised && this->Take(after, key, cost, kSec).step.allowed) passed += cost;
    }
    EXPECT_EQ(passed, raised - 10);
    // And back: all that is used is debt under the lower rate.
    EXPECT_EQ(this->Remaining(before, key, kSec), 0);
    EXPECT_FALSE(this->Take(before, key, 1, kSec).step.allowed);
  }
}

TYPED_TEST_P(StoreContract, Case44_ALoweredRateHoldsAtOnce) {
  this->Start();
  for (const Algorithm algorithm : kCounting) {
    const auto* before = this->Meter(algorithm, 100, std::chrono::minutes(1));
    const auto* after = this->Meter(algorithm, 2, std::chrono::minutes(1));
    const std::string key(AlgorithmName(algorithm));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(this->Take(before, key, 1, 0).step.allowed);
    int passed = 0;
    for (int64_t t = 0; t < 60; ++t) passed += this->Take(after, key, 1, t * kSec).step.allowed;
    EXPECT_LE(passed, 2) << key;
  }
}

TYPED_TEST_P(StoreContract, AnAnnouncedWaitIsKeptAfterTheRateChanged) {
  this->Start();
  const auto* slow = this->Meter(Algorithm::kTokenBucket, 10, std::chrono::hours(24));
  const auto* fast = this->Meter(Algorithm::kTokenBucket, 10, std::chrono::seconds(1));
  for (int i = 0; i < 10; ++i) this->Take(slow, "k", 1, 0);
  const Outcome denied = this->Take(fast, "k", 1, kSec);
  EXPECT_FALSE(denied.step.allowed);
  EXPECT_TRUE(this->Take(fast, "k", 1, kSec + denied.step.retry_after_ns).step.allowed);
}

TYPED_TEST_P(StoreContract, Case21_ZeroAdmitsNothing) {
  this->Start();
  for (const Algorithm algorithm : kCounting) {
    const auto* meter = this->Meter(algorithm, 0, std::chrono::seconds(1));
    for (int i = 0; i < 1000; ++i) {
      EXPECT_EQ(this->Take(meter, "k", 1, i * kSec).step, (core::Step{false, 0, 0, core::kNever}));
    }
    EXPECT_TRUE(this->Take(meter, "k", 0, 0).step.allowed);
  }
}

TYPED_TEST_P(StoreContract, ParallelLeases) {
  this->Start();
  const auto* meter = this->Meter(Algorithm::kParallel, 1, std::chrono::seconds(1));
  const store::Key128 key = this->Key("k");
  Charge charge{.meter = meter, .key = key, .lease_id = 7, .lease_ttl_ns = 60 * kSec};
  EXPECT_TRUE(this->DecideAll({charge}, 0));
  const core::Receipt receipt = this->outcomes_[0].receipt;
  charge.lease_id = 8;
  EXPECT_FALSE(this->DecideAll({charge}, 0));
  EXPECT_EQ(this->outcomes_[0].step.retry_after_ns, kSec);
  EXPECT_TRUE(this->store_->Renew(*meter, key, receipt, 90 * kSec, this->At(0)));
  EXPECT_FALSE(this->DecideAll({charge}, 60 * kSec));
  EXPECT_TRUE(this->store_->Release(*meter, key, receipt, 1, this->At(61 * kSec)));
  EXPECT_FALSE(this->store_->Release(*meter, key, receipt, 1, this->At(61 * kSec)));
  EXPECT_TRUE(this->DecideAll({charge}, 61 * kSec));
  charge.lease_id = 9;
  EXPECT_TRUE(this->DecideAll({charge}, 121 * kSec));  // The lease of 8 has expired.
  charge.lease_id = 0;
  EXPECT_FALSE(this->DecideAll({charge}, 121 * kSec));  // Tested only.
}

TYPED_TEST_P(BoundedStoreContract, Case72_TrackedKeysStayWithinTheBound) {
  this->Start(2);
  const auto* meter = this->Meter(Algorithm::kTokenBucket, 10, std::chrono::minutes(1));
  for (const char* key : {"", "one", "two", "three"}) {
    EXPECT_TRUE(this->Take(meter, key, 1, 0).step.allowed) << key;
    EXPECT_LE(this->store_->TrackedKeys(this->At(0)), 2);
  }
  EXPECT_EQ(this->store_->TrackedKeys(this->At(0)), 2);
  EXPECT_EQ(this->store_->TrackedKeys(this->At(60 * kSec)), 0);  // Idle keys count no more.
}

TYPED_TEST_P(BoundedStoreContract, Case65_AFloodOfNewKeysFreesNoExhaustedOne) {
  for (const Algorithm algorithm : kCounting) {
    for (const int64_t max_keys : {2, 10, 1000}) {
      this->Start(max_keys);
      const auto* meter = this->Meter(algorithm, 5, std::chrono::hours(1));
      for (int i = 0; i < 5; ++i) EXPECT_TRUE(this->Take(meter, "victim", 1, 0).step.allowed);
      for (int i = 0; i < max_keys * 3; ++i) this->Take(meter, std::to_string(i), 1, 0);
      EXPECT_FALSE(this->Take(meter, "victim", 1, 0).step.allowed) << AlgorithmName(algorithm);
      EXPECT_LE(this->store_->TrackedKeys(this->At(0)), max_keys);
    }
  }
}

TYPED_TEST_P(BoundedStoreContract, AFullStoreAnswersANewcomerAsConfigured) {
  for (const Algorithm algorithm : kCounting) {
    for (const OnFull on_full : {OnFull::kClosed, OnFull::kOpen}) {
      this->Start(2, on_full);
      const auto* meter = this->Meter(algorithm, 5, std::chrono::hours(1));
      EXPECT_TRUE(this->Take(meter, "a", 5, 0).step.allowed);
      EXPECT_TRUE(this->Take(meter, "b", 5, 0).step.allowed);
      const Outcome newcomer = this->Take(meter, "c", 1, 0);
      EXPECT_EQ(newcomer.step.allowed, on_full == OnFull::kOpen);
      EXPECT_FALSE(newcomer.charged);
      EXPECT_FALSE(newcomer.tracked);
    }
  }
}

// Both kinds of state share the bound, and neither starves the other.
TYPED_TEST_P(BoundedStoreContract, TheBoundIsOneForAllAlgorithms) {
  this->Start(20);
  const auto* bucket = this->Meter(Algorithm::kTokenBucket, 5, std::chrono::seconds(1));
  const auto* log = this->Meter(Algorithm::kSlidingWindow, 5, std::chrono::seconds(1));
  for (int round = 0; round < 4; ++round) {
    const int64_t now_ns = round * 10 * kSec;
    const auto* meter = round % 2 == 0 ? bucket : log;
    for (int i = 0; i < 100; ++i) {
      const std::string key = std::to_string(round) + "/" + std::to_string(i);
      EXPECT_TRUE(this->Take(meter, key, 1, now_ns).step.allowed) << key;
      EXPECT_LE(this->store_->TrackedKeys(this->At(now_ns)), 20);
    }
  }
}

TYPED_TEST_P(StoreContract, Case81_ThreadsTogetherGetExactlyTheLimit) {
  for (const Algorithm algorithm : kCounting) {
    this->Start(4);
    const auto* meter = this->Meter(algorithm, 100, std::chrono::hours(1));
    std::atomic<int> passed{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 250; ++i) passed += this->Take(meter, "shared", 1, 0).step.allowed;
      });
    }
    threads.clear();
    EXPECT_EQ(passed, 100) << AlgorithmName(algorithm);
  }
}

REGISTER_TYPED_TEST_SUITE_P(StoreContract, Case15_ExactlyTheLimitPasses,
                            Case18_CostZeroStoresNothing, Case17_RefundsThroughSettleAndRelease,
                            Case83e_OverrunsAreDebt, Case85_TimeThatRefilledIsNotRefundedAgain,
                            Case85_ARefundMovesTheOpenChargesDown, AResetForgetsWhatWasReserved,
                            Case85_ARefundOfAnotherRateMovesTheOpenChargesDown,
                            Case32a_ARefusedCallSpendsNoOtherLimit, Case32b_EitherOrderOfTheLimits,
                            ShadowLimitsCountAndNeverDeny, PeekSaysAndChangesNothing,
                            Case42_ARaisedRateCarriesUsedUnitsOver, Case44_ALoweredRateHoldsAtOnce,
                            AnAnnouncedWaitIsKeptAfterTheRateChanged, Case21_ZeroAdmitsNothing,
                            ParallelLeases, Case81_ThreadsTogetherGetExactlyTheLimit);
REGISTER_TYPED_TEST_SUITE_P(BoundedStoreContract, Case72_TrackedKeysStayWithinTheBound,
                            Case65_AFloodOfNewKeysFreesNoExhaustedOne,
                            AFullStoreAnswersANewcomerAsConfigured, TheBoundIsOneForAllAlgorithms);

}  // namespace weir::testing
