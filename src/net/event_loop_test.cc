#include "net/event_loop.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "net/event.h"
#include "testing/loop_fixture.h"

namespace weir::net {
namespace {

using weir::testing::LoopFixture;

constexpr int64_t kMs = 1'000'000;

TEST(EventLoop, TimersFireInOrderOfTheirDeadlines) {
  LoopFixture fixture;
  std::vector<int> fired;
  auto scenario = [](EventLoop& loop, std::vector<int>& order) -> Task<void> {
    Timer late(loop, [&] { order.push_back(2); });
    Timer early(loop, [&] { order.push_back(1); });
    Timer cancelled(loop, [&] { order.push_back(99); });
    late.ArmAt(loop.now_ns() + 4 * kMs);
    early.ArmAt(loop.now_ns() + 2 * kMs);
    cancelled.ArmAt(loop.now_ns() + 3 * kMs);
    cancelled.Cancel();
    co_await loop.SleepFor(8 * kMs);
  };
  fixture.RunTask(scenario(fixture.loop(), fired));
  EXPECT_EQ(fired, (std::vector<int>{1, 2}));
}

TEST(EventLoop, PostedWorkRunsInOrderOnTheLoopsThread) {
  LoopFixture fixture;
  std::vector<int> ran;
  auto scenario = [](EventLoop& loop, std::vector<int>& order) -> Task<void> {
    Event done(loop);
    std::thread other([&] {
      for (int i = 0; i < 1000; ++i) loop.Post([&order, i] { order.push_back(i); });
      loop.Post([&] { done.Set(); });
    });
    co_await done.Wait();
    other.join();
  };
  fixture.RunTask(scenario(fixture.loop(), ran));
  ASSERT_EQ(ran.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ran[i], i);
}

TEST(Event, WaitUntilSaysWhetherItWasSet) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    Event event(loop);
    bool set = co_await event.WaitUntil(loop.now_ns() + 2 * kMs);
    EXPECT_FALSE(set);
    loop.Post([&] { event.Set(); });
    set = co_await event.WaitUntil(loop.now_ns() + 5000 * kMs);
    EXPECT_TRUE(set);
    set = co_await event.WaitUntil(loop.now_ns() - 1);  // Remembered until Reset.
    EXPECT_TRUE(set);
    event.Reset();
    set = co_await event.WaitUntil(loop.now_ns() - 1);
    EXPECT_FALSE(set);
  };
  fixture.RunTask(scenario(fixture.loop()));
}

struct Counted {
  explicit Counted(int& counter) : count(counter) { ++count; }
  ~Counted() { --count; }
  int& count;
};

Task<void> WaitForever(EventLoop& loop, int& alive) {
  Counted here(alive);
  Event never(loop);
  co_await never.Wait();
}

TEST(EventLoop, DestroysTasksThatStillWait) {
  int alive = 0;
  {
    SystemClock clock;
    auto loop = EventLoop::Create(clock).value();
    for (int i = 0; i < 3; ++i) loop->Spawn(WaitForever(*loop, alive));
    EXPECT_EQ(alive, 3);
    EXPECT_EQ(loop->live_tasks(), 3);
  }
  EXPECT_EQ(alive, 0);
}

Task<int> Twice(int n) { co_return 2 * n; }

Task<void> AwaitManyTimes(int times, int& sum) {
  for (int i = 0; i < times; ++i) {
    const int doubled = co_await Twice(i);
    sum += doubled;
  }
}

TEST(Task, ManyAwaitsDoNotGrowTheStack) {
  LoopFixture fixture;
  int sum = 0;
  fixture.RunTask(AwaitManyTimes(10'000, sum));
  EXPECT_EQ(sum, 2 * (10'000 * 9'999 / 2));
}

}  // namespace
}  // namespace weir::net
