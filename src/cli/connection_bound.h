// ConnectionBound: how many connections all doors and loops may hold together (bounds.connections).
//
// Thread safety: any threads.
//
//   if (!bound.Take()) return;      // the connection is closed at once, and was counted
//   …
//   bound.GiveBack();
#pragma once

#include <atomic>
#include <cstdint>

namespace weir::cli {

class ConnectionBound {
 public:
  explicit ConnectionBound(int64_t most) : most_(most) {}

  // So many more may be open on the doors of operators: clients that fill the others do not keep
  // health probes, scrapes and reloads out.
  static constexpr int64_t kForOperators = 64;

  // False when there are as many as there may be, `more` besides the bound. One locked add.
  bool Take(int64_t more = 0) {
    if (open_.fetch_add(1, std::memory_order_relaxed) <
        most_.load(std::memory_order_relaxed) + more)
      return true;
    GiveBack();
    return false;
  }
  void GiveBack() { open_.fetch_sub(1, std::memory_order_relaxed); }

  // Those beyond a lowered bound stay until they end.
  void SetMost(int64_t most) { most_.store(most, std::memory_order_relaxed); }
  int64_t open() const { return open_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> most_;
  std::atomic<int64_t> open_{0};
};

}  // namespace weir::cli
