// Task<T>: a coroutine that starts when awaited and gives its result to the one who awaits it.
//
// One thread only: a task runs on the event loop that first resumes it. The owner of a Task owns
// the coroutine's frame; destroying a Task that waits destroys the frame and everything in it,
// which is only right when nothing will resume it any more (event loops do so when they end).
// Exceptions do not cross a task: one that escapes aborts.
//
//   Task<int> Answer(Stream& stream) {
//     IoResult read = co_await stream.Read(buffer);
//     co_return static_cast<int>(read.bytes);
//   }
//   int n = co_await Answer(stream);
#pragma once

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "base/frame_pool.h"

namespace weir {

template <typename T>
class Task;

namespace task_detail {

struct FinalAwaiter {
  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
    return self.promise().continuation;
  }
  void await_resume() const noexcept {}
};

struct PromiseBase {
  std::coroutine_handle<> continuation = std::noop_coroutine();

  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }

  static void* operator new(std::size_t size) { return AllocateFrame(size); }
  static void operator delete(void* frame, std::size_t size) { FreeFrame(frame, size); }
};

template <typename T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object() noexcept;
  template <typename U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T Take() { return std::move(*value); }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void Take() const noexcept {}
};

}  // namespace task_detail

template <typename T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = task_detail::Promise<T>;

  explicit Task(std::coroutine_handle<promise_type> frame) noexcept : frame_(frame) {}
  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      Destroy();
      frame_ = std::exchange(other.frame_, nullptr);
    }
    return *this;
  }
  ~Task() { Destroy(); }

  // Awaiting starts the task; the awaiting coroutine goes on when it has finished. Await once.
  auto operator co_await() && noexcept {
    struct Awaiter {
      std::coroutine_handle<promise_type> frame;
      bool await_ready() const noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) const noexcept {
        frame.promise().continuation = caller;
        return frame;
      }
      T await_resume() const { return frame.promise().Take(); }
    };
    return Awaiter{frame_};
  }

 private:
  void Destroy() noexcept {
    if (frame_) frame_.destroy();
    frame_ = nullptr;
  }
  std::coroutine_handle<promise_type> frame_;
};

namespace task_detail {
template <typename T>
Task<T> Promise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}
}  // namespace task_detail

}  // namespace weir
