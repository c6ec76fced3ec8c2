#include "weir/limiter.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace weir {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

std::unique_ptr<Limiter> Make(const std::string& yaml) {
  auto limiter = Limiter::FromYaml(yaml);
  if (!limiter) ADD_FAILURE() << limiter.error().message;
  return std::move(*limiter);
}

Instant At(std::chrono::nanoseconds since_start) { return {.since_start = since_start}; }

TEST(LimiterTest, Case1_CallsDuringTheWaitDoNotPostponeIt) {
  auto limiter = Make("limits: [{name: a, per: [client], rate: 1/90s}]");
  int allowed = 0;
  for (int t = 0; t <= 600; t += 10) {
    allowed += limiter->Check({{"client", "x"}}, {.requests = 1}, {.now = At(seconds(t))})->allowed
                   ? 1
                   : 0;
  }
  EXPECT_EQ(allowed, 7);
}

TEST(LimiterTest, Case16_NegativeCostIsRefusedAndChangesNothing) {
  auto limiter = Make("limits: [{name: a, per: [client], rate: 10/hour}]");
  const CheckOptions now{.now = At(seconds(1))};
  EXPECT_EQ(limiter->Check({{"client", "x"}}, {.requests = 3}, now)->binding->remaining, 7);
  const auto wrong = limiter->Check({{"client", "x"}}, {.requests = -5}, now);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(limiter->Check({{"client", "x"}}, {.requests = 1}, now)->binding->remaining, 6);
}

TEST(LimiterTest, Case19_ResetCountsTheWholeCost) {
  auto limiter = Make("limits: [{name: a, per: [client], rate: 10/60s}]");
  const auto decision = limiter->Check({{"client", "x"}}, {.requests = 5}, {.now = At(seconds(1))});
  EXPECT_EQ(decision->binding->reset_after, seconds(30));
}

TEST(LimiterTest, ErrorsNameThePlaceAndTheAttribute) {
  const auto wrong = Limiter::FromYaml("limits: [{name: a, rate: nonsense}]");
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().message.find("policy.yaml:1:"), std::string::npos)
      << wrong.error().message;
  auto limiter = Make("limits: [{name: a, per: [client], rate: 1/s}]");
  EXPECT_NE(limiter->Check({{"cleint", "x"}}).error().message.find("cleint"), std::string::npos);
  EXPECT_NE(limiter->Check({{"client", "x"}, {"client", "y"}}).error().message.find("twice"),
            std::string::npos);
  EXPECT_EQ(Limiter::FromFile("/nonexistent.yaml").error().code, ErrorCode::kInvalidArgument);
}

TEST(LimiterTest, ReserveSettleRelease) {
  auto limiter = Make("limits: [{name: t, per: [client], rate: 100 tokens/hour}]");
  const Instant now = At(seconds(1));
  const auto held =
      limiter->Check({{"client", "x"}}, {.tokens = 80}, {.now = now, .reserve = minutes(1)});
  ASSERT_EQ(held->reservation.size(), 32u);
  EXPECT_TRUE(limiter->Settle(held->reservation, {.tokens = 10}, now).has_value());
  const auto looked = limiter->Check({{"client", "x"}}, {}, {.now = now, .all_limits = true});
  ASSERT_EQ(looked->limits.size(), 1u);
  EXPECT_EQ(looked->limits[0].remaining, 90);
  EXPECT_EQ(limiter->Release("0123", now).error().code, ErrorCode::kNotFound);
}

TEST(LimiterTest, ReloadKeepsCounters) {
  auto limiter = Make("limits: [{name: a, per: [client], rate: 10/hour}]");
  const CheckOptions now{.now = At(seconds(1))};
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(limiter->Check({{"client", "x"}}, {.requests = 1}, now)->allowed);
  ASSERT_TRUE(limiter->Reload("limits: [{name: a, per: [client], rate: 12/hour}]").has_value());
  EXPECT_FALSE(limiter->Reload("limits: [").has_value());
  EXPECT_EQ(limiter->Check({{"client", "x"}}, {.requests = 1}, now)->binding->remaining, 1);
}

TEST(BucketTest, Case3_NoFloatRounding) {
  auto limiter = Limiter::WithoutPolicy().value();
  const Bucket bucket = limiter->Prepare({.units = 10, .period = seconds(13), .burst = 1}).value();
  int allowed = 0;
  for (int k = 0; k < 1000; ++k)
    allowed += bucket.Allow("k", 1, At(milliseconds(1300) * k)) ? 1 : 0;
  EXPECT_EQ(allowed, 1000);
  EXPECT_TRUE(bucket.Allow("fresh", 1, At(seconds(0))));
  EXPECT_FALSE(bucket.Allow("fresh", 1, At(std::chrono::microseconds(1'299'999))));
  EXPECT_TRUE(bucket.Allow("fresh", 1, At(milliseconds(1300))));
}

TEST(BucketTest, Case14_MoreUnitsThanMilliseconds) {
  auto limiter = Limiter::WithoutPolicy().value();
  const Bucket bucket =
      limiter->Prepare({.units = 2000, .period = seconds(1), .burst = 2000}).value();
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(bucket.Allow("k", 1, At(seconds(1))));
  EXPECT_FALSE(bucket.Allow("k", 1, At(seconds(1))));
  EXPECT_EQ(bucket.Peek("k", 1, At(seconds(1))).retry_after, std::chrono::microseconds(500));
}

TEST(BucketTest, ManyThreadsAdmitExactlyTheLimit) {
  auto limiter = Limiter::WithoutPolicy().value();
  const Bucket bucket =
      limiter->Prepare({.units = 10'000, .period = hours(8760), .burst = 10'000}).value();
  auto policy = Make("limits: [{name: a, per: [client], rate: 5000/year}]");
  std::atomic<int> from_bucket{0};
  std::atomic<int> from_policy{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const Instant now = At(seconds(1));
      for (int i = 0; i < 2000; ++i) {
        from_bucket += bucket.Allow("k", 1, now) ? 1 : 0;
        from_policy +=
            policy->Check({{"client", "x"}}, {.requests = 1}, {.now = now})->allowed ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(from_bucket.load(), 10'000);
  EXPECT_EQ(from_policy.load(), 5'000);
}

}  // namespace
}  // namespace weir
