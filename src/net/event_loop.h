// EventLoop: one thread's epoll, timers and run queue. Weir runs one loop per core; nothing in a
// loop locks, apart from the mailbox that other threads post to.
//
// Thread safety: Post and Stop may be called from any thread; everything else from the loop's own
// thread (or before Run starts). The loop must outlive every Stream, Timer, Listener and Event made
// on it. When the loop is destroyed, tasks that still wait are destroyed with it, and with them all
// that they own.
//
//   auto loop = EventLoop::Create(clock).value();
//   loop->Spawn(ServeConnection(std::move(stream)));
//   loop->Run();
#pragma once

#include <sys/epoll.h>

#include <array>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/task.h"
#include "weir/result.h"

namespace weir::net {

class EventLoop;
class Stream;

// Something with a file descriptor that the loop tells of readiness.
class FdWatcher {
 public:
  // `events`: the EPOLL* bits that came up. Called for all of a tick's events before any of them is
  // acted upon, so that whoever acts knows what came in on the others. Must not touch the loop.
  virtual void Note(uint32_t /*events*/) {}
  // Acts upon them. May destroy this watcher.
  virtual void OnEvents(uint32_t events) = 0;

 protected:
  ~FdWatcher() = default;
};

// A one-shot timer. Arming again moves it. Destroying it cancels it. Resolution: the loop's tick.
class Timer {
 public:
  Timer(EventLoop& loop, std::move_only_function<void()> on_expiry)
      : loop_(loop), on_expiry_(std::move(on_expiry)) {}
  ~Timer() { Cancel(); }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void ArmAt(int64_t deadline_ns);  // On the loop's monotonic clock; one in the past fires at the
                                    // next tick.
  void Cancel();
  bool armed() const { return armed_; }

 private:
  friend class EventLoop;
  EventLoop& loop_;
  std::move_only_function<void()> on_expiry_;
  int64_t deadline_ns_ = 0;
  bool armed_ = false;
};

class EventLoop {
 public:
  // kUnavailable when the kernel gives no epoll or eventfd. `clock` must outlive the loop.
  static Result<std::unique_ptr<EventLoop>> Create(const Clock& clock);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs until Stop. Call from one thread, once at a time.
  void Run();
  void Stop();
  // Runs `work` on the loop's thread, in order of posting.
  void Post(std::move_only_function<void()> work);

  // Starts `task` at once and owns it until it has finished.
  void Spawn(Task<void> task);
  // How many spawned tasks have not finished.
  int live_tasks() const { return live_tasks_; }

  // The time of this tick: read once when the loop wakes up. Monotonic and Unix nanoseconds.
  int64_t now_ns() const { return now_ns_; }
  int64_t wall_ns() const { return wall_ns_; }
  const Clock& clock() const { return clock_; }

  // Resumes `coroutine` later in this tick. Never resumes inside the caller.
  void ResumeSoon(std::coroutine_handle<> coroutine) { ready_.push_back(coroutine); }

  // Pauses the awaiting coroutine until all else of this tick has run: what came up in the tick can
  // then leave together, in one write or one batch.
  auto TickEnd();
  // Pauses the awaiting coroutine.
  auto SleepUntil(int64_t deadline_ns);
  auto SleepFor(int64_t duration_ns);

  // For watchers: `events` are epoll's bits. kUnavailable when the kernel refuses.
  Result<void> Watch(int fd, uint32_t events, FdWatcher* watcher);
  // Forgets `watcher`, also in the batch of events that is being delivered.
  void Unwatch(int fd, FdWatcher* watcher);

 private:
  friend class Timer;
  friend class Stream;
  struct Detached;

  EventLoop(const Clock& clock, int epoll_fd, int wake_fd);
  static Detached RunDetached(EventLoop& loop, Task<void> task);
  void ReadClock();
  int64_t NextWakeNs() const;
  void Wait();
  void RunMailbox();
  void RunReady();
  void RunTickEnd();
  void RunTimers();
  void SweepDeadlines();

  const Clock& clock_;
  const int epoll_fd_;
  const int wake_fd_;
  int64_t now_ns_ = 0;
  int64_t wall_ns_ = 0;
  bool stopping_ = false;

  std::array<epoll_event, 256> batch_;
  int batch_size_ = 0;
  int batch_next_ = 0;

  std::vector<std::coroutine_handle<>> ready_;
  std::vector<std::coroutine_handle<>> resuming_;
  std::vector<std::coroutine_handle<>> at_tick_end_;
  std::set<std::pair<int64_t, Timer*>> timers_;
  Stream* streams_ = nullptr;  // Intrusive list, swept for deadlines.
  int64_t next_sweep_ns_ = 0;

  std::vector<std::coroutine_handle<>>
      detached_;  // Frames of spawned tasks that have not finished.
  int live_tasks_ = 0;

  std::mutex mailbox_mutex_;
  std::vector<std::move_only_function<void()>> mailbox_;  // Guarded by mailbox_mutex_.
};

namespace loop_detail {
struct SleepAwaiter {
  EventLoop& loop;
  int64_t deadline_ns;
  std::optional<Timer> timer;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> caller) {
    timer.emplace(loop, [this, caller] { loop.ResumeSoon(caller); });
    timer->ArmAt(deadline_ns);
  }
  void await_resume() const noexcept {}
};
struct TickEndAwaiter {
  std::vector<std::coroutine_handle<>>& waiting;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> caller) { waiting.push_back(caller); }
  void await_resume() const noexcept {}
};
}  // namespace loop_detail

inline auto EventLoop::TickEnd() { return loop_detail::TickEndAwaiter{at_tick_end_}; }

inline auto EventLoop::SleepUntil(int64_t deadline_ns) {
  return loop_detail::SleepAwaiter{*this, deadline_ns, std::nullopt};
}
inline auto EventLoop::SleepFor(int64_t duration_ns) { return SleepUntil(now_ns_ + duration_ns); }

}  // namespace weir::net
