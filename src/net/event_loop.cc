#include "net/event_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <limits>
#include <string>

#include "net/stream.h"

namespace weir::net {
namespace {

constexpr int64_t kSweepPeriodNs = 50'000'000;
constexpr int64_t kForeverNs = std::numeric_limits<int64_t>::max();

// epoll_wait counts in milliseconds: rounded up, since waking early for a timer would spin.
int WaitForMillis(int epoll_fd, epoll_event* events, int room, int64_t wait_ns) {
  constexpr int64_t kNsPerMs = 1'000'000;
  const int64_t wait_ms = wait_ns / kNsPerMs + (wait_ns % kNsPerMs != 0);
  return epoll_wait(
      epoll_fd, events, room,
      wait_ns == kForeverNs ? -1 : static_cast<int>(std::min<int64_t>(wait_ms, INT_MAX)));
}

// epoll_pwait2 counts in nanoseconds, and is there since Linux 5.11.
int WaitForEvents(int epoll_fd, epoll_event* events, int room, int64_t wait_ns) {
  static std::atomic<bool> missing = false;
  if (missing.load(std::memory_order_relaxed))
    return WaitForMillis(epoll_fd, events, room, wait_ns);
  const timespec timeout{.tv_sec = wait_ns / 1'000'000'000, .tv_nsec = wait_ns % 1'000'000'000};
  const timespec* const bound = wait_ns == kForeverNs ? nullptr : &timeout;
  const int count = epoll_pwait2(epoll_fd, events, room, bound, nullptr);
  // EPERM: what a sandbox's filter of system calls says to one that it does not know.
  if (count < 0 && (errno == ENOSYS || errno == EPERM)) {
    missing.store(true, std::memory_order_relaxed);
    return WaitForMillis(epoll_fd, events, room, wait_ns);
  }
  return count;
}

}  // namespace

// The outermost frame of a spawned task: registers itself with the loop and is its own owner.
struct EventLoop::Detached {
  struct promise_type {
    EventLoop& loop;

    promise_type(EventLoop& on, Task<void>&) : loop(on) {
      loop.detached_.push_back(std::coroutine_handle<promise_type>::from_promise(*this));
      ++loop.live_tasks_;
    }
    ~promise_type() {
      const auto self = std::coroutine_handle<promise_type>::from_promise(*this);
      auto found =
          std::find(loop.detached_.rbegin(), loop.detached_.rend(), std::coroutine_handle<>(self));
      if (found != loop.detached_.rend()) {
        *found = loop.detached_.back();
        loop.detached_.pop_back();
      }
      --loop.live_tasks_;
    }
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
    static void* operator new(std::size_t size) { return AllocateFrame(size); }
    static void operator delete(void* frame, std::size_t size) { FreeFrame(frame, size); }
  };
};

EventLoop::Detached EventLoop::RunDetached(EventLoop&, Task<void> task) {
  co_await std::move(task);
}

void EventLoop::Spawn(Task<void> task) { RunDetached(*this, std::move(task)); }

Result<std::unique_ptr<EventLoop>> EventLoop::Create(const Clock& clock) {
  const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd < 0)
    return MakeError(ErrorCode::kUnavailable,
                     std::string("epoll_create1: ") + std::strerror(errno));
  const int wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd < 0) {
    close(epoll_fd);
    return MakeError(ErrorCode::kUnavailable, std::string("eventfd: ") + std::strerror(errno));
  }
  return std::unique_ptr<EventLoop>(new EventLoop(clock, epoll_fd, wake_fd));
}

EventLoop::EventLoop(const Clock& clock, int epoll_fd, int wake_fd)
    : clock_(clock), epoll_fd_(epoll_fd), wake_fd_(wake_fd) {
  epoll_event wake{};
  wake.events = EPOLLIN;
  wake.data.ptr = nullptr;  // The one event without a watcher.
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &wake);
  ReadClock();
}

EventLoop::~EventLoop() {
  // Nothing resumes a task any more, so each frame can go, newest first; its streams and timers
  // leave the loop's lists.
  while (!detached_.empty()) detached_.back().destroy();
  {
    std::lock_guard lock(mailbox_mutex_);
    mailbox_.clear();
  }
  close(wake_fd_);
  close(epoll_fd_);
}

void EventLoop::ReadClock() {
  now_ns_ = clock_.MonotonicNs();
  wall_ns_ = clock_.RealtimeNs();
}

