#include "core/sliding_counter.h"

#include <algorithm>

namespace weir::core {
namespace {
constexpr int64_t kMaxCount = int64_t{1} << 61;
}  // namespace

void SlidingCounter::Roll(State* state, int64_t now_ns) const {
  const int64_t index = now_ns / length_ns_;
  if (state->index >= index) return;
  *state = {index, 0, state->index + 1 == index ? state->current : 0};
}

int64_t SlidingCounter::Elapsed(const State& state, int64_t now_ns) const {
  return std::max<int64_t>(now_ns - state.index * length_ns_, 0);
}

Step SlidingCounter::Describe(const State& state, bool allowed, int64_t cost,
                              int64_t now_ns) const {
  const int64_t elapsed = Elapsed(state, now_ns);
  // How far a stale `now` lies before the window that it is judged in.
  const int64_t before = elapsed == 0 ? state.index * length_ns_ - now_ns : 0;
  const Int128 room =
      Int128{limit_ - state.current} * length_ns_ - Int128{state.previous} * (length_ns_ - elapsed);
  Step step;
  step.allowed = allowed;
  step.remaining = room <= 0 ? 0 : static_cast<int64_t>(room / length_ns_);
  step.reset_after_ns = state.current > 0    ? before + 2 * length_ns_ - elapsed
                        : state.previous > 0 ? before + length_ns_ - elapsed
                                             : 0;
  if (allowed) return step;
  const int64_t spare = limit_ - state.current - cost;
  if (cost > limit_) {
    step.retry_after_ns = kNever;
  } else if (spare >= 0) {  // The previous window has to fade far enough.
    const Int128 fades = length_ns_ - Int128{spare} * length_ns_ / state.previous;
    step.retry_after_ns = before + Clamp64(fades - elapsed);
  } else {  // The current window has to end, and then to fade.
    const Int128 fades = length_ns_ - Int128{limit_ - cost} * length_ns_ / state.current;
    step.retry_after_ns = before + length_ns_ - elapsed + Clamp64(std::max<Int128>(fades, 0));
  }
  return step;
}

Step SlidingCounter::Test(State* state, int64_t cost, int64_t now_ns) const {
  Roll(state, now_ns);
  const Int128 weighted = Int128{state->previous} * (length_ns_ - Elapsed(*state, now_ns)) +
                          (Int128{state->current} + cost) * length_ns_;
  const bool allowed = cost == 0 || weighted <= Int128{limit_} * length_ns_;
  return Describe(*state, allowed, cost, now_ns);
}

Step SlidingCounter::Charge(State* state, int64_t cost, int64_t now_ns, Receipt* receipt) const {
  const Step test = Test(state, cost, now_ns);
  if (!test.allowed || cost == 0) return test;
  state->current += cost;
  if (receipt != nullptr) *receipt = {state->index, 1};
  return Describe(*state, true, cost, now_ns);
}

bool SlidingCounter::Refund(State* state, Receipt receipt, int64_t units, int64_t now_ns) const {
  Roll(state, now_ns);
  if (receipt.b == 0 || units <= 0) return false;
  if (receipt.a == state->index) {
    state->current = std::max<int64_t>(state->current - units, 0);
  } else if (receipt.a == state->index - 1) {  // Its weight has faded, and so has what comes back.
    state->previous = std::max<int64_t>(state->previous - units, 0);
  } else {
    return false;
  }
  return true;
}

void SlidingCounter::Overrun(State* state, int64_t units, int64_t now_ns) const {
  Roll(state, now_ns);
  state->current = std::min(state->current + units, kMaxCount);
}

int64_t SlidingCounter::Used(State state, int64_t now_ns) const {
  Roll(&state, now_ns);
  const Int128 faded = Int128{state.previous} * (length_ns_ - Elapsed(state, now_ns));
  return Clamp64(state.current + CeilDiv(faded, length_ns_));
}

void StrictCounter::Roll(State* state, int64_t now_ns) const {
  const int64_t index = now_ns / width_ns_;
  if (state->counts.size() != static_cast<size_t>(slots_)) {
    *state = {index, std::vector<int64_t>(static_cast<size_t>(slots_), 0)};
    return;
  }
  if (state->index >= index) return;
  const int64_t steps = std::min(index - state->index, slots_);
  for (int64_t i = 0; i < steps; ++i) {
    state->counts[static_cast<size_t>((index - i) % slots_)] = 0;
  }
  state->index = index;
}

int64_t StrictCounter::Total(const State& state) const {
  int64_t total = 0;
  for (const int64_t count : state.counts) total += count;
  return total;
}

Step StrictCounter::Test(State* state, int64_t cost, int64_t now_ns) const {
  Roll(state, now_ns);
  const int64_t total = Total(*state);
  Step step;
  step.allowed = cost == 0 || total + cost <= limit_;
  step.remaining = std::max<int64_t>(limit_ - total, 0);
  int64_t excess = step.allowed ? 0 : total + cost - limit_;
  for (int64_t index = state->index - slots_ + 1; index <= state->index; ++index) {
    const int64_t count = index < 0 ? 0 : state->counts[static_cast<size_t>(index % slots_)];
    if (count == 0) continue;
    step.reset_after_ns = LeavesAfter(index, now_ns);
    if (excess > 0) step.retry_after_ns = LeavesAfter(index, now_ns);
    excess -= count;
  }
  if (cost > limit_) step.retry_after_ns = kNever;
  return step;
}

Step StrictCounter::Charge(State* state, int64_t cost, int64_t now_ns, Receipt* receipt) const {
  Step step = Test(state, cost, now_ns);
  if (!step.allowed || cost == 0) return step;
  state->counts[static_cast<size_t>(state->index % slots_)] += cost;
  if (receipt != nullptr) *receipt = {state->index, 1};
  step.remaining -= cost;
  step.reset_after_ns = LeavesAfter(state->index, now_ns);
  return step;
}

bool StrictCounter::Refund(State* state, Receipt receipt, int64_t units, int64_t now_ns) const {
  Roll(state, now_ns);
  if (receipt.b == 0 || units <= 0) return false;
  if (receipt.a > state->index || receipt.a <= state->index - slots_) return false;
  int64_t& count = state->counts[static_cast<size_t>(receipt.a % slots_)];
  count = std::max<int64_t>(count - units, 0);
  return true;
}

void StrictCounter::Overrun(State* state, int64_t units, int64_t now_ns) const {
  Roll(state, now_ns);
  int64_t& count = state->counts[static_cast<size_t>(state->index % slots_)];
  count = std::min(count + units, kMaxCount / kMaxBuckets);
}

int64_t StrictCounter::Used(const State& state, int64_t now_ns) const {
  if (state.counts.empty()) return 0;
  State rolled = state;
  Roll(&rolled, now_ns);
  return Total(rolled);
}

StrictCounter::State StrictCounter::FromUsed(int64_t used, int64_t now_ns) const {
  State state;
  Overrun(&state, used, now_ns);
  return state;
}

}  // namespace weir::core
