#include "net/event_loop.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
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

TEST(EventLoop, TickEndComesAfterAllElseOfTheTick) {
  LoopFixture fixture;
  std::vector<int> order;
  auto late = [](EventLoop& loop, std::vector<int>& ran) -> Task<void> {
    co_await loop.TickEnd();
    ran.push_back(9);
  };
  auto scenario = [&late](EventLoop& loop, std::vector<int>& ran) -> Task<void> {
    Event all_ran(loop);
    loop.Post([&] {
      loop.Spawn(late(loop, ran));
      ran.push_back(1);
    });
    loop.Post([&] {
      ran.push_back(2);
      all_ran.Set();
    });
    co_await all_ran.Wait();
    ran.push_back(3);
    co_await loop.TickEnd();
    ran.push_back(10);
  };
  fixture.RunTask(scenario(fixture.loop(), order));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 9, 10}));
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

// Makes the kernel refuse epoll_pwait2 with `error` for the rest of this process, as one before
// Linux 5.11 does.
void RefuseEpollPwait2(int error) {
  constexpr auto kRefuse = [](int code) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(code); };
  std::array<sock_filter, 4> filter{
      sock_filter(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))),
      sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1)),
      sock_filter(BPF_STMT(BPF_RET | BPF_K, kRefuse(error))),
      sock_filter(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)),
  };
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) std::_Exit(3);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) std::_Exit(3);
  if (syscall(SYS_epoll_pwait2, -1, nullptr, 0, nullptr, nullptr, 0) != -1 || errno != error) {
    std::_Exit(4);
  }
}

TEST(EventLoop, RunsWhereTheKernelHasNoEpollPwait2) {
  for (const int error : {ENOSYS, EPERM}) {
    const auto run = [error] {
      alarm(20);  // A loop that hears nothing would wait for ever.
      RefuseEpollPwait2(error);
      LoopFixture fixture;
      auto scenario = [](EventLoop& loop) -> Task<void> {
        const int64_t start_ns = loop.clock().MonotonicNs();
        Event posted(loop);
        loop.Post([&] { posted.Set(); });
        co_await posted.Wait();
        co_await loop.SleepFor(2 * kMs + 1);
        if (loop.clock().MonotonicNs() - start_ns <= 2 * kMs) std::_Exit(5);
      };
      fixture.RunTask(scenario(fixture.loop()));
      std::_Exit(0);
    };
    EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
  }
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
