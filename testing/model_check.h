// Random limits and random histories of calls, run through a limiter and through the model side by
// side.
//
//   rc::check("token bucket", [](const ModelOps& ops, uint64_t pick) {
//     const core::MeterSpec spec = PickSpec(Algorithm::kTokenBucket, pick);
//     CompareWithModel(spec, ops, limiter);   // Fails the property at the first difference.
//   });
#pragma once

#include <fmt/format.h>
#include <rapidcheck.h>

#include <chrono>
#include <cstdint>
#include <tuple>
#include <vector>

#include "testing/model_limiter.h"

namespace weir::testing {

// (what to do, how long to wait before it, how much), each a number that the check maps onto the
// limit at hand.
using ModelOps = std::vector<std::tuple<uint8_t, uint32_t, uint32_t>>;

// A spec that compiles. Rates that divide and that do not, small and very large.
inline core::MeterSpec PickSpec(Algorithm algorithm, uint64_t pick) {
  const auto next = [&pick](uint64_t bound) {  // SplitMix64.
    uint64_t z = (pick += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<int64_t>((z ^ (z >> 31)) % bound);
  };
  constexpr int64_t kPeriods[] = {7,
                                  1'000,
                                  1'000'000'000,
                                  1'300'000'000,
                                  13'000'000'000,
                                  60'000'000'000,
                                  3'600'000'000'000,
                                  86'400'000'000'000,
                                  2'592'000'000'000'000,
                                  31'536'000'000'000'000};
  constexpr int64_t kUnits[] = {
      1,         2,           3,         7,      10,  97,        1'000, 99'991,           700'000,
      3'000'000, 700'000'000, kMaxUnits, 40'000, 350, 8'000'011, 61,    2'000'000'000'003};
  core::MeterSpec spec{.algorithm = algorithm};
  do {
    spec.rate.units = next(8) == 0 ? 1 + next(1000) : kUnits[next(std::size(kUnits))];
    spec.rate.period =
        std::chrono::nanoseconds(next(8) == 0 ? 1 + next(1'000'000) : kPeriods[next(10)]);
    if (algorithm == Algorithm::kTokenBucket) {
      spec.rate.burst = next(2) == 0 ? spec.rate.units : 1 + next(next(2) == 0 ? 10 : 1'000'000);
    }
    if (algorithm == Algorithm::kSlidingCounter) {
      spec.strict = next(2) == 0;
      spec.buckets = static_cast<int>(2 + next(12));
    }
  } while (!core::Meter::Compile(spec));
  return spec;
}

// Limiter: Step Charge(cost, now_ns, Receipt*); Step Test(cost, now_ns);
//          void Settle(Receipt, reserved, actual, now_ns).
template <typename Limiter>
void CompareWithModel(const core::MeterSpec& spec, const ModelOps& ops, Limiter& limiter,
                      int64_t offset_ns = 0) {
  const int64_t quota =
      spec.algorithm == Algorithm::kTokenBucket ? spec.rate.burst : spec.rate.units;
  const int64_t period_ns = spec.rate.period.count();
  ModelLimiter model(spec, offset_ns);
  struct Open {
    core::Receipt receipt;
    size_t charge;
    int64_t cost;
  };
  std::vector<Open> open;
  int64_t now_ns = 0;
  core::Step last;
  for (const auto& [kind, gap, amount] : ops) {
    switch (gap % 8) {
      case 0:
      case 1:
        break;  // The same instant.
      case 2:
        now_ns += gap % 1000;
        break;
      case 3:
        now_ns += std::max<int64_t>(last.retry_after_ns, 0);
        break;
      case 4:  // One nanosecond too early.
        now_ns += std::max<int64_t>(last.retry_after_ns - 1, 0);
        break;
      case 5:
        now_ns += last.reset_after_ns;
        break;
      case 6:
        now_ns += static_cast<int64_t>(core::Int128{period_ns} * (gap >> 8) / (1 << 24));
        break;
      default:
        now_ns += std::min<int64_t>(period_ns * 3, int64_t{1} << 50);
    }
    if (now_ns > core::kHorizonNs) return;
    const int64_t cost =
        amount % 8 < 4    ? std::min<int64_t>(amount % 4, kMaxUnits)
        : amount % 8 == 4 ? quota
        : amount % 8 == 5 ? std::min(quota + 1, kMaxUnits)
        : amount % 8 == 6 ? std::max<int64_t>(last.remaining, 0)
                          : static_cast<int64_t>(core::Int128{quota} * (amount >> 8) / (1 << 24));
    core::Step expected, actual;
    if (kind % 8 == 7 && !open.empty()) {
      const Open settled = open[amount % open.size()];
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(amount % open.size()));
      const int64_t used = amount % 3 == 0 ? settled.cost + gap % 5 : settled.cost / (1 + gap % 4);
      model.Settle(settled.charge, settled.cost, used, now_ns);
      limiter.Settle(settled.receipt, settled.cost, used, now_ns);
      expected = model.Test(1, now_ns);
      actual = limiter.Test(1, now_ns);
    } else if (kind % 8 == 6) {
      expected = model.Test(cost, now_ns);
      actual = limiter.Test(cost, now_ns);
    } else {
      core::Receipt receipt;
      expected = model.Charge(cost, now_ns);
      actual = limiter.Charge(cost, now_ns, &receipt);
      if (expected.allowed && cost > 0) open.push_back({receipt, model.LastCharge(), cost});
    }
    const auto text = [](const core::Step& step) {
      return fmt::format("allowed {} remaining {} reset {} retry {}", step.allowed, step.remaining,
                         step.reset_after_ns, step.retry_after_ns);
    };
    RC_LOG() << fmt::format("{}/{} ns burst {}: kind {} cost {} at {}\n", spec.rate.units,
                            period_ns, spec.rate.burst, kind % 8, cost, now_ns);
    RC_ASSERT(text(actual) == text(expected));
    last = actual;
  }
}

}  // namespace weir::testing
