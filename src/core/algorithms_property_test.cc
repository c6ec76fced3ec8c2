// Every algorithm against the model, over random limits, costs and times. On a failure RapidCheck
// prints the seed and the shortest history that shows it.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/meter.h"
#include "core/refund_total.h"
#include "testing/model_check.h"

namespace weir::core {
namespace {

using ::weir::testing::CompareWithModel;
using ::weir::testing::ModelOps;
using ::weir::testing::PickSpec;

template <typename Algorithm>
class Limiter {
 public:
  explicit Limiter(const Algorithm& algorithm) : algorithm_(algorithm) {}

  Step Charge(int64_t cost, int64_t now_ns, Receipt* receipt) {
    Step step;
    if constexpr (kWindow)
      step = algorithm_.Charge(&state_, cost, {now_ns, 0}, 0, receipt);
    else
      step = algorithm_.Charge(&state_, cost, now_ns, receipt);
    receipt->mark = returned_.mark();
    return step;
  }
  Step Test(int64_t cost, int64_t now_ns) {
    if constexpr (kWindow)
      return algorithm_.Test(state_, cost, {now_ns, 0}, 0);
    else if constexpr (requires { algorithm_.Test(state_, cost, now_ns); })
      return algorithm_.Test(state_, cost, now_ns);
    else
      return algorithm_.Test(&state_, cost, now_ns);
  }
  void Settle(Receipt receipt, int64_t reserved, int64_t actual, int64_t now_ns) {
    const int64_t delta = reserved - actual;
    if constexpr (kWindow) {
      if (delta > 0) algorithm_.Refund(&state_, receipt, delta, {now_ns, 0}, 0);
      if (delta < 0) algorithm_.Overrun(&state_, -delta, {now_ns, 0}, 0);
    } else {
      if constexpr (requires { algorithm_.IsLast(state_, receipt, now_ns); }) {
        if (delta > 0) RefundOpen(algorithm_, &state_, &returned_, receipt, delta, now_ns);
      } else {
        if (delta > 0) algorithm_.Refund(&state_, receipt, delta, now_ns);
      }
      if (delta < 0) algorithm_.Overrun(&state_, -delta, now_ns);
    }
  }

