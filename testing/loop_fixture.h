// A loop for tests: runs one task to its end on the calling thread, and fails loudly when that
// takes too long.
//
//   LoopFixture fixture;
//   fixture.RunTask(Scenario(fixture.loop()));
//
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "base/clock.h"
#include "net/event_loop.h"

namespace weir::testing {

class LoopFixture {
 public:
  LoopFixture() : loop_(net::EventLoop::Create(clock_).value()) {}

  net::EventLoop& loop() { return *loop_; }
  const Clock& clock() const { return clock_; }

  // REQUIRES: the task ends by itself. The bound is real time.
  void RunTask(Task<void> task, int64_t bound_ns = 20'000'000'000) {
    bool finished = false;
    net::Timer bound(*loop_, [this] { loop_->Stop(); });
    bound.ArmAt(clock_.MonotonicNs() + bound_ns);
    loop_->Spawn(Finish(std::move(task), &finished));
    loop_->Run();
    ASSERT_TRUE(finished) << "the scenario did not end in time";
  }

 private:
  Task<void> Finish(Task<void> task, bool* finished) {
    co_await std::move(task);
    *finished = true;
    loop_->Stop();
  }

  SystemClock clock_;
  std::unique_ptr<net::EventLoop> loop_;
};

}  // namespace weir::testing
