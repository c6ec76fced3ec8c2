#include "base/clock.h"

#include <gtest/gtest.h>

#include <ctime>

#include "testing/simulated_clock.h"

namespace weir {
namespace {

TEST(SystemClock, MonotonicNeverGoesBack) {
  const SystemClock clock;
  int64_t last = clock.MonotonicNs();
  for (int i = 0; i < 1000; ++i) {
    const int64_t now = clock.MonotonicNs();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(SystemClock, RealtimeIsTheWallClock) {
  const SystemClock clock;
  const int64_t before_s = std::time(nullptr);
  const int64_t now_s = clock.RealtimeNs() / 1'000'000'000;
  EXPECT_GE(now_s, before_s - 1);  // time() may read a coarser clock.
  EXPECT_LE(now_s, std::time(nullptr) + 1);
}

TEST(SimulatedClock, StandsStillUntilMoved) {
  SimulatedClock clock(/*realtime_ns=*/500, /*monotonic_ns=*/7);
  EXPECT_EQ(clock.MonotonicNs(), 7);
  EXPECT_EQ(clock.RealtimeNs(), 500);
  clock.Advance(std::chrono::nanoseconds(3));
  EXPECT_EQ(clock.MonotonicNs(), 10);
  EXPECT_EQ(clock.RealtimeNs(), 503);
}

TEST(SimulatedClock, WallClockJumpsAlone) {
  SimulatedClock clock(500, 7);
  clock.SetRealtimeNs(100);
  EXPECT_EQ(clock.RealtimeNs(), 100);
  EXPECT_EQ(clock.MonotonicNs(), 7);
}

}  // namespace
}  // namespace weir
