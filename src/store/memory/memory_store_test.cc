#include "store/memory/memory_store.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "testing/model_check.h"
#include "testing/store_contract.h"

namespace weir::testing {
struct MemoryFixture {
  std::unique_ptr<store::MemoryStore> Make(int64_t max_keys, store::OnFull on_full) {
    return std::make_unique<store::MemoryStore>(
        store::MemoryStoreOptions{.max_keys = max_keys, .on_full = on_full});
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, StoreContract, MemoryFixture);
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, BoundedStoreContract, MemoryFixture);
}  // namespace weir::testing

namespace weir::store {
namespace {

using ::weir::testing::CompareWithModel;
using ::weir::testing::ModelOps;
using ::weir::testing::PickSpec;

// One key of a store that others use too.
class StoreLimiter {
 public:
  StoreLimiter(MemoryStore* store, const core::Meter* meter, Key128 key)
      : store_(store), meter_(meter), key_(key) {}
  core::Step Charge(int64_t cost, int64_t now_ns, core::Receipt* receipt) {
    const store::Charge charges[2] = {
        {.meter = meter_, .key = key_, .cost = cost},
        {.meter = meter_, .key = {~key_.hi, ~key_.lo}, .cost = 1, .enforced = false}};
    Outcome outcomes[2];
    // With a shadow limit beside it in every other call, so that both paths through the store are
    // taken.
    const size_t count = 1 + (calls_++ & 1);
    store_->Decide({charges, count}, {outcomes, count}, {now_ns, 0}, Mode::kReserve);
    *receipt = outcomes[0].receipt;
    return outcomes[0].step;
  }
  core::Step Test(int64_t cost, int64_t now_ns) {
    return store_->Peek(*meter_, key_, cost, {now_ns, 0});
  }
  void Settle(core::Receipt receipt, int64_t reserved, int64_t actual, int64_t now_ns) {
    store_->Settle(*meter_, key_, receipt, reserved, actual, {now_ns, 0});
  }

