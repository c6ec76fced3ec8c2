// Token bucket by GCRA: `burst` units of capacity, refilled continuously at units/period. Two exact
// forms of one algorithm.
//
// TickBucket: the emission interval T = period/units is p/q ns in lowest terms and q is small, so
// one int64 holds the state exactly: the theoretical arrival time `tat` in ticks of 1/q ns. Its
// zero is "full". ExactBucket: any rate. The state is (base, used): `used` units taken since
// `base`. `base` never runs ahead of the clock that wrote it, so a clock fault shows in `base` and
// a debt in `used`, and healing the one forgives none of the other.
//
//   TickBucket bucket = *TickBucket::Fit({.units = 300, .period = 60s, .burst = 50});
//   int64_t tat = 0;
//   Step step = bucket.Charge(&tat, /*cost=*/1, now.mono_ns);
//
// In all of core: a denial leaves the state alone; cost 0 peeks and is always allowed; a cost above
// the capacity is never admissible; a stale `now` is stricter on the caller that brings it and
// changes nothing for others. REQUIRES: cost in [0, kMaxUnits]; now_ns in [0, kHorizonNs].
//
// Thread safety: the classes are immutable; a state is owned by its caller.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <optional>

#include "core/int128.h"
#include "core/now.h"
#include "core/step.h"
#include "weir/limit.h"

namespace weir::core {

class TickBucket {
 public:
  using State = int64_t;

  // Bounds under which no sum below can overflow: now in ticks stays below 2^62 (q * kHorizonNs),
  // tau below 2^60, and debt saturates at kTatMax, so base + cost * p < 2^63.
  static constexpr int64_t kMaxQ = 64;
  static constexpr int64_t kMaxTauTicks = int64_t{1} << 60;
  static constexpr int64_t kTatMax = (int64_t{1} << 62) + (int64_t{1} << 60);

  TickBucket() = default;
  // Nothing when the rate needs the exact form. REQUIRES: units > 0, period > 0, burst > 0.
  static std::optional<TickBucket> Fit(const Rate& rate);

  Step Charge(int64_t* tat, int64_t cost, int64_t now_ns, Receipt* receipt = nullptr) const {
    const int64_t now = now_ns * q_;
    const int64_t base = std::max(*tat, now);
    if (cost == 0) return Allowed(base - now);
    if (cost > burst_) [[unlikely]]
      return Denied(cost, base - now);  // Before the product, which might not fit.
    const int64_t next = base + cost * p_;
    if (next - now > tau_) return Denied(cost, base - now);
    *tat = next;
    if (receipt != nullptr) *receipt = {next, 0, now_ns};
    return Allowed(next - now);
  }

  // Charge without its report: whether `cost` > 0 passes, and then *tat moves on.
  bool Take(int64_t* tat, int64_t cost, int64_t now_ns) const {
    if (cost > 1 && cost > burst_) return false;  // A burst is 1 at least.
    const int64_t now = now_ns * q_;
    const int64_t next = std::max(*tat, now) + cost * p_;
    if (next - now > tau_) return false;
    *tat = next;
    return true;
  }

  // What Charge would say of `cost`, with `remaining` and `reset_after_ns` as they stand without
  // it.
  Step Test(int64_t tat, int64_t cost, int64_t now_ns) const {
    const int64_t now = now_ns * q_;
    const int64_t ahead = std::max(tat, now) - now;
    if (cost > burst_ || (cost > 0 && ahead + cost * p_ > tau_)) return Denied(cost, ahead);
    return Allowed(ahead);
  }

  // Gives back `units` of a charge, at most what time has not given back since: min(units * T,
  // max(0, A - now)). Returns the units, rounded up; 0 changes nothing. Where other charges may
  // have been given back since, call RefundOpen (refund_total.h).
  int64_t Refund(int64_t* tat, Receipt receipt, int64_t units, int64_t now_ns) const;
  // The receipt of a charge below which so many units came back.
  Receipt MovedDown(Receipt receipt, int64_t units) const {
    receipt.a = Clamp64(Int128{receipt.a} - Int128{units} * p_);
    return receipt;
  }
  // When time alone has given the charge back.
  int64_t EndOf(Receipt receipt) const { return CeilDiv64(receipt.a, q_); }
  // Whether nothing has been charged above it.
  bool IsLast(int64_t tat, Receipt receipt, int64_t /*now_ns*/) const { return tat == receipt.a; }
  // Whole units up to the charge that time has not given back by `now_ns`, and a receipt for so
  // many.
  int64_t Unreturned(Receipt receipt, int64_t now_ns) const {
    return std::max<int64_t>(receipt.a - now_ns * q_, 0) / p_;
  }
  Receipt ReceiptFor(int64_t units, int64_t now_ns) const {
    return {FromUsed(units, now_ns), 0, now_ns};
  }
  // Adds units whatever remains: debt, repaid by waiting.
  void Overrun(int64_t* tat, int64_t units, int64_t now_ns) const;

