#include "base/when_all.h"

#include <gtest/gtest.h>

#include <vector>

#include "testing/loop_fixture.h"

namespace weir {
namespace {

using testing::LoopFixture;

constexpr int64_t kMs = 1'000'000;

Task<void> Note(net::EventLoop& loop, int64_t after_ns, int number, std::vector<int>& order) {
  if (after_ns > 0) co_await loop.SleepFor(after_ns);
  order.push_back(number);
}

TEST(WhenAll, RunsSideBySideAndWaitsForTheLast) {
  LoopFixture fixture;
  std::vector<int> order;
  auto scenario = [&order](net::EventLoop& loop) -> Task<void> {
    std::vector<Task<void>> tasks;
    tasks.push_back(Note(loop, 6 * kMs, 3, order));
    tasks.push_back(Note(loop, 0, 1, order));
    tasks.push_back(Note(loop, 3 * kMs, 2, order));
    co_await WhenAll(std::move(tasks));
    order.push_back(4);
    co_await WhenAll({});
    std::vector<Task<void>> ready;
    ready.push_back(Note(loop, 0, 5, order));
    co_await WhenAll(std::move(ready));
    order.push_back(6);
  };
  fixture.RunTask(scenario(fixture.loop()));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4, 5, 6}));
}

}  // namespace
}  // namespace weir
