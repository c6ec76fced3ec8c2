// WhenAll: runs tasks side by side on one thread, and is done when all of them are.
//
//   std::vector<Task<void>> calls;
//   for (const Node& node : nodes) calls.push_back(Ask(node, answers));
//   co_await WhenAll(std::move(calls));
//
// Thread safety: as Task. Ownership: it owns the tasks, so destroying it while they wait destroys
// their frames.
#pragma once

#include <coroutine>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/task.h"

namespace weir {
namespace when_all_detail {

struct Pending {
  size_t left;
  std::coroutine_handle<> waiter = std::noop_coroutine();
};

// Leaves the finished task suspended and, behind the last one, goes on with the waiter: so that
// nothing runs any more in a frame that the waiter may destroy.
struct Arrive {
  Pending& pending;
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const noexcept {
    if (--pending.left > 0) return std::noop_coroutine();
    return std::exchange(pending.waiter, std::noop_coroutine());
  }
  void await_resume() const noexcept {}
};

struct WaitForAll {
  Pending& pending;
  bool await_ready() const noexcept { return pending.left == 0; }
  void await_suspend(std::coroutine_handle<> caller) const noexcept { pending.waiter = caller; }
  void await_resume() const noexcept {}
};

inline Task<void> Join(Task<void> task, Pending& pending) {
  co_await std::move(task);
  co_await Arrive{pending};
}

}  // namespace when_all_detail

inline Task<void> WhenAll(std::vector<Task<void>> tasks) {
  when_all_detail::Pending pending{.left = tasks.size()};
  std::vector<Task<void>> joins;
  joins.reserve(tasks.size());
  for (Task<void>& task : tasks) joins.push_back(when_all_detail::Join(std::move(task), pending));
  for (Task<void>& join : joins) {
    std::move(join).operator co_await().await_suspend(std::noop_coroutine()).resume();
  }
  co_await when_all_detail::WaitForAll{pending};
}

}  // namespace weir
