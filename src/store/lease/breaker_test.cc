#include "store/lease/breaker.h"

#include <gtest/gtest.h>

namespace weir::store::lease {
namespace {

constexpr int64_t kMs = 1'000'000;
using Pass = Breaker::Pass;
using State = Breaker::State;

Breaker OpenedAt(int64_t now_ns) {
  Breaker breaker({.failures = 3, .open_for_ns = 1000 * kMs});
  for (int i = 0; i < 3; ++i) breaker.Failed(now_ns, now_ns);
  return breaker;
}

// A store that returns just after a probe is connected to within 400 ms (ClientOptions), and the
// next probe decides.
TEST(Breaker, ServiceIsBackWithinASecondUnlessToldOtherwise) {
  Breaker breaker{Breaker::Options()};
  for (int i = 0; i < 3; ++i) breaker.Failed(0, 0);
  EXPECT_EQ(breaker.Ask(600 * kMs), Pass::kProbe);
  breaker.Failed(600 * kMs, 600 * kMs);
  EXPECT_EQ(breaker.Ask(1000 * kMs), Pass::kNo);
  EXPECT_EQ(breaker.Ask(1200 * kMs), Pass::kProbe);
}

TEST(Breaker, OpensAfterAsManyFailuresInARow) {
  Breaker breaker({.failures = 3, .open_for_ns = 1000 * kMs});
  breaker.Failed(0, 1);
  breaker.Failed(0, 2);
  breaker.Succeeded(0);  // The row begins anew.
  breaker.Failed(0, 3);
  breaker.Failed(0, 4);
  EXPECT_EQ(breaker.state(), State::kClosed);
  EXPECT_EQ(breaker.Ask(5), Pass::kYes);
  breaker.Failed(0, 6);
  EXPECT_EQ(breaker.state(), State::kOpen);
  EXPECT_EQ(breaker.Ask(7), Pass::kNo);
}

TEST(Breaker, LetsOneProbeThroughWhenTheTimeIsOver) {
  Breaker breaker = OpenedAt(0);
  EXPECT_EQ(breaker.Ask(1000 * kMs - 1), Pass::kNo);
  EXPECT_EQ(breaker.Ask(1000 * kMs), Pass::kProbe);
  EXPECT_EQ(breaker.state(), State::kHalfOpen);
  EXPECT_EQ(breaker.Ask(1000 * kMs), Pass::kNo);
  EXPECT_EQ(breaker.Ask(1999 * kMs), Pass::kNo);
}

TEST(Breaker, TheProbesSuccessCloses) {
  Breaker breaker = OpenedAt(0);
  ASSERT_EQ(breaker.Ask(1000 * kMs), Pass::kProbe);
  breaker.Succeeded(1000 * kMs);
  EXPECT_EQ(breaker.state(), State::kClosed);
  EXPECT_EQ(breaker.Ask(1001 * kMs), Pass::kYes);
  // A single failure after that does not open it.
  breaker.Failed(1001 * kMs, 1002 * kMs);
  EXPECT_EQ(breaker.state(), State::kClosed);
}

TEST(Breaker, TheProbesFailureOpensForAsLongAgain) {
  Breaker breaker = OpenedAt(0);
  ASSERT_EQ(breaker.Ask(1000 * kMs), Pass::kProbe);
  breaker.Failed(1000 * kMs, 1050 * kMs);
  EXPECT_EQ(breaker.Ask(2049 * kMs), Pass::kNo);
  EXPECT_EQ(breaker.Ask(2050 * kMs), Pass::kProbe);
}

TEST(Breaker, AProbeThatNobodyHearsOfGivesWayToAnother) {
  Breaker breaker = OpenedAt(0);
  ASSERT_EQ(breaker.Ask(1000 * kMs), Pass::kProbe);
  EXPECT_EQ(breaker.Ask(1999 * kMs), Pass::kNo);
  EXPECT_EQ(breaker.Ask(2000 * kMs), Pass::kProbe);
  // The first probe's result, late, counts for nothing.
  breaker.Failed(1000 * kMs, 2001 * kMs);
  EXPECT_EQ(breaker.state(), State::kHalfOpen);
  breaker.Succeeded(2000 * kMs);
  EXPECT_EQ(breaker.state(), State::kClosed);
}

TEST(Breaker, LateResultsOfCallsFromBeforeChangeNothing) {
  Breaker breaker = OpenedAt(10 * kMs);
  breaker.Failed(5 * kMs, 900 * kMs);  // Does not prolong the pause...
  breaker.Succeeded(5 * kMs);          // ...and is no sign of life.
  EXPECT_EQ(breaker.Ask(1009 * kMs), Pass::kNo);
  EXPECT_EQ(breaker.Ask(1010 * kMs), Pass::kProbe);
  breaker.Succeeded(5 * kMs);
  EXPECT_EQ(breaker.state(), State::kHalfOpen);
}

}  // namespace
}  // namespace weir::store::lease
