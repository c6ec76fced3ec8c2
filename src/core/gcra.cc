#include "core/gcra.h"

#include <numeric>

namespace weir::core {

std::optional<TickBucket> TickBucket::Fit(const Rate& rate) {
  const int64_t period_ns = rate.period.count();
  const int64_t divisor = std::gcd(period_ns, rate.units);
  TickBucket bucket;
  bucket.p_ = period_ns / divisor;
  bucket.q_ = rate.units / divisor;
  bucket.burst_ = rate.burst;
  const Int128 tau = Int128{rate.burst} * bucket.p_;
  if (bucket.q_ > kMaxQ || tau > kMaxTauTicks) return std::nullopt;
  bucket.tau_ = static_cast<int64_t>(tau);
  return bucket;
}

int64_t TickBucket::Refund(int64_t* tat, Receipt receipt, int64_t units, int64_t now_ns) const {
  const auto unreturned =
      static_cast<int64_t>(std::max<Int128>(Int128{receipt.a} - Int128{now_ns} * q_, 0));
  const int64_t ticks = std::min(Clamp64(Int128{units} * p_), unreturned);
  *tat = std::max<int64_t>(*tat - ticks, 0);
  return CeilDiv64(ticks, p_);
}

void TickBucket::Overrun(int64_t* tat, int64_t units, int64_t now_ns) const {
  const Int128 next = Int128{std::max(*tat, now_ns * q_)} + Int128{units} * p_;
  *tat = static_cast<int64_t>(std::min<Int128>(next, kTatMax));
}

int64_t TickBucket::Carry(int64_t tat, const TickBucket& from, int64_t now_ns) const {
  const int64_t used_ticks = tat - now_ns * from.q_;
  if (used_ticks <= 0) return 0;
  const Int128 next = Int128{now_ns} * q_ + CeilDiv(Int128{used_ticks} * p_, from.p_);
  return static_cast<int64_t>(std::min<Int128>(next, kTatMax));
}

int64_t TickBucket::FromUsed(int64_t used, int64_t now_ns) const {
  if (used <= 0) return 0;
  int64_t tat = 0;
  Overrun(&tat, used, now_ns);
  return tat;
}

Step ExactBucket::Describe(bool allowed, Int128 level, int64_t cost) const {
  const Int128 capacity = Int128{burst_} * period_ns_;
  Step step;
  step.allowed = allowed;
  step.remaining = level >= capacity ? 0 : static_cast<int64_t>((capacity - level) / period_ns_);
  step.reset_after_ns = Clamp64(CeilDiv(level, units_));
  if (!allowed) {
    step.retry_after_ns =
        cost > burst_ ? kNever
                      : Clamp64(CeilDiv(level + Int128{cost} * period_ns_ - capacity, units_));
  }
  return step;
}

Step ExactBucket::Charge(State* state, int64_t cost, int64_t now_ns, Receipt* receipt) const {
  const Step test = Test(*state, cost, now_ns);
  if (!test.allowed || cost == 0) return test;
  if (Full(*state, now_ns)) *state = {now_ns, 0};
  state->used += cost;
  Normalize(state, now_ns);
  if (receipt != nullptr) *receipt = {state->base_ns, state->used, now_ns};
  return Describe(true, Level(*state, now_ns), cost);
}

Step ExactBucket::Test(const State& state, int64_t cost, int64_t now_ns) const {
  assert(cost >= 0 && cost <= kMaxUnits);
  const Int128 level = std::max<Int128>(Level(state, now_ns), 0);
  const bool allowed =
      cost == 0 || level + Int128{cost} * period_ns_ <= Int128{burst_} * period_ns_;
  return Describe(allowed, level, cost);
}

int64_t ExactBucket::Refund(State* state, Receipt receipt, int64_t units, int64_t now_ns) const {
  const Int128 unreturned = Level({receipt.a, receipt.b}, now_ns);
  if (unreturned <= 0 || units <= 0) return 0;
  if (Int128{units} * period_ns_ <= unreturned) {
    state->used -= units;
  } else {  // Move tat back by A - now, exactly: it is the difference of two (base, used) pairs.
    state->base_ns += now_ns - receipt.a;
    state->used -= receipt.b;
    if (state->base_ns > now_ns) {
      const int64_t periods = CeilDiv64(state->base_ns - now_ns, period_ns_);
      state->base_ns -= periods * period_ns_;
      state->used += periods * units_;
    }
  }
  Normalize(state, now_ns);
  return Clamp64(std::min<Int128>(units, CeilDiv(unreturned, period_ns_)));
}

void ExactBucket::Overrun(State* state, int64_t units, int64_t now_ns) const {
  if (Full(*state, now_ns)) *state = {now_ns, 0};
  constexpr int64_t kMaxUsed = int64_t{1} << 60;
  state->used = std::min(state->used + units, kMaxUsed);
  Normalize(state, now_ns);
}

bool ExactBucket::Heal(State* state, int64_t now_ns) const {
  if (state->base_ns - now_ns <= kHealSlackNs) return false;
  state->base_ns = now_ns;
  return true;
}

int64_t ExactBucket::Used(const State& state, int64_t now_ns) const {
  return Clamp64(CeilDiv(std::max<Int128>(Level(state, now_ns), 0), period_ns_));
}

// One period of time is worth `units` units, so (base, used) and (base + period, used - units) are
// the same instant of refill. Keep `used` small and at least 0, and `base` at most a period behind
// and never ahead of the clock, unless the clock itself went back.
void ExactBucket::Normalize(State* state, int64_t now_ns) const {
  if (Full(*state, now_ns)) {
    if (state->base_ns < now_ns || state->used < 0) *state = {now_ns, 0};
    return;
  }
  int64_t periods = 0;  // By which base moves forward.
  if (state->used < 0) {
    periods = -CeilDiv64(-state->used, units_);
  } else if (state->base_ns < now_ns) {
    periods = std::min((now_ns - state->base_ns) / period_ns_, state->used / units_);
  }
  state->base_ns += periods * period_ns_;
  state->used -= periods * units_;
}

}  // namespace weir::core