 private:
  static constexpr bool kWindow = std::is_same_v<Algorithm, FixedWindow>;
  const Algorithm& algorithm_;
  typename Algorithm::State state_{};
  RefundTotal returned_;
};

template <typename Algorithm>
void Compare(const Algorithm& algorithm, const MeterSpec& spec, const ModelOps& ops) {
  Limiter<Algorithm> limiter(algorithm);
  CompareWithModel(spec, ops, limiter);
}

TEST(AlgorithmsPropertyTest, TickBucketIsTheModel) {
  EXPECT_TRUE(rc::check("tick bucket", [](const ModelOps& ops, uint64_t pick) {
    const MeterSpec spec = PickSpec(Algorithm::kTokenBucket, pick);
    if (const auto bucket = TickBucket::Fit(spec.rate)) Compare(*bucket, spec, ops);
  }));
}

TEST(AlgorithmsPropertyTest, ExactBucketIsTheModel) {
  EXPECT_TRUE(rc::check("exact bucket", [](const ModelOps& ops, uint64_t pick) {
    const MeterSpec spec = PickSpec(Algorithm::kTokenBucket, pick);
    Compare(ExactBucket(spec.rate), spec, ops);
  }));
}

TEST(AlgorithmsPropertyTest, SlidingLogIsTheModel) {
  EXPECT_TRUE(rc::check("sliding log", [](const ModelOps& ops, uint64_t pick) {
    const MeterSpec spec = PickSpec(Algorithm::kSlidingWindow, pick);
    Compare((*Meter::Compile(spec))->log(), spec, ops);
  }));
}

TEST(AlgorithmsPropertyTest, SlidingCounterAndItsStrictVariantAreTheModel) {
  EXPECT_TRUE(rc::check("sliding counter", [](const ModelOps& ops, uint64_t pick) {
    const MeterSpec spec = PickSpec(Algorithm::kSlidingCounter, pick);
    const auto meter = *Meter::Compile(spec);
    spec.strict ? Compare(meter->strict_counter(), spec, ops)
                : Compare(meter->counter(), spec, ops);
  }));
}

TEST(AlgorithmsPropertyTest, FixedWindowIsTheModel) {
  EXPECT_TRUE(rc::check("fixed window", [](const ModelOps& ops, uint64_t pick) {
    const MeterSpec spec = PickSpec(Algorithm::kFixedWindow, pick);
    Compare((*Meter::Compile(spec))->window(), spec, ops);
  }));
}

// In no true window do the log and the strict counter admit more than the limit.
TEST(AlgorithmsPropertyTest, NoTrueWindowHoldsMoreThanTheLimit) {
  EXPECT_TRUE(rc::check("true windows", [](const ModelOps& ops, bool strict) {
    const MeterSpec spec{
        .algorithm = strict ? Algorithm::kSlidingCounter : Algorithm::kSlidingWindow,
        .rate = {.units = 10, .period = std::chrono::nanoseconds(1003)},
        .strict = strict};
    const auto meter = *Meter::Compile(spec);
    SlidingLogState log;
    StrictCounterState counter;
    std::vector<std::pair<int64_t, int64_t>> admitted;
    int64_t now_ns = 0;
    for (const auto& [kind, gap, amount] : ops) {
      now_ns += gap % 400;
      const int64_t cost = 1 + amount % 4;
      const Step step = strict ? meter->strict_counter().Charge(&counter, cost, now_ns)
                               : meter->log().Charge(&log, cost, now_ns);
      if (step.allowed) admitted.emplace_back(now_ns, cost);
      int64_t sum = 0;
      for (const auto& [at_ns, units] : admitted) sum += at_ns > now_ns - 1003 ? units : 0;
      RC_ASSERT(sum <= 10);
    }
  }));
}

// As many charges as the places that are kept, given back in any order: nothing is lost.
TEST(AlgorithmsPropertyTest, AllComesBackInAnyOrder) {
  EXPECT_TRUE(rc::check("all comes back", [](std::vector<uint32_t> picks) {
    const Rate rate{.units = 3, .period = std::chrono::nanoseconds(1000), .burst = 100};
    const auto bucket = *TickBucket::Fit(rate);
    Limiter<TickBucket> limiter(bucket);
    std::vector<std::pair<Receipt, int64_t>> open;
    int64_t now_ns = 0;
    for (const uint32_t pick : picks) {
      Receipt receipt;
      const int64_t cost = 1 + pick % 5;
      RC_ASSERT(limiter.Charge(cost, now_ns, &receipt).allowed);
      open.emplace_back(receipt, cost);
      if (open.size() < RefundTotal::kPlaces) continue;
      std::shuffle(open.begin(), open.end(), std::minstd_rand(pick));
      for (const auto& [charge, units] : open) limiter.Settle(charge, units, 0, now_ns);
      open.clear();
      RC_ASSERT(limiter.Test(100, now_ns).allowed);
      now_ns += 100'000;
    }
  }));
}

// Charges that are settled in any order, for less than they reserved: in no interval do those that
// began in it use more than the capacity and what is refilled in it.
TEST(AlgorithmsPropertyTest, WhatComesBackNeverAdmitsMore) {
  EXPECT_TRUE(rc::check("refunds", [](const ModelOps& ops, uint64_t pick) {
    constexpr int64_t kUnits = 3, kPeriodNs = 1000;
    const Rate rate{.units = kUnits,
                    .period = std::chrono::nanoseconds(kPeriodNs),
                    .burst = static_cast<int64_t>(1 + pick % 6)};
    const ExactBucket exact(rate);
    const auto tick = *TickBucket::Fit(rate);
    Limiter<ExactBucket> exact_limiter(exact);
    Limiter<TickBucket> tick_limiter(tick);
    struct Call {
      int64_t at_ns, reserved, used;
      Receipt exact, tick;
      bool open;
    };
    std::vector<Call> calls;
    int64_t now_ns = 0;
    for (const auto& [kind, gap, amount] : ops) {
      now_ns += gap % 3 == 0 ? 0 : gap % 500;
      if (kind % 2 == 0 && !calls.empty()) {
        Call& call = calls[amount % calls.size()];
        if (!call.open) continue;
        call.open = false;
        call.used = static_cast<int64_t>(gap % static_cast<uint64_t>(call.reserved + 1));
        exact_limiter.Settle(call.exact, call.reserved, call.used, now_ns);
        tick_limiter.Settle(call.tick, call.reserved, call.used, now_ns);
        continue;
      }
      Call call{now_ns, static_cast<int64_t>(1 + amount % 3), 0, {}, {}, true};
      call.used = call.reserved;
      const Step step = exact_limiter.Charge(call.reserved, now_ns, &call.exact);
      RC_ASSERT(step == tick_limiter.Charge(call.reserved, now_ns, &call.tick));
      if (step.allowed) calls.push_back(call);
      for (const Call& first : calls) {
        int64_t used = 0;
        for (const Call& other : calls) used += other.at_ns >= first.at_ns ? other.used : 0;
        RC_ASSERT(used * kPeriodNs <= rate.burst * kPeriodNs + kUnits * (now_ns - first.at_ns));
      }
    }
  }));
}

// Time that goes back, or differs between callers: by the callers' own clocks, no interval ever
// sees more than the capacity and what is refilled in it.
TEST(AlgorithmsPropertyTest, StaleTimeNeverAdmitsMore) {
  EXPECT_TRUE(rc::check("stale time", [](const ModelOps& ops, uint64_t pick) {
    const MeterSpec spec = PickSpec(Algorithm::kTokenBucket, pick);
    const ExactBucket exact(spec.rate);
    const auto tick = TickBucket::Fit(spec.rate);
    ExactBucketState exact_state;
    int64_t tat = 0, newest_ns = 0;
    std::vector<std::pair<int64_t, int64_t>> admitted;
    for (const auto& [kind, gap, amount] : ops) {
      newest_ns += gap % 3 == 0 ? gap * int64_t{1000} : 0;
      const int64_t now_ns = std::max<int64_t>(newest_ns - (kind % 2 == 0 ? gap : 0), 0);
      const int64_t cost = 1 + amount % 3;
      const bool allowed = exact.Charge(&exact_state, cost, now_ns).allowed;
      if (tick) RC_ASSERT(tick->Charge(&tat, cost, now_ns).allowed == allowed);
      if (allowed) admitted.emplace_back(now_ns, cost);
    }
    for (const auto& [from_ns, ignored] : admitted) {
      for (const auto& [to_ns, also_ignored] : admitted) {
        Int128 sum = 0;
        for (const auto& [at_ns, units] : admitted) {
          sum += at_ns >= from_ns && at_ns <= to_ns ? units : 0;
        }
        RC_ASSERT(sum == 0 || sum * spec.rate.period.count() <=
                                  Int128{spec.rate.burst} * spec.rate.period.count() +
                                      Int128{to_ns - from_ns} * spec.rate.units);
      }
    }
  }));
}

}  // namespace
}  // namespace weir::core
