// Sliding window counter: two counts instead of a log.
//
// SlidingCounter weighs the previous window by the part of it that the sliding window still covers.
// It assumes even traffic in that window: a true window can see up to 2 * limit - 1 units.
// StrictCounter cuts the window into sub-buckets and counts the oldest, partly covered one in full:
// at most `limit` in every true window, and units come back at most one sub-bucket late.
//
//   SlidingCounter counter(/*limit=*/100, /*length_ns=*/60'000'000'000);
//   SlidingCounter::State state;
//   Step step = counter.Charge(&state, /*cost=*/1, now.mono_ns);
//
// Windows and sub-buckets start at multiples of their length on the monotonic clock.
//
// Thread safety: immutable; a state is owned by its caller. StrictCounter's first Charge on a state
// allocates.
#pragma once

#include <cstdint>
#include <vector>

#include "core/int128.h"
#include "core/step.h"
#include "weir/limit.h"

namespace weir::core {

struct SlidingCounterState {
  int64_t index = 0;  // Of the current window.
  int64_t current = 0;
  int64_t previous = 0;
};

class SlidingCounter {
 public:
  using State = SlidingCounterState;

  SlidingCounter() = default;
  SlidingCounter(int64_t limit, int64_t length_ns) : limit_(limit), length_ns_(length_ns) {}

  Step Charge(State* state, int64_t cost, int64_t now_ns, Receipt* receipt = nullptr) const;
  Step Test(State* state, int64_t cost, int64_t now_ns) const;
  bool Refund(State* state, Receipt receipt, int64_t units, int64_t now_ns) const;
  void Overrun(State* state, int64_t units, int64_t now_ns) const;

  // Weighted use, rounded up.
  int64_t Used(State state, int64_t now_ns) const;
  State FromUsed(int64_t used, int64_t now_ns) const { return {now_ns / length_ns_, used, 0}; }
  int64_t limit() const { return limit_; }

 private:
  void Roll(State* state, int64_t now_ns) const;
  // Time into the state's window; 0 for a stale `now` from before it.
  int64_t Elapsed(const State& state, int64_t now_ns) const;
  Step Describe(const State& state, bool allowed, int64_t cost, int64_t now_ns) const;

  int64_t limit_ = 1;
  int64_t length_ns_ = 1;
};

struct StrictCounterState {
  int64_t index = 0;  // Of the current sub-bucket.
  std::vector<int64_t>
      counts;  // The count of sub-bucket i at i mod size; empty before the first charge.
};

class StrictCounter {
 public:
  using State = StrictCounterState;
  static constexpr int kMinBuckets = 2;
  static constexpr int kMaxBuckets = 64;

  StrictCounter() = default;
  StrictCounter(int64_t limit, int64_t length_ns, int buckets)
      : limit_(limit), width_ns_(CeilDiv64(length_ns, buckets)), slots_(buckets + 1) {}

  Step Charge(State* state, int64_t cost, int64_t now_ns, Receipt* receipt = nullptr) const;
  Step Test(State* state, int64_t cost, int64_t now_ns) const;
  bool Refund(State* state, Receipt receipt, int64_t units, int64_t now_ns) const;
  void Overrun(State* state, int64_t units, int64_t now_ns) const;

  int64_t Used(const State& state, int64_t now_ns) const;
  State FromUsed(int64_t used, int64_t now_ns) const;
  int64_t limit() const { return limit_; }

 private:
  void Roll(State* state, int64_t now_ns) const;
  int64_t Total(const State& state) const;
  // Until sub-bucket `index` has left every window that a call could see.
  int64_t LeavesAfter(int64_t index, int64_t now_ns) const {
    return (index + slots_) * width_ns_ - now_ns;
  }

  int64_t limit_ = 1;
  int64_t width_ns_ = 1;
  int64_t slots_ = 11;  // The sub-buckets of a window and the one that is only partly covered.
};

}  // namespace weir::core