void EventLoop::Run() {
  stopping_ = false;
  ReadClock();
  while (!stopping_) {
    RunReady();
    RunTickEnd();
    Wait();
    for (int i = 0; i < batch_size_; ++i) {
      if (batch_[i].data.ptr != nullptr)
        static_cast<FdWatcher*>(batch_[i].data.ptr)->Note(batch_[i].events);
    }
    while (batch_next_ < batch_size_) {
      const epoll_event& event = batch_[batch_next_++];
      if (event.data.ptr == nullptr) {
        if (event.events != 0) RunMailbox();
      } else {
        static_cast<FdWatcher*>(event.data.ptr)->OnEvents(event.events);
      }
      RunReady();
    }
    RunTimers();
    if (now_ns_ >= next_sweep_ns_) SweepDeadlines();
  }
}

void EventLoop::Stop() {
  Post([this] { stopping_ = true; });
}

void EventLoop::Post(std::move_only_function<void()> work) {
  bool was_empty;
  {
    std::lock_guard lock(mailbox_mutex_);
    was_empty = mailbox_.empty();
    mailbox_.push_back(std::move(work));
  }
  if (was_empty) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written =
        write(wake_fd_, &one, sizeof one);  // Full means already awake.
  }
}

void EventLoop::RunMailbox() {
  uint64_t count;
  [[maybe_unused]] const ssize_t got = read(wake_fd_, &count, sizeof count);
  std::vector<std::move_only_function<void()>> works;
  {
    std::lock_guard lock(mailbox_mutex_);
    works.swap(mailbox_);
  }
  for (auto& work : works) work();
}

void EventLoop::RunReady() {
  while (!ready_.empty()) {
    resuming_.swap(ready_);
    for (const std::coroutine_handle<> coroutine : resuming_) coroutine.resume();
    resuming_.clear();
  }
}

void EventLoop::RunTickEnd() {
  while (!at_tick_end_.empty()) {
    ready_.swap(at_tick_end_);
    RunReady();
  }
}

int64_t EventLoop::NextWakeNs() const {
  int64_t wake_ns = kForeverNs;
  if (!timers_.empty()) wake_ns = timers_.begin()->first;
  if (streams_ != nullptr) wake_ns = std::min(wake_ns, next_sweep_ns_);
  return wake_ns;
}

void EventLoop::Wait() {
  const int64_t wake_ns = NextWakeNs();
  // Asked of the clock, not of the tick: long ticks must not delay timers further.
  const int64_t wait_ns =
      wake_ns == kForeverNs ? kForeverNs : std::max<int64_t>(0, wake_ns - clock_.MonotonicNs());
  const int room = static_cast<int>(batch_.size());
  batch_next_ = 0;
  batch_size_ = WaitForEvents(epoll_fd_, batch_.data(), room, wait_ns);
  if (batch_size_ < 0) batch_size_ = 0;  // EINTR
  ReadClock();
}

void EventLoop::RunTimers() {
  while (!timers_.empty() && timers_.begin()->first <= now_ns_) {
    Timer* timer = timers_.begin()->second;
    timers_.erase(timers_.begin());
    timer->armed_ = false;
    timer->on_expiry_();
    RunReady();
  }
}

void EventLoop::SweepDeadlines() {
  next_sweep_ns_ = now_ns_ + kSweepPeriodNs;
  for (Stream* stream = streams_; stream != nullptr; stream = stream->next_) stream->Sweep(now_ns_);
  RunReady();
}

Result<void> EventLoop::Watch(int fd, uint32_t events, FdWatcher* watcher) {
  epoll_event event{};
  event.events = events;
  event.data.ptr = watcher;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) < 0) {
    return MakeError(ErrorCode::kUnavailable, std::string("epoll_ctl: ") + std::strerror(errno));
  }
  return {};
}

void EventLoop::Unwatch(int fd, FdWatcher* watcher) {
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  for (int i = batch_next_; i < batch_size_; ++i) {
    if (batch_[i].data.ptr == watcher) {
      batch_[i].data.ptr = nullptr;
      batch_[i].events = 0;
    }
  }
}

void Timer::ArmAt(int64_t deadline_ns) {
  Cancel();
  deadline_ns_ = deadline_ns;
  armed_ = true;
  loop_.timers_.emplace(deadline_ns_, this);
}

void Timer::Cancel() {
  if (!armed_) return;
  loop_.timers_.erase({deadline_ns_, this});
  armed_ = false;
}

}  // namespace weir::net
