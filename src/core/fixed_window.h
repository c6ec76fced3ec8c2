// Fixed window: one count per window, up to twice the limit across an edge. Windows are shifted per
// key, so that not every counter starts afresh in the same instant, or follow the calendar of a
// time zone.
//
//   FixedWindow window(/*limit=*/5, /*length_ns=*/60'000'000'000);
//   FixedWindow::State state;
//   Step step = window.Charge(&state, /*cost=*/1, now, /*spread=*/key.lo);
//
// `spread` is any number of the key's hash; 0 puts the first edge at mono_ns 0.
//
// Thread safety: immutable; a state is owned by its caller.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/calendar.h"
#include "core/int128.h"
#include "core/now.h"
#include "core/step.h"
#include "weir/limit.h"

namespace weir::core {

struct FixedWindowState {
  int64_t index = 0;  // Number of the window, or its start in seconds when it follows the calendar.
  int64_t count = 0;
};

class FixedWindow {
 public:
  using State = FixedWindowState;

  FixedWindow() = default;
  // `calendar`, not owned, may be null. REQUIRES: limit > 0, length_ns > 0 (unused with a
  // calendar).
  FixedWindow(int64_t limit, int64_t length_ns, const CalendarWindows* calendar = nullptr);

  Step Charge(State* state, int64_t cost, Now now, uint64_t spread,
              Receipt* receipt = nullptr) const {
    const Span span = SpanOf(now, spread);
    Roll(state, span.index);
    const Step test = Judge(*state, cost, span);
    if (!test.allowed || cost == 0) return test;
    state->count += cost;
    if (receipt != nullptr) *receipt = {state->index, 1};
    return {true, std::max<int64_t>(limit_ - state->count, 0), EndOf(*state, span) - span.now_ns,
            0};
  }
  Step Test(State state, int64_t cost, Now now, uint64_t spread) const {
    const Span span = SpanOf(now, spread);
    Roll(&state, span.index);
    return Judge(state, cost, span);
  }
  // True when the window of the charge still runs, so that there was something to give back.
  bool Refund(State* state, Receipt receipt, int64_t units, Now now, uint64_t spread) const;
  // Counts units whatever remains. The debt lasts as long as the window.
  void Overrun(State* state, int64_t units, Now now, uint64_t spread) const;

  // The state under this window with the units that `state` has used under `from`, if that window
  // still runs.
  State Carry(State state, const FixedWindow& from, Now now, uint64_t spread) const;
  int64_t Used(State state, Now now, uint64_t spread) const {
    Roll(&state, SpanOf(now, spread).index);
    return state.count;
  }
  State FromUsed(int64_t used, Now now, uint64_t spread) const {
    return {SpanOf(now, spread).index, used};
  }
  int64_t limit() const { return limit_; }

  // One int64 for both, when index and count fit: the count in the low bits. Its zero is "nothing
  // used".
  bool packable() const { return count_bits_ > 0; }
  int64_t Pack(State state) const {
    return state.index << count_bits_ | std::min(state.count, count_mask_);
  }
  // The packed count is at its largest: it may have been more.
  bool IsSaturated(State state) const { return state.count >= count_mask_; }
  State Unpack(int64_t packed) const { return {packed >> count_bits_, packed & count_mask_}; }

 private:
  struct Span {
    int64_t index;
    int64_t end_ns;  // On the clock of now_ns.
    int64_t now_ns;
  };
  Span SpanOf(Now now, uint64_t spread) const {
    if (calendar_ != nullptr) {
      const CalendarWindows::Window window = calendar_->At(now.wall_ns / kSecondNs);
      return {window.start_sec, window.end_sec * kSecondNs, now.wall_ns};
    }
    const int64_t offset =
        static_cast<int64_t>((Uint128{spread} * static_cast<uint64_t>(length_ns_)) >> 64);
    const int64_t index = (now.mono_ns + offset) / length_ns_;
    return {index, (index + 1) * length_ns_ - offset, now.mono_ns};
  }
  // A window later than the caller's stays: its `now` is stale.
  static void Roll(State* state, int64_t index) {
    if (state->index < index) *state = {index, 0};
  }
  int64_t EndOf(const State& state, const Span& span) const {
    if (state.index == span.index) [[likely]]
      return span.end_ns;
    if (calendar_ != nullptr) return calendar_->At(state.index).end_sec * kSecondNs;
    return span.end_ns + (state.index - span.index) * length_ns_;
  }
  Step Judge(const State& state, int64_t cost, const Span& span) const {
    const bool allowed = cost == 0 || state.count + cost <= limit_;
    const int64_t left_ns = EndOf(state, span) - span.now_ns;
    return {allowed, std::max<int64_t>(limit_ - state.count, 0), state.count > 0 ? left_ns : 0,
            allowed         ? 0
            : cost > limit_ ? kNever
                            : left_ns};
  }

  static constexpr int64_t kSecondNs = 1'000'000'000;
  int64_t limit_ = 1;
  int64_t length_ns_ = 1;
  const CalendarWindows* calendar_ = nullptr;
  int count_bits_ = 0;
  int64_t count_mask_ = 0;
};

}  // namespace weir::core
