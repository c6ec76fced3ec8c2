// A limiter that is plain, slow and obviously right, for tests to compare the real ones with.
//
// It keeps every charge that was ever admitted and answers one question from first principles:
// would `cost` fit at `now`? Everything else follows from that by searching: remaining is the
// largest cost that fits, retry_after the shortest wait after which the cost fits, reset_after the
// shortest wait after which nothing counts any more.
//
//   ModelLimiter model(spec);
//   core::Step expected = model.Charge(cost, now_ns);
//
// Time must not go back. Calendar windows and parallel limits are not modelled. Thread safety:
// none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/int128.h"
#include "core/meter.h"
#include "core/refund_total.h"

namespace weir::testing {

class ModelLimiter {
 public:
  using Int128 = core::Int128;

  // `offset_ns` shifts the edges of fixed windows.
  explicit ModelLimiter(const core::MeterSpec& spec, int64_t offset_ns = 0)
      : spec_(spec),
        units_(spec.rate.units),
        period_ns_(spec.rate.period.count()),
        capacity_(spec.algorithm == Algorithm::kTokenBucket ? spec.rate.burst : spec.rate.units),
        offset_ns_(offset_ns) {}

  core::Step Test(int64_t cost, int64_t now_ns) const {
    core::Step step;
    step.allowed = cost == 0 || Fits(cost, now_ns);
    int64_t low = 0, high = units_ == 0 ? 0 : capacity_;
    while (low < high) {  // The largest cost that fits.
      const int64_t middle = high - (high - low) / 2;
      Fits(middle, now_ns) ? low = middle : high = middle - 1;
    }
    step.remaining = low;
    step.reset_after_ns = Search(now_ns, [&](int64_t at_ns) { return Idle(at_ns); });
    if (!step.allowed) {
      step.retry_after_ns = units_ == 0 || cost > capacity_
                                ? core::kNever
                                : Search(now_ns, [&](int64_t at_ns) { return Fits(cost, at_ns); });
    }
    return step;
  }

  core::Step Charge(int64_t cost, int64_t now_ns) {
    core::Step step = Test(cost, now_ns);
    if (!step.allowed || cost == 0) return step;
    Take(cost, now_ns);
    step = Test(0, now_ns);
    return step;
  }

  // The last charge, to settle later.
  size_t LastCharge() const { return charges_.size() - 1; }

  void Settle(size_t charge, int64_t reserved, int64_t actual, int64_t now_ns) {
    if (actual > reserved) {
      Take(actual - reserved, now_ns);
    } else if (spec_.algorithm == Algorithm::kTokenBucket) {
      // What time gave back since the charge does not come back a second time, nor what came back
      // of charges before it.
      const Int128 left = charges_[charge].deficit_after -
                          Int128{now_ns - charges_[charge].at_ns} * units_ -
                          Int128{returned_.Since(charges_[charge].place)} * period_ns_;
      const Int128 back =
          std::min(Int128{reserved - actual} * period_ns_, std::max<Int128>(left, 0));
      const bool last = Deficit(now_ns) == left;
      deficit_ = std::max<Int128>(Deficit(now_ns) - back, 0);
      deficit_at_ns_ = now_ns;
      const auto units = static_cast<int64_t>(core::CeilDiv(back, period_ns_));
      if (units > 0 && !last) returned_.Add(charges_[charge].place, units, now_ns);
    } else {
      charges_[charge].units -= reserved - actual;
    }
  }

  bool Fits(int64_t cost, int64_t now_ns) const {
    if (cost == 0) return true;
    if (units_ == 0) return false;
    switch (spec_.algorithm) {
      case Algorithm::kTokenBucket:
        return Deficit(now_ns) + Int128{cost} * period_ns_ <= Int128{capacity_} * period_ns_;
      case Algorithm::kSlidingWindow:
        return SumSince(now_ns - period_ns_ + 1) + cost <= capacity_;
      case Algorithm::kFixedWindow:
        return SumIn(Window(now_ns), Window(now_ns)) + cost <= capacity_;
      case Algorithm::kSlidingCounter: {
        const int64_t window = Window(now_ns);
        if (spec_.strict) return SumIn(window - spec_.buckets, window) + cost <= capacity_;
        const int64_t elapsed = now_ns - window * period_ns_;
        return Int128{SumIn(window - 1, window - 1)} * (period_ns_ - elapsed) +
                   Int128{SumIn(window, window) + cost} * period_ns_ <=
               Int128{capacity_} * period_ns_;
      }
      case Algorithm::kParallel:
        break;
    }
    return false;
  }

 private:
  struct Taken {
    int64_t at_ns;
    int64_t units;
    Int128 deficit_after;
    core::RefundTotal::Place place;
  };

  void Take(int64_t units, int64_t now_ns) {
    deficit_ = Deficit(now_ns) + Int128{units} * period_ns_;
    deficit_at_ns_ = now_ns;
    charges_.push_back({now_ns, units, deficit_, {returned_.mark(), EndsAt(now_ns)}});
  }
  // What the bucket lacks, in units times the period: it refills by `units` of that per nanosecond.
  Int128 Deficit(int64_t now_ns) const {
    return std::max<Int128>(deficit_ - Int128{now_ns - deficit_at_ns_} * units_, 0);
  }
  int64_t EndsAt(int64_t now_ns) const {
    return units_ == 0 ? 0 : core::Clamp64(now_ns + core::CeilDiv(Deficit(now_ns), Int128{units_}));
  }
  int64_t Window(int64_t at_ns) const {
    if (spec_.strict) return at_ns / core::CeilDiv64(period_ns_, spec_.buckets);
    return (at_ns + offset_ns_) / period_ns_;
  }
  int64_t SumSince(int64_t from_ns) const {
    int64_t sum = 0;
    for (const Taken& taken : charges_) sum += taken.at_ns >= from_ns ? taken.units : 0;
    return sum;
  }
  int64_t SumIn(int64_t first, int64_t last) const {
    int64_t sum = 0;
    for (const Taken& taken : charges_) {
      const int64_t window = Window(taken.at_ns);
      sum += window >= first && window <= last ? taken.units : 0;
    }
    return sum;
  }
  bool Idle(int64_t now_ns) const {
    const int64_t window = Window(now_ns);
    switch (spec_.algorithm) {
      case Algorithm::kTokenBucket:
        return Deficit(now_ns) == 0;
      case Algorithm::kSlidingWindow:
        return SumSince(now_ns - period_ns_ + 1) == 0;
      case Algorithm::kFixedWindow:
        return SumIn(window, window) == 0;
      default:
        return SumIn(window - (spec_.strict ? spec_.buckets : 1), window) == 0;
    }
  }
  // The shortest wait after which `holds`, which stays true once it is.
  template <typename Predicate>
  static int64_t Search(int64_t now_ns, Predicate holds) {
    if (holds(now_ns)) return 0;
    int64_t high = 1;
    while (!holds(now_ns + high)) high *= 2;
    int64_t low = high / 2;  // Does not hold there, or is 0.
    while (low + 1 < high) {
      const int64_t middle = low + (high - low) / 2;
      holds(now_ns + middle) ? high = middle : low = middle;
    }
    return high;
  }

  core::MeterSpec spec_;
  int64_t units_;
  int64_t period_ns_;
  int64_t capacity_;
  int64_t offset_ns_;
  Int128 deficit_ = 0;
  core::RefundTotal returned_;
  int64_t deficit_at_ns_ = 0;
  std::vector<Taken> charges_;
};

}  // namespace weir::testing