 private:
  MemoryStore* store_;
  const core::Meter* meter_;
  Key128 key_;
  unsigned calls_ = 0;
};

// Allow is Decide without the report: the same answers over the same calls, and the same state
// after them, costs included whose product with the interval wraps to nothing (2^44 * 2^20).
TEST(MemoryStoreTest, AllowSaysWhatDecideSays) {
  for (const int64_t burst : {1, 3}) {
    MemoryStore bare({.max_keys = 10});
    MemoryStore full({.max_keys = 10});
    const core::MeterSpec spec{
        .rate = {.units = 1, .period = std::chrono::nanoseconds(1 << 20), .burst = burst}};
    const core::Meter* bare_meter = *bare.Intern(spec);
    const core::Meter* full_meter = *full.Intern(spec);
    ASSERT_EQ(bare_meter->form(), core::Form::kTickBucket);
    int allowed = 0;
    for (int64_t call = 0; call < 200; ++call) {
      const core::Now now{.mono_ns = call * 300'000};  // 3.5 calls an interval.
      const int64_t cost = call % 5 == 4 ? int64_t{1} << 44 : 1 + call % 2;
      const Charge charge{.meter = full_meter, .key = {1, 2}, .cost = cost};
      Outcome outcome;
      const bool decided = full.Decide({&charge, 1}, {&outcome, 1}, now, Mode::kCharge);
      ASSERT_EQ(bare.Allow(*bare_meter, {1, 2}, cost, now), decided) << call;
      ASSERT_EQ(bare.Peek(*bare_meter, {1, 2}, 0, now).reset_after_ns,
                full.Peek(*full_meter, {1, 2}, 0, now).reset_after_ns);
      allowed += decided ? 1 : 0;
    }
    EXPECT_GT(allowed, 10);
    EXPECT_LT(allowed, 190);
  }
}

TEST(MemoryStorePropertyTest, EveryAlgorithmIsTheModel) {
  EXPECT_TRUE(rc::check("store", [](const ModelOps& ops, uint64_t pick) {
    constexpr Algorithm kAlgorithms[] = {Algorithm::kTokenBucket, Algorithm::kSlidingWindow,
                                         Algorithm::kSlidingCounter, Algorithm::kFixedWindow};
    const core::MeterSpec spec = PickSpec(kAlgorithms[pick % 4], pick);
    MemoryStore store({.max_keys = 16});
    const Key128 key{pick * 0x9e3779b97f4a7c15u, pick * 0xd1b54a32d192ed03u};
    const int64_t offset_ns =
        spec.algorithm != Algorithm::kFixedWindow
            ? 0
            : static_cast<int64_t>((core::Uint128{NarrowTable::Spread(key)} *
                                    static_cast<uint64_t>(spec.rate.period.count())) >>
                                   64);
    StoreLimiter limiter(&store, *store.Intern(spec), key);
    CompareWithModel(spec, ops, limiter, offset_ns);
  }));
}

TEST(MemoryStoreTest, EqualSpecsAreOneMeter) {
  MemoryStore store;
  const core::MeterSpec spec{.algorithm = Algorithm::kFixedWindow, .rate = {.units = 5}};
  core::MeterSpec same = spec;
  same.rate.burst = 5;
  same.timezone = "Asia/Tokyo";  // Without an alignment it has no meaning.
  EXPECT_EQ(*store.Intern(spec), *store.Intern(same));
  EXPECT_FALSE(store.Intern({.rate = {.units = -1}}));
}

TEST(MemoryStoreTest, RatesOfCallsLeaveRoomForPolicies) {
  MemoryStore store({.max_keys = 10});
  const auto spec = [](int64_t units) {
    return core::MeterSpec{
        .rate = {.units = units, .period = std::chrono::hours(1), .burst = units}};
  };
  for (int64_t units = 1; units <= MeterRegistry::kMaxMetersOfCalls; ++units)
    ASSERT_TRUE(store.InternForCall(spec(units)));
  EXPECT_FALSE(store.InternForCall(spec(99'991)));
  EXPECT_TRUE(store.InternForCall(spec(7)));  // Known already.
  EXPECT_TRUE(store.Intern(spec(99'991)));
}

// A reservation made under one rate and settled after the counter moved to the other table.
TEST(MemoryStoreTest, SettlesAcrossAChangeOfTheForm) {
  MemoryStore store({.max_keys = 10});
  const auto meter = [&](int64_t units) {
    return *store.Intern(
        {.rate = {.units = units, .period = std::chrono::hours(1), .burst = units}});
  };
  const core::Meter *packed = meter(100), *wide = meter(99'991);
  ASSERT_TRUE(packed->packed());
  ASSERT_FALSE(wide->packed());
  const Key128 key{1, 2ull << 20};
  const core::Now now{.mono_ns = 1000};
  Charge charge{.meter = packed, .key = key, .cost = 50};
  Outcome reserved, next;
  EXPECT_TRUE(store.Decide({&charge, 1}, {&reserved, 1}, now, Mode::kReserve));
  charge = {.meter = wide, .key = key, .cost = 1};
  EXPECT_TRUE(store.Decide({&charge, 1}, {&next, 1}, now, Mode::kCharge));
  EXPECT_EQ(next.step.remaining, 99'991 - 51);
  EXPECT_TRUE(store.Settle(*packed, key, reserved.receipt, 50, 10, now));
  EXPECT_EQ(store.Peek(*wide, key, 0, now).remaining, 99'991 - 11);
  EXPECT_EQ(store.TrackedKeys(now), 1);
}

// A reservation made under a slow rate, settled after a faster one has refilled the bucket and
// others took it all.
TEST(MemoryStoreTest, Case85_AFasterRateHasRefilledWhatASettleGivesBack) {
  for (const int64_t fast_units : {18'000, 17'999}) {  // With one word of state, and with two.
    MemoryStore store({.max_keys = 10});
    const auto meter = [&](int64_t units) {
      return *store.Intern(
          {.rate = {.units = units, .period = std::chrono::hours(1), .burst = 10}});
    };
    const core::Meter *slow = meter(60), *fast = meter(fast_units);
    ASSERT_EQ(fast->packed(), fast_units == 18'000);
    const Key128 key{1, 2ull << 20};
    const auto charge = [&](const core::Meter* rate, int64_t cost, int64_t at_ns) {
      const Charge all{.meter = rate, .key = key, .cost = cost};
      Outcome outcome;
      EXPECT_TRUE(store.Decide({&all, 1}, {&outcome, 1}, {at_ns, 0}, Mode::kReserve));
      return outcome.receipt;
    };
    constexpr int64_t kStartNs = 1000, kFullNs = 3'000'001'000;
    const core::Receipt first = charge(slow, 10, kStartNs);
    charge(fast, 0, kStartNs);  // From here on the bucket fills at the new rate.
    const core::Receipt second = charge(fast, 10, kFullNs);
    EXPECT_FALSE(store.Settle(*slow, key, first, 10, 0, {kFullNs, 0}));
    EXPECT_EQ(store.Peek(*fast, key, 0, {kFullNs, 0}).remaining, 0);
    // Nor may an overrun of the first hide from another settle that the rate has changed.
    EXPECT_TRUE(store.Settle(*slow, key, first, 10, 11, {kFullNs, 0}));
    EXPECT_FALSE(store.Settle(*slow, key, first, 10, 0, {kFullNs, 0}));
    EXPECT_TRUE(store.Settle(*fast, key, second, 10, 0, {kFullNs, 0}));
    EXPECT_EQ(store.Peek(*fast, key, 0, {kFullNs, 0}).remaining, 9);
  }
}

// One key under rates that change, as a reload or callers who bring their own rate do it.
class ChangingRate {
 public:
  const core::Meter* Bucket(int64_t units_per_hour) {
    return *store_.Intern(
        {.rate = {.units = units_per_hour, .period = std::chrono::hours(1), .burst = 10}});
  }
  const core::Meter* Window(int64_t units, std::chrono::seconds length) {
    return *store_.Intern({.algorithm = Algorithm::kFixedWindow,
                           .rate = {.units = units, .period = length, .burst = units}});
  }
  core::Receipt Take(const core::Meter* meter, int64_t cost, int64_t now_ns) {
    const Charge charge{.meter = meter, .key = key_, .cost = cost};
    Outcome outcome;
    EXPECT_TRUE(store_.Decide({&charge, 1}, {&outcome, 1}, {now_ns, 0}, Mode::kReserve));
    return outcome.receipt;
  }
  bool Release(const core::Meter* meter, core::Receipt receipt, int64_t cost, int64_t now_ns) {
    return store_.Release(*meter, key_, receipt, cost, {now_ns, 0});
  }
  int64_t Remaining(const core::Meter* meter, int64_t now_ns) {
    return store_.Peek(*meter, key_, 0, {now_ns, 0}).remaining;
  }

 private:
  MemoryStore store_{{.max_keys = 10}};
  const Key128 key_{1, 2ull << 20};
};

// A fast rate that came and went while a call was open has refilled what it reserved; whether the
// old rate is back or a third one holds, nothing of the others' charges is given back.
TEST(MemoryStoreTest, Case85_ARateThatCameAndWentHasRefilled) {
  constexpr int64_t kStartNs = 1'000'000'000, kFullNs = 4'000'000'000;
  for (const int64_t fast_units : {18'000, 17'999}) {  // 5 a second: one word of state, and two.
    for (const int64_t last_units : {60, 30}) {
      ChangingRate rate;
      const core::Meter *slow = rate.Bucket(60), *fast = rate.Bucket(fast_units);
      const core::Meter* last = rate.Bucket(last_units);
      const core::Receipt open = rate.Take(slow, 10, kStartNs);
      rate.Take(fast, 0, kStartNs);
      EXPECT_EQ(rate.Remaining(fast, kFullNs), 10);
      rate.Take(last, 10, kFullNs);
      EXPECT_FALSE(rate.Release(slow, open, 10, kFullNs)) << fast_units << " " << last_units;
      EXPECT_EQ(rate.Remaining(last, kFullNs), 0) << fast_units << " " << last_units;
    }
  }
}

TEST(MemoryStoreTest, Case85_ARateThatCameAndWentHasRefilledAPart) {
  constexpr int64_t kStartNs = 1'000'000'000, kNextNs = 2'000'000'000;
  ChangingRate rate;
  const core::Meter *slow = rate.Bucket(60), *fast = rate.Bucket(18'000);
  const core::Receipt open = rate.Take(slow, 10, kStartNs);
  rate.Take(fast, 0, kStartNs);
  rate.Take(slow, 0, kNextNs);
  EXPECT_EQ(rate.Remaining(slow, kNextNs), 5);  // After a second 5 of the 10 are back.
  rate.Take(slow, 5, kNextNs);
  EXPECT_TRUE(rate.Release(slow, open, 10, kNextNs));
  EXPECT_EQ(rate.Remaining(slow, kNextNs), 5);
}

TEST(MemoryStoreTest, AChangeBeforeTheChargeHasNoPartInItsSettle) {
  constexpr int64_t kSec = 1'000'000'000;
  ChangingRate rate;
  const core::Meter *slow = rate.Bucket(60), *fast = rate.Bucket(18'000);
  rate.Take(fast, 10, kSec);
  rate.Take(slow, 0, 2 * kSec);
  const core::Receipt open = rate.Take(slow, 5, 10 * kSec);
  EXPECT_EQ(rate.Remaining(slow, 10 * kSec), 0);
  EXPECT_TRUE(rate.Release(slow, open, 5, 20 * kSec));
  EXPECT_EQ(rate.Remaining(slow, 20 * kSec), 5);
}

TEST(MemoryStoreTest, Case85_AShortWindowThatCameAndWentHasEnded) {
  constexpr int64_t kSec = 1'000'000'000;
  ChangingRate rate;
  const core::Meter* hour = rate.Window(10, std::chrono::hours(1));
  const core::Meter* second = rate.Window(10, std::chrono::seconds(1));
  const core::Receipt open = rate.Take(hour, 10, 5 * kSec);
  rate.Take(second, 0, 5 * kSec);
  rate.Take(second, 10, 7 * kSec);
  rate.Take(hour, 0, 7 * kSec);
  EXPECT_EQ(rate.Remaining(hour, 7 * kSec), 0);
  EXPECT_FALSE(rate.Release(hour, open, 10, 7 * kSec));
  EXPECT_EQ(rate.Remaining(hour, 7 * kSec), 0);
}

TEST(MemoryStoreTest, AWindowOfAnotherLimitGivesBackInFull) {
  ChangingRate rate;
  const core::Meter* ten = rate.Window(10, std::chrono::hours(1));
  const core::Meter* twenty = rate.Window(20, std::chrono::hours(1));
  const core::Receipt open = rate.Take(ten, 10, 1000);
  rate.Take(twenty, 5, 1000);
  EXPECT_TRUE(rate.Release(ten, open, 8, 1000));
  EXPECT_EQ(rate.Remaining(twenty, 1000), 13);
}

// A count too large for the word that a small limit packs it in stays at its largest: how much a
// refund would leave is not known.
TEST(MemoryStoreTest, ACountBeyondThePackedOneStaysUntilItsWindowEnds) {
  ChangingRate rate;
  const core::Meter* huge = rate.Window(4'000'000'000'000'000, std::chrono::hours(1));
  const core::Meter* ten = rate.Window(10, std::chrono::hours(1));
  const core::Receipt open = rate.Take(huge, 3'000'000'000'000'000, 1000);
  rate.Take(huge, 1'000'000'000'000'000, 1000);
  rate.Take(ten, 0, 1000);
  EXPECT_FALSE(rate.Release(huge, open, 3'000'000'000'000'000, 1000));
  EXPECT_EQ(rate.Remaining(ten, 1000), 0);
}

TEST(MemoryStoreTest, ACalendarWindowIsTheSameWhateverItsPeriod) {
  MemoryStore store({.max_keys = 10});
  core::MeterSpec spec{.algorithm = Algorithm::kFixedWindow,
                       .rate = {.units = 10, .period = std::chrono::hours(24)},
                       .alignment = core::Alignment::kDay};
  const core::Meter* day = *store.Intern(spec);
  spec.rate = {.units = 20, .period = std::chrono::hours(1)};
  const core::Meter* same_day = *store.Intern(spec);
  const core::Now now{.mono_ns = 1000, .wall_ns = 1'767'225'600'000'000'000};
  const Charge charge{.meter = day, .key = {1, 2}, .cost = 10};
  Outcome outcome;
  EXPECT_TRUE(store.Decide({&charge, 1}, {&outcome, 1}, now, Mode::kReserve));
  const Charge next{.meter = same_day, .key = {1, 2}, .cost = 0};
  Outcome peeked;
  store.Decide({&next, 1}, {&peeked, 1}, now, Mode::kCharge);
  EXPECT_EQ(peeked.step.remaining, 10);
  EXPECT_TRUE(store.Release(*day, {1, 2}, outcome.receipt, 10, now));
  EXPECT_EQ(store.Peek(*same_day, {1, 2}, 0, now).remaining, 20);
}

}  // namespace
}  // namespace weir::store