  // The state under this bucket that has as many units used as `tat` has under `from`, rounded up
  // by less than a tick.
  int64_t Carry(int64_t tat, const TickBucket& from, int64_t now_ns) const;
  // Used units, rounded up; and the state that has so many used.
  int64_t Used(int64_t tat, int64_t now_ns) const {
    return CeilDiv64(std::max<int64_t>(tat - now_ns * q_, 0), p_);
  }
  int64_t FromUsed(int64_t used, int64_t now_ns) const;

  bool Full(int64_t tat, int64_t now_ns) const { return tat <= now_ns * q_; }
  bool Exhausted(int64_t tat, int64_t now_ns) const { return tat - now_ns * q_ > tau_ - p_; }
  // Used part of the capacity, for choosing what to evict.
  double UsedShare(int64_t tat, int64_t now_ns) const {
    return static_cast<double>(tat - now_ns * q_) / static_cast<double>(tau_);
  }

 private:
  int64_t ToNsUp(int64_t ticks) const { return q_ == 1 ? ticks : (ticks + q_ - 1) / q_; }
  Step Allowed(int64_t ahead) const {
    return {true, ahead >= tau_ ? 0 : (tau_ - ahead) / p_, ToNsUp(ahead), 0};
  }
  Step Denied(int64_t cost, int64_t ahead) const {
    return {false, ahead >= tau_ ? 0 : (tau_ - ahead) / p_, ToNsUp(ahead),
            cost > burst_ ? kNever : ToNsUp(ahead + cost * p_ - tau_)};
  }

  int64_t p_ = 1;  // Ticks per unit.
  int64_t q_ = 1;  // Ticks per nanosecond.
  int64_t tau_ = 1;
  int64_t burst_ = 1;
};

struct ExactBucketState {
  int64_t base_ns = 0;
  int64_t used = 0;  // Units taken since base; time since base counts against it. Bounded by burst
                     // + debt + units.
};

class ExactBucket {
 public:
  using State = ExactBucketState;
  // A base further than this ahead of the clock can only be a fault of the clock.
  static constexpr int64_t kHealSlackNs = 1'000'000'000;

  ExactBucket() = default;
  // REQUIRES: units > 0, period > 0, burst > 0, burst * period / units < 2^62.
  explicit ExactBucket(const Rate& rate)
      : units_(rate.units), period_ns_(rate.period.count()), burst_(rate.burst) {}

  Step Charge(State* state, int64_t cost, int64_t now_ns, Receipt* receipt = nullptr) const;
  Step Test(const State& state, int64_t cost, int64_t now_ns) const;
  // As of TickBucket.
  int64_t Refund(State* state, Receipt receipt, int64_t units, int64_t now_ns) const;
  Receipt MovedDown(Receipt receipt, int64_t units) const {
    receipt.b = Clamp64(Int128{receipt.b} - units);
    return receipt;
  }
  int64_t EndOf(Receipt receipt) const {
    return Clamp64(CeilDiv(Level({receipt.a, receipt.b}, 0), units_));
  }
  bool IsLast(const State& state, Receipt receipt, int64_t now_ns) const {
    return Level(state, now_ns) == Level({receipt.a, receipt.b}, now_ns);
  }
  int64_t Unreturned(Receipt receipt, int64_t now_ns) const {
    return Clamp64(std::max<Int128>(Level({receipt.a, receipt.b}, now_ns), 0) / period_ns_);
  }
  Receipt ReceiptFor(int64_t units, int64_t now_ns) const { return {now_ns, units, now_ns}; }
  void Overrun(State* state, int64_t units, int64_t now_ns) const;
  // Brings a base back that is more than kHealSlackNs ahead of the clock; what was used, debt
  // included, stays used. For stores whose clock can jump; true when it changed something. A store
  // on a monotonic clock must not call it: a thread that was paused for longer would then forgive
  // what others took.
  bool Heal(State* state, int64_t now_ns) const;

  int64_t Used(const State& state, int64_t now_ns) const;
  State FromUsed(int64_t used, int64_t now_ns) const { return {now_ns, used}; }
  bool Full(const State& state, int64_t now_ns) const { return Level(state, now_ns) <= 0; }
  bool Exhausted(const State& state, int64_t now_ns) const {
    return Level(state, now_ns) + period_ns_ > Int128{burst_} * period_ns_;
  }
  double UsedShare(const State& state, int64_t now_ns) const {
    return static_cast<double>(Level(state, now_ns)) /
           (static_cast<double>(burst_) * static_cast<double>(period_ns_));
  }

 private:
  // (tat - now) * units: negative or zero when full.
  Int128 Level(const State& state, int64_t now_ns) const {
    return Int128{state.base_ns - now_ns} * units_ + Int128{state.used} * period_ns_;
  }
  Step Describe(bool allowed, Int128 level, int64_t cost) const;
  void Normalize(State* state, int64_t now_ns) const;

  int64_t units_ = 1;
  int64_t period_ns_ = 1;
  int64_t burst_ = 1;
};

}  // namespace weir::core
