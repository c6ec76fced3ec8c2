// Faults that other rate limiters shipped, each with the answer that is right.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/meter.h"

namespace weir::core {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSec = 1'000 * kMs;
constexpr int64_t kDay = 86'400 * kSec;

// A token bucket in both of its forms, which must agree at every step.
class Bucket {
 public:
  Bucket(int64_t units, std::chrono::nanoseconds period, int64_t burst)
      : rate_{.units = units, .period = period, .burst = burst},
        exact_(rate_),
        tick_(TickBucket::Fit(rate_)) {}

  Step Charge(int64_t cost, int64_t now_ns) {
    const Step step = exact_.Charge(&exact_state_, cost, now_ns, &exact_receipt_);
    if (tick_) {
      EXPECT_EQ(tick_->Charge(&tat_, cost, now_ns, &tick_receipt_), step);
    }
    return step;
  }
  // Gives back of the last charge.
  void Refund(int64_t units, int64_t now_ns) {
    exact_.Refund(&exact_state_, exact_receipt_, units, now_ns);
    if (tick_) tick_->Refund(&tat_, tick_receipt_, units, now_ns);
  }
  void Overrun(int64_t units, int64_t now_ns) {
    exact_.Overrun(&exact_state_, units, now_ns);
    if (tick_) tick_->Overrun(&tat_, units, now_ns);
  }

