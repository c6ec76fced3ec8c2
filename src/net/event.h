// Event: a flag that one coroutine can wait for, on one loop.
//
// Thread safety: the loop's thread only. One waiter at a time. Set before the wait is remembered
// until Reset.
//
//   Event done(loop);
//   loop.Spawn(Work(done));            // calls done.Set()
//   bool in_time = co_await done.WaitUntil(loop.now_ns() + 1'000'000'000);
#pragma once

#include <coroutine>
#include <cstdint>
#include <limits>

#include "net/event_loop.h"

namespace weir::net {

class Event {
 public:
  explicit Event(EventLoop& loop) : loop_(loop), timer_(loop, [this] { Wake(); }) {}

  void Set() {
    set_ = true;
    Wake();
  }
  void Reset() { set_ = false; }
  bool is_set() const { return set_; }

  struct Awaiter {
    Event& event;
    int64_t deadline_ns;
    bool await_ready() const noexcept { return event.set_; }
    void await_suspend(std::coroutine_handle<> caller) {
      event.waiter_ = caller;
      if (deadline_ns != std::numeric_limits<int64_t>::max()) event.timer_.ArmAt(deadline_ns);
    }
    bool await_resume() const noexcept { return event.set_; }
  };
  // True when the event is set.
  Awaiter Wait() { return {*this, std::numeric_limits<int64_t>::max()}; }
  // False when the deadline (monotonic ns) came first.
  Awaiter WaitUntil(int64_t deadline_ns) { return {*this, deadline_ns}; }

 private:
  void Wake() {
    timer_.Cancel();
    if (waiter_) loop_.ResumeSoon(std::exchange(waiter_, nullptr));
  }

  EventLoop& loop_;
  Timer timer_;
  std::coroutine_handle<> waiter_;
  bool set_ = false;
};

}  // namespace weir::net
