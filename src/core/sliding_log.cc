#include "core/sliding_log.h"

#include <algorithm>

namespace weir::core {

void SlidingLog::Prune(State* state, int64_t now_ns) const {
  auto& runs = state->runs;
  while (state->head < runs.size() && runs[state->head].at_ns <= now_ns - length_ns_) {
    state->total -= runs[state->head].units;
    ++state->head;
  }
  // Move the rest down once it is the smaller half: amortised constant, and memory follows the
  // window.
  if (state->head > 16 && state->head * 2 >= runs.size()) {
    runs.erase(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(state->head));
    state->head = 0;
    if (runs.capacity() > 4 * runs.size() + 64) runs.shrink_to_fit();
  }
}

void SlidingLog::Append(State* state, int64_t units, int64_t now_ns) const {
  auto& runs = state->runs;
  // A stale `now` joins the latest run: later for the caller, and the order stays.
  if (state->head < runs.size() && runs.back().at_ns >= now_ns) {
    runs.back().units += units;
  } else {
    runs.push_back({now_ns, units});
  }
  state->total += units;
}

Step SlidingLog::Test(State* state, int64_t cost, int64_t now_ns) const {
  Prune(state, now_ns);
  Step step;
  step.allowed = cost == 0 || state->total + cost <= limit_;
  step.remaining = std::max<int64_t>(limit_ - state->total, 0);
  step.reset_after_ns = state->total > 0 ? state->runs.back().at_ns + length_ns_ - now_ns : 0;
  if (step.allowed) return step;
  if (cost > limit_) {
    step.retry_after_ns = kNever;
    return step;
  }
  int64_t excess = state->total + cost - limit_;
  for (size_t i = state->head; i < state->runs.size() && excess > 0; ++i) {
    excess -= state->runs[i].units;
    step.retry_after_ns = state->runs[i].at_ns + length_ns_ - now_ns;
  }
  return step;
}

Step SlidingLog::Charge(State* state, int64_t cost, int64_t now_ns, Receipt* receipt) const {
  Step step = Test(state, cost, now_ns);
  if (!step.allowed || cost == 0) return step;
  Append(state, cost, now_ns);
  if (receipt != nullptr) *receipt = {state->runs.back().at_ns, 1};
  step.remaining = limit_ - state->total;
  step.reset_after_ns = state->runs.back().at_ns + length_ns_ - now_ns;
  return step;
}

bool SlidingLog::Refund(State* state, Receipt receipt, int64_t units, int64_t now_ns) const {
  Prune(state, now_ns);
  if (receipt.b == 0) return false;
  auto& runs = state->runs;
  const auto first = runs.begin() + static_cast<std::ptrdiff_t>(state->head);
  const auto run = std::lower_bound(
      first, runs.end(), receipt.a,
      [](const State::Run& candidate, int64_t at_ns) { return candidate.at_ns < at_ns; });
  if (run == runs.end() || run->at_ns != receipt.a) return false;
  const int64_t back = std::min(units, run->units);
  run->units -= back;
  state->total -= back;
  if (run->units == 0) runs.erase(run);
  return back > 0;
}

void SlidingLog::Overrun(State* state, int64_t units, int64_t now_ns) const {
  constexpr int64_t kMaxTotal = int64_t{1} << 61;  // Debt stays there until its units leave.
  Prune(state, now_ns);
  units = std::min(units, kMaxTotal - state->total);
  if (units > 0) Append(state, units, now_ns);
}

int64_t SlidingLog::Used(const State& state, int64_t now_ns) const {
  int64_t used = 0;
  for (size_t i = state.head; i < state.runs.size(); ++i) {
    if (state.runs[i].at_ns > now_ns - length_ns_) used += state.runs[i].units;
  }
  return used;
}

SlidingLog::State SlidingLog::FromUsed(int64_t used, int64_t now_ns) const {
  State state;
  if (used > 0) Append(&state, used, now_ns);
  return state;
}

}  // namespace weir::core