 private:
  Rate rate_;
  ExactBucket exact_;
  std::optional<TickBucket> tick_;
  ExactBucketState exact_state_;
  Receipt exact_receipt_, tick_receipt_;
  int64_t tat_ = 0;
};

int64_t RetryAfterSec(const Step& step) { return (step.retry_after_ns + kSec - 1) / kSec; }

TEST(TokenBucketTest, Case1_RefillsWhileRefusedCallsKeepComing) {
  Bucket bucket(1, 90s, 1);
  std::vector<int64_t> allowed;
  for (int64_t t = 0; t <= 600; t += 10) {
    if (bucket.Charge(1, t * kSec).allowed) allowed.push_back(t);
  }
  EXPECT_EQ(allowed, (std::vector<int64_t>{0, 90, 180, 270, 360, 450, 540}));
}

TEST(TokenBucketTest, Case3_NoTokenIsLostToRounding) {
  Bucket bucket(10, 13s, 1);
  for (int64_t k = 0; k < 1000; ++k) EXPECT_TRUE(bucket.Charge(1, k * 1300 * kMs).allowed) << k;
  Bucket fresh(10, 13s, 1);
  EXPECT_TRUE(fresh.Charge(1, 0).allowed);
  EXPECT_FALSE(fresh.Charge(1, 1'299'999'000).allowed);
  EXPECT_TRUE(fresh.Charge(1, 1'300 * kMs).allowed);
}

TEST(TokenBucketTest, Case4_WaitIsExact) {
  Bucket bucket(1, 1s, 1);
  EXPECT_TRUE(bucket.Charge(1, 0).allowed);
  const Step denied = bucket.Charge(1, 200 * kMs);
  EXPECT_EQ(denied, (Step{false, 0, 800 * kMs, 800 * kMs}));
  EXPECT_EQ(RetryAfterSec(denied), 1);
  EXPECT_TRUE(bucket.Charge(1, 1 * kSec).allowed);
}

TEST(TokenBucketTest, Case5_NotBeforeTheAnnouncedWait) {
  Bucket bucket(6, 60s, 6);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(bucket.Charge(1, 0).allowed);
  EXPECT_EQ(bucket.Charge(1, 5 * kSec).retry_after_ns, 5 * kSec);
  EXPECT_EQ(bucket.Charge(1, 9'900 * kMs).retry_after_ns, 100 * kMs);
  EXPECT_TRUE(bucket.Charge(1, 10 * kSec).allowed);
}

TEST(TokenBucketTest, Case7_WaitNeitherTooShortNorOneTooMany) {
  Bucket one(1, 10s, 1);
  EXPECT_TRUE(one.Charge(1, 0).allowed);
  const Step denied = one.Charge(1, 300 * kMs);
  EXPECT_EQ(denied, (Step{false, 0, 9'700 * kMs, 9'700 * kMs}));
  EXPECT_EQ(RetryAfterSec(denied), 10);
  Bucket fresh(30, 60s, 16);
  EXPECT_EQ(fresh.Charge(1, 0), (Step{true, 15, 2 * kSec, 0}));
}

TEST(TokenBucketTest, Case8_TwoPerSecondPolledEachQuarter) {
  Bucket bucket(2, 1s, 1);
  std::vector<int> allowed;
  for (int i = 0; i < 8; ++i) allowed.push_back(bucket.Charge(1, i * 250 * kMs).allowed);
  EXPECT_EQ(allowed, (std::vector<int>{1, 0, 1, 0, 1, 0, 1, 0}));
}

int AllowedOfPolls(int64_t per_second) {
  Bucket bucket(per_second, 1s, 1);
  int allowed = 0;
  for (int i = 0; i < 10'000; ++i) allowed += bucket.Charge(1, i * 100'000).allowed;
  return allowed;
}

TEST(TokenBucketTest, Case9_RatesAboveOneThousandPerSecond) {
  EXPECT_EQ(AllowedOfPolls(3'000), 2'500);
  EXPECT_EQ(AllowedOfPolls(8'000), 5'000);
  EXPECT_EQ(AllowedOfPolls(1'000'000), 10'000);
}

TEST(TokenBucketTest, Case14_MoreUnitsThanMillisecondsInThePeriod) {
  Bucket bucket(2000, 1s, 2000);
  for (int i = 0; i < 2000; ++i) EXPECT_TRUE(bucket.Charge(1, 0).allowed);
  const Step denied = bucket.Charge(1, 0);
  EXPECT_EQ(denied.retry_after_ns, 500'000);
  EXPECT_EQ(RetryAfterSec(denied), 1);
}

TEST(TokenBucketTest, Case15_TheLastPermittedCallPasses) {
  Bucket bucket(5, 5s, 5);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(bucket.Charge(1, 0).allowed) << i;
  EXPECT_FALSE(bucket.Charge(1, 0).allowed);
}

TEST(TokenBucketTest, Case17_RefundNeverAboveTheCapacity) {
  Bucket bucket(10, 60s, 10);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(bucket.Charge(1, 0).allowed);
  bucket.Refund(1, 0);
  EXPECT_TRUE(bucket.Charge(1, 0).allowed);
  EXPECT_FALSE(bucket.Charge(1, 0).allowed);
  Bucket full(10, 60s, 10);
  full.Refund(50, 0);
  EXPECT_EQ(full.Charge(0, 0).remaining, 10);
  EXPECT_TRUE(full.Charge(10, 0).allowed);
  EXPECT_FALSE(full.Charge(1, 0).allowed);
}

TEST(TokenBucketTest, Case18_CostZeroPeeks) {
  Bucket bucket(3, 60s, 3);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(bucket.Charge(0, 0), (Step{true, 3, 0, 0}));
}

TEST(TokenBucketTest, Case19_ResetCountsAllUnits) {
  Bucket bucket(10, 60s, 10);
  EXPECT_EQ(bucket.Charge(5, 0), (Step{true, 5, 30 * kSec, 0}));
}

TEST(TokenBucketTest, Case23_RefusedCallsDoNotProlong) {
  Bucket bucket(2, 4s, 2);
  std::vector<int64_t> allowed;
  for (int64_t t = 0; t < 12; ++t) {
    if (bucket.Charge(1, t * kSec).allowed) allowed.push_back(t);
  }
  EXPECT_EQ(allowed, (std::vector<int64_t>{0, 1, 2, 4, 6, 8, 10}));
}

TEST(TokenBucketTest, Case26_ThirtyDays) {
  Bucket bucket(1, 24h * 30, 1);
  EXPECT_TRUE(bucket.Charge(1, 0).allowed);
  EXPECT_EQ(RetryAfterSec(bucket.Charge(1, 2'147'484 * kSec)), 444'516);
  EXPECT_EQ(RetryAfterSec(bucket.Charge(1, 25 * kDay)), 432'000);
  EXPECT_TRUE(bucket.Charge(1, 30 * kDay).allowed);
}

TEST(TokenBucketTest, Case28_LargeLimitsAreExact) {
  Bucket bucket(200'000'000'000'000, 24h, 200'000'000'000'000);
  EXPECT_EQ(bucket.Charge(150'000'000'000'001, 0).remaining, 49'999'999'999'999);
}

TEST(TokenBucketTest, Case30_ThousandsOfTokensPerMinute) {
  Bucket bucket(40'000, 1min, 40'000);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(bucket.Charge(800, 0).allowed);
  const Step denied = bucket.Charge(800, 0);
  EXPECT_EQ(denied.retry_after_ns, 1'200 * kMs);
  EXPECT_EQ(RetryAfterSec(denied), 2);
}

TEST(TokenBucketTest, Case31_CountsOverThePeriod) {
  Bucket bucket(100, 1s, 100);
  int allowed = 0;
  for (int i = 0; i < 180; ++i) allowed += bucket.Charge(1, i * kSec / 15).allowed;
  EXPECT_EQ(allowed, 180);
}

TEST(TokenBucketTest, Case83e_DebtIsRepaidByWaiting) {
  Bucket bucket(100, 1min, 100);
  EXPECT_TRUE(bucket.Charge(100, 0).allowed);
  bucket.Overrun(50, 0);
  EXPECT_EQ(bucket.Charge(1, 0), (Step{false, 0, 90 * kSec, 30'600 * kMs}));
  EXPECT_FALSE(bucket.Charge(1, 30'600 * kMs - 1).allowed);
  EXPECT_TRUE(bucket.Charge(1, 30'600 * kMs).allowed);
}

TEST(TokenBucketTest, Case85_TimeThatRefilledIsNotRefundedAgain) {
  const ExactBucket exact({.units = 1000, .period = 60s, .burst = 1000});
  const TickBucket tick = *TickBucket::Fit({.units = 1000, .period = 60s, .burst = 1000});
  ExactBucketState state;
  int64_t tat = 0;
  Receipt exact_receipt, tick_receipt;
  EXPECT_TRUE(exact.Charge(&state, 1000, 0, &exact_receipt).allowed);
  EXPECT_TRUE(tick.Charge(&tat, 1000, 0, &tick_receipt).allowed);
  EXPECT_TRUE(exact.Charge(&state, 1000, 60 * kSec).allowed);
  EXPECT_TRUE(tick.Charge(&tat, 1000, 60 * kSec).allowed);
  EXPECT_FALSE(exact.Refund(&state, exact_receipt, 954, 60 * kSec));
  EXPECT_EQ(tick.Refund(&tat, tick_receipt, 954, 60 * kSec), 0);
  EXPECT_EQ(exact.Test(state, 0, 60 * kSec).remaining, 0);
  EXPECT_EQ(tick.Test(tat, 0, 60 * kSec).remaining, 0);
}

TEST(TokenBucketTest, CostAboveTheCapacityNeverPasses) {
  Bucket bucket(10, 1s, 10);
  EXPECT_EQ(bucket.Charge(11, 0), (Step{false, 10, 0, kNever}));
  EXPECT_EQ(bucket.Charge(kMaxUnits, 0).retry_after_ns, kNever);
  EXPECT_TRUE(bucket.Charge(10, 0).allowed);
}

TEST(TokenBucketTest, IdleForYearsGivesTheCapacityAndNoMore) {
  Bucket bucket(7, 1s, 7);
  EXPECT_TRUE(bucket.Charge(7, 0).allowed);
  EXPECT_TRUE(bucket.Charge(7, kHorizonNs).allowed);
  EXPECT_FALSE(bucket.Charge(1, kHorizonNs).allowed);
}

TEST(TokenBucketTest, HealingABaseAheadKeepsTheDebt) {
  const ExactBucket bucket({.units = 1, .period = 1s, .burst = 10});
  ExactBucketState state;
  EXPECT_TRUE(bucket.Charge(&state, 10, 1'000'000 * kSec).allowed);
  bucket.Overrun(&state, 5, 1'000'000 * kSec);
  ExactBucketState near = state;
  EXPECT_FALSE(bucket.Heal(&near, 999'999 * kSec));  // A second is no fault.
  EXPECT_TRUE(bucket.Heal(&state, 10 * kSec));
  EXPECT_EQ(bucket.Test(state, 1, 10 * kSec), (Step{false, 0, 15 * kSec, 6 * kSec}));
}

TEST(TokenBucketTest, CarriesUsedUnitsToAnotherRate) {
  const TickBucket slow = *TickBucket::Fit({.units = 10, .period = 1h, .burst = 10});
  const TickBucket fast = *TickBucket::Fit({.units = 20, .period = 1h, .burst = 20});
  int64_t tat = 0;
  EXPECT_TRUE(slow.Charge(&tat, 10, 5 * kSec).allowed);
  tat = fast.Carry(tat, slow, 5 * kSec);
  EXPECT_EQ(fast.Test(tat, 0, 5 * kSec).remaining, 10);
}

TEST(FixedWindowTest, Case23_RefusedCallsDoNotProlong) {
  const FixedWindow window(2, 4 * kSec);
  const SlidingLog log(2, 4 * kSec);
  const SlidingCounter counter(2, 4 * kSec);
  FixedWindowState window_state;
  SlidingLogState log_state;
  SlidingCounterState counter_state;
  std::vector<int64_t> by_window, by_log, by_counter;
  for (int64_t t = 0; t < 12; ++t) {
    if (window.Charge(&window_state, 1, {t * kSec, 0}, 0).allowed) by_window.push_back(t);
    if (log.Charge(&log_state, 1, t * kSec).allowed) by_log.push_back(t);
    if (counter.Charge(&counter_state, 1, t * kSec).allowed) by_counter.push_back(t);
  }
  EXPECT_EQ(by_window, (std::vector<int64_t>{0, 1, 4, 5, 8, 9}));
  EXPECT_EQ(by_log, (std::vector<int64_t>{0, 1, 4, 5, 8, 9}));
  EXPECT_EQ(by_counter, (std::vector<int64_t>{0, 1, 6, 8}));
}

TEST(SlidingCounterTest, Case22_ThePreviousWindowKeepsItsWeight) {
  const SlidingCounter counter(1, 60 * kSec);
  const SlidingLog log(1, 60 * kSec);
  SlidingCounterState state;
  SlidingLogState log_state;
  EXPECT_TRUE(counter.Charge(&state, 1, 59 * kSec).allowed);
  EXPECT_TRUE(log.Charge(&log_state, 1, 59 * kSec).allowed);
  int64_t counter_next = 0, log_next = 0;
  for (int64_t t = 61; t <= 130; ++t) {
    if (counter.Charge(&state, 1, t * kSec).allowed && counter_next == 0) counter_next = t;
    if (log.Charge(&log_state, 1, t * kSec).allowed && log_next == 0) log_next = t;
  }
  EXPECT_EQ(counter_next, 120);
  EXPECT_EQ(log_next, 119);
}

TEST(SlidingLogTest, Case10_DebtDoesNotWrapAround) {
  const SlidingLog log(10, 60 * kSec);
  SlidingLog::State state;
  for (int i = 0; i < 2000; ++i) log.Overrun(&state, kMaxUnits, i);
  const Step step = log.Test(&state, 1, 2000);
  EXPECT_FALSE(step.allowed);
  EXPECT_EQ(step.remaining, 0);
  EXPECT_TRUE(log.Test(&state, 10, 60 * kSec + 2000).allowed);
}

TEST(FixedWindowTest, Case52_WaitEndsWithTheWindow) {
  const FixedWindow window(5, 60 * kSec);
  FixedWindowState state;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(window.Charge(&state, 1, {0, 0}, 0).allowed);
  const Step denied = window.Charge(&state, 1, {2'400 * kMs, 0}, 0);
  EXPECT_EQ(RetryAfterSec(denied), 58);
  EXPECT_TRUE(window.Charge(&state, 1, {2'400 * kMs + denied.retry_after_ns, 0}, 0).allowed);
  Bucket bucket(10, 1s, 1);
  EXPECT_TRUE(bucket.Charge(1, 0).allowed);
  EXPECT_EQ(RetryAfterSec(bucket.Charge(1, 0)), 1);
}

TEST(FixedWindowTest, Case53_ResetStaysWhenNothingRemains) {
  const FixedWindow window(2, 60 * kSec);
  FixedWindowState state;
  std::vector<int64_t> remaining;
  for (int i = 0; i < 4; ++i) {
    const Step step = window.Charge(&state, 1, {10 * kSec, 0}, 0);
    EXPECT_EQ(step.reset_after_ns, 50 * kSec);
    remaining.push_back(step.remaining);
  }
  EXPECT_EQ(remaining, (std::vector<int64_t>{1, 0, 0, 0}));
}

TEST(FixedWindowTest, WindowsAreShiftedPerKey) {
  const FixedWindow window(1, 60 * kSec);
  FixedWindowState state;
  // Half of all hashes: half a window.
  EXPECT_EQ(window.Charge(&state, 1, {10 * kSec, 0}, uint64_t{1} << 63).reset_after_ns, 20 * kSec);
}

// Seconds of Unix time.
constexpr int64_t Utc(int year, unsigned month, unsigned day, int64_t seconds_of_day) {
  const auto days = std::chrono::sys_days(std::chrono::year(year) / static_cast<int>(month) /
                                          static_cast<int>(day));
  return days.time_since_epoch().count() * int64_t{86'400} + seconds_of_day;
}

std::unique_ptr<const Meter> CalendarMeter(int64_t units, Alignment alignment,
                                           const char* timezone) {
  return *Meter::Compile({.algorithm = Algorithm::kFixedWindow,
                          .rate = {.units = units, .period = 24h * 30},
                          .alignment = alignment,
                          .timezone = timezone});
}

Step ChargeAt(const Meter& meter, FixedWindowState* state, int64_t cost, int64_t unix_sec) {
  return meter.window().Charge(state, cost, {0, unix_sec * kSec}, 0);
}

TEST(CalendarTest, Case48_MonthsHaveTheirLength) {
  const auto meter = CalendarMeter(10, Alignment::kMonth, "UTC");
  FixedWindowState state;
  EXPECT_TRUE(ChargeAt(*meter, &state, 10, Utc(2026, 1, 1, 0)).allowed);
  EXPECT_EQ(RetryAfterSec(ChargeAt(*meter, &state, 1, Utc(2026, 1, 31, 1))), 86'399);
  EXPECT_TRUE(ChargeAt(*meter, &state, 10, Utc(2026, 2, 1, 0)).allowed);
  EXPECT_TRUE(ChargeAt(*meter, &state, 10, Utc(2028, 2, 1, 0)).allowed);
  EXPECT_EQ(RetryAfterSec(ChargeAt(*meter, &state, 1, Utc(2028, 2, 29, 43'200))), 43'200);
}

TEST(CalendarTest, Case49_LocalMonths) {
  const auto meter = CalendarMeter(10, Alignment::kMonth, "Asia/Tokyo");
  FixedWindowState state;
  EXPECT_TRUE(ChargeAt(*meter, &state, 10, Utc(2026, 7, 10, 0)).allowed);
  EXPECT_EQ(RetryAfterSec(ChargeAt(*meter, &state, 1, Utc(2026, 7, 31, 53'999))), 1);
  EXPECT_TRUE(ChargeAt(*meter, &state, 1, Utc(2026, 7, 31, 54'000)).allowed);
}

TEST(CalendarTest, Case51_YesterdayDoesNotCount) {
  const auto meter = CalendarMeter(100, Alignment::kDay, "UTC");
  FixedWindowState state;
  EXPECT_TRUE(ChargeAt(*meter, &state, 100, Utc(2026, 3, 1, 86'399)).allowed);
  const Step step = ChargeAt(*meter, &state, 3, Utc(2026, 3, 2, 0));
  EXPECT_TRUE(step.allowed);
  EXPECT_EQ(step.remaining, 97);
}

// Every window of two years in zones with all sorts of clock changes: they follow each other
// without gap or overlap, and hold every instant that they are asked for.
TEST(CalendarTest, WindowsPartitionTime) {
  for (const char* zone : {"UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe",
                           "America/Havana", "Asia/Kolkata", "Africa/Casablanca"}) {
    for (const Alignment alignment : {Alignment::kHour, Alignment::kDay, Alignment::kWeek,
                                      Alignment::kMonth, Alignment::kYear}) {
      const auto windows = *CalendarWindows::Make(alignment, zone);
      int64_t previous_end = 0;
      for (int64_t t = Utc(2017, 1, 1, 0); t < Utc(2019, 1, 1, 0); t += 1800) {
        const auto window = windows->At(t);
        ASSERT_LE(window.start_sec, t) << zone;
        ASSERT_GT(window.end_sec, t) << zone;
        if (previous_end != 0 && window.end_sec != previous_end) {
          ASSERT_EQ(window.start_sec, previous_end) << zone;
        }
        previous_end = window.end_sec;
      }
    }
  }
}

TEST(CalendarTest, ADayOfTwentyThreeHours) {
  const auto windows = *CalendarWindows::Make(Alignment::kDay, "Europe/Berlin");
  const auto window = windows->At(Utc(2026, 3, 29, 43'200));
  EXPECT_EQ(window.end_sec - window.start_sec, 23 * 3600);
  const auto week = (*CalendarWindows::Make(Alignment::kWeek, "UTC"))->At(Utc(2026, 3, 29, 5));
  EXPECT_EQ(week.start_sec, Utc(2026, 3, 23, 0));  // A Monday.
}

TEST(ParallelTest, LeasesExpireAndAreReleasedOnce) {
  const Parallel parallel(2);
  ParallelState state;
  EXPECT_EQ(parallel.Acquire(&state, {1, 1, 10 * kSec}, 0), (Step{true, 1, kNever, 0}));
  EXPECT_EQ(parallel.Acquire(&state, {2, 1, 20 * kSec}, 0), (Step{true, 0, kNever, 0}));
  EXPECT_TRUE(parallel.Acquire(&state, {2, 1, 20 * kSec}, 0).allowed);  // Held already.
  EXPECT_EQ(parallel.Acquire(&state, {3, 1, 20 * kSec}, 0),
            (Step{false, 0, kNever, Parallel::kRetryNs}));
  EXPECT_EQ(parallel.Acquire(&state, {3, 3, 20 * kSec}, 0).retry_after_ns, kNever);
  EXPECT_TRUE(parallel.Release(&state, 2));
  EXPECT_FALSE(parallel.Release(&state, 2));
  EXPECT_TRUE(parallel.Acquire(&state, {3, 1, 20 * kSec}, 0).allowed);
  EXPECT_TRUE(parallel.Acquire(&state, {4, 1, 20 * kSec}, 10 * kSec).allowed);  // 1 has expired.
  EXPECT_FALSE(parallel.Renew(&state, 1, 30 * kSec, 10 * kSec));
  EXPECT_TRUE(parallel.Renew(&state, 3, 30 * kSec, 10 * kSec));
}

TEST(MeterTest, Case21_NothingPassesALimitOfZero) {
  for (const Algorithm algorithm :
       {Algorithm::kTokenBucket, Algorithm::kSlidingWindow, Algorithm::kSlidingCounter,
        Algorithm::kFixedWindow, Algorithm::kParallel}) {
    const auto meter = *Meter::Compile({.algorithm = algorithm, .rate = {.units = 0}});
    EXPECT_EQ(meter->form(), Form::kDenyAll);
  }
  EXPECT_EQ(Meter::DenyAll(1), (Step{false, 0, 0, kNever}));
  EXPECT_TRUE(Meter::DenyAll(0).allowed);
}

TEST(MeterTest, Case20_ABurstOfZeroIsRefused) {
  const auto meter = Meter::Compile({.rate = {.units = 1, .period = 1s, .burst = 0}});
  ASSERT_FALSE(meter);
  EXPECT_EQ(meter.error().message, "rate.burst: must be between 1 and 2^53, is 0");
}

void ExpectInvalid(const MeterSpec& spec, std::string_view field) {
  const auto meter = Meter::Compile(spec);
  ASSERT_FALSE(meter) << field;
  EXPECT_EQ(meter.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(meter.error().message.starts_with(field)) << meter.error().message;
}

TEST(MeterTest, RefusesWhatCannotBeCounted) {
  ExpectInvalid({.rate = {.units = -1, .burst = 1}}, "rate.units:");
  ExpectInvalid({.rate = {.units = kMaxUnits + 1, .burst = 1}}, "rate.units:");
  ExpectInvalid({.rate = {.units = 1, .period = 0s, .burst = 1}}, "rate.period:");
  ExpectInvalid({.rate = {.units = 1, .period = 1s, .burst = kMaxUnits}}, "rate.burst:");
  ExpectInvalid({.algorithm = Algorithm::kSlidingWindow, .rate = {.units = 5, .burst = 6}},
                "rate.burst:");
  ExpectInvalid({.algorithm = Algorithm::kSlidingWindow, .rate = {.units = 1'000'001}},
                "rate.units:");
  ExpectInvalid({.rate = {.units = 1, .burst = 1}, .strict = true}, "strict:");
  ExpectInvalid(
      {.algorithm = Algorithm::kSlidingCounter, .rate = {.units = 1}, .strict = true, .buckets = 1},
      "buckets:");
  ExpectInvalid({.rate = {.units = 1, .burst = 1}, .alignment = Alignment::kDay}, "alignment:");
  ExpectInvalid({.algorithm = Algorithm::kFixedWindow,
                 .rate = {.units = 1},
                 .alignment = Alignment::kDay,
                 .timezone = "Mars/Olympus"},
                "timezone:");
}

TEST(MeterTest, PicksThePackedFormWhereTheRateAllows) {
  const auto form = [](const MeterSpec& spec) { return (*Meter::Compile(spec))->form(); };
  EXPECT_EQ(form({.rate = {.units = 300, .period = 1min, .burst = 50}}), Form::kTickBucket);
  EXPECT_EQ(form({.rate = {.units = 350, .period = 1min, .burst = 350}}), Form::kTickBucket);
  EXPECT_EQ(form({.rate = {.units = 99'991, .period = 1min, .burst = 5}}), Form::kExactBucket);
  EXPECT_EQ(form({.algorithm = Algorithm::kFixedWindow, .rate = {.units = 5, .period = 1min}}),
            Form::kPackedWindow);
  EXPECT_EQ(
      form({.algorithm = Algorithm::kFixedWindow, .rate = {.units = kMaxUnits, .period = 1s}}),
      Form::kWindow);
}

}  // namespace
}  // namespace weir::core
