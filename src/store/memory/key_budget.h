// How many keys a store may track, shared by the tables that track them.
//
//   if (!budget.TryTake()) { /* replace an entry instead */ }
//
// Thread safety: any thread. The count never exceeds the bound, not even for an instant that a
// taker could act on.
#pragma once

#include <atomic>
#include <cstdint>

namespace weir::store {

class KeyBudget {
 public:
  explicit KeyBudget(int64_t max_keys) : max_keys_(max_keys) {}

  // Relaxed: the count guards no other memory.
  bool TryTake() {
    int64_t taken = taken_.load(std::memory_order_relaxed);
    while (taken < max_keys_) {
      if (taken_.compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  void GiveBack() { taken_.fetch_sub(1, std::memory_order_relaxed); }
  int64_t taken() const { return taken_.load(std::memory_order_relaxed); }

 private:
  const int64_t max_keys_;
  alignas(64) std::atomic<int64_t> taken_{0};
};

}  // namespace weir::store
