#include "store/memory/wide_state.h"

#include <cstdlib>
#include <type_traits>
#include <utility>

namespace weir::store {
namespace {

using core::Form;
using core::Now;

// One algorithm with the arguments that it takes beside state and cost: the monotonic clock, or for
// fixed windows both clocks and the key's shift. Parallel stands apart.
template <typename Algorithm>
struct Bound {
  const Algorithm& algorithm;
  Now now;
  uint64_t spread;
  using State = typename Algorithm::State;

  template <typename Method, typename... Args>
  auto Call(Method method, Args&&... args) const {
    if constexpr (std::is_same_v<Algorithm, core::FixedWindow>) {
      return (algorithm.*method)(std::forward<Args>(args)..., now, spread);
    } else {
      return (algorithm.*method)(std::forward<Args>(args)..., now.mono_ns);
    }
  }
  core::Step Charge(State* state, int64_t cost, core::Receipt* receipt) const {
    if constexpr (std::is_same_v<Algorithm, core::FixedWindow>) {
      return algorithm.Charge(state, cost, now, spread, receipt);
    } else {
      return algorithm.Charge(state, cost, now.mono_ns, receipt);
    }
  }
  core::Step Test(State* state, int64_t cost) const {
    if constexpr (std::is_same_v<Algorithm, core::FixedWindow>) {
      return algorithm.Test(*state, cost, now, spread);
    } else if constexpr (std::is_same_v<Algorithm, core::ExactBucket>) {
      return algorithm.Test(*state, cost, now.mono_ns);
    } else {
      return algorithm.Test(state, cost, now.mono_ns);
    }
  }
};

// Calls fn with the meter's algorithm, bound. Parallel is the caller's to handle first.
template <typename Fn>
auto WithAlgorithm(const core::Meter& meter, Now now, uint64_t spread, Fn&& fn) {
  switch (meter.form()) {
    case Form::kExactBucket:
      return fn(Bound<core::ExactBucket>{meter.exact_bucket(), now, spread});
    case Form::kWindow:
      return fn(Bound<core::FixedWindow>{meter.window(), now, spread});
    case Form::kLog:
      return fn(Bound<core::SlidingLog>{meter.log(), now, spread});
    case Form::kCounter:
      return fn(Bound<core::SlidingCounter>{meter.counter(), now, spread});
    case Form::kStrictCounter:
      return fn(Bound<core::StrictCounter>{meter.strict_counter(), now, spread});
    default:
      std::abort();  // Packed and stateless meters have no wide state.
  }
}

// The state as its algorithm's own type; a state of another algorithm starts afresh.
template <typename State>
State* As(WideState* state) {
  if (State* own = std::get_if<State>(state)) return own;
  return &state->emplace<State>();
}

}  // namespace

core::Step ChargeWide(const core::Meter& meter, WideState* state, const Charge& charge, Now now,
                      uint64_t spread, core::Receipt* receipt) {
  if (meter.form() == Form::kParallel) {
    auto* leases = As<core::ParallelState>(state);
    if (charge.lease_id == 0) return meter.parallel().Test(leases, charge.cost, now.mono_ns);
    const core::Step step = meter.parallel().Acquire(
        leases, {charge.lease_id, charge.cost, now.mono_ns + charge.lease_ttl_ns}, now.mono_ns);
    if (step.allowed) *receipt = {static_cast<int64_t>(charge.lease_id), 1};
    return step;
  }
  return WithAlgorithm(meter, now, spread, [&]<typename A>(const Bound<A>& bound) {
    const core::Step step = bound.Charge(As<typename A::State>(state), charge.cost, receipt);
    if (step.allowed) receipt->at_ns = now.mono_ns;
    return step;
  });
}

core::Step TestWide(const core::Meter& meter, WideState* state, int64_t cost, Now now,
                    uint64_t spread) {
  if (meter.form() == Form::kParallel) {
    return meter.parallel().Test(As<core::ParallelState>(state), cost, now.mono_ns);
  }
  return WithAlgorithm(meter, now, spread, [&]<typename A>(const Bound<A>& bound) {
    return bound.Test(As<typename A::State>(state), cost);
  });
}

bool RefundWide(const core::Meter& meter, WideState* state, core::RefundTotal* total,
                core::Receipt receipt, int64_t units, Now now, uint64_t spread) {
  if (meter.form() == Form::kParallel) {
    return meter.parallel().Release(As<core::ParallelState>(state),
                                    static_cast<uint64_t>(receipt.a));
  }
  return WithAlgorithm(meter, now, spread, [&]<typename A>(const Bound<A>& bound) -> bool {
    auto* own = As<typename A::State>(state);
    if constexpr (std::is_same_v<A, core::ExactBucket>) {
      return RefundOpen(bound.algorithm, own, total, receipt, units, now.mono_ns) > 0;
    } else {
      return bound.Call(&A::Refund, own, receipt, units);
    }
  });
}

void OverrunWide(const core::Meter& meter, WideState* state, int64_t units, Now now,
                 uint64_t spread) {
  WithAlgorithm(meter, now, spread, [&]<typename A>(const Bound<A>& bound) {
    bound.Call(&A::Overrun, As<typename A::State>(state), units);
  });
}

WideState CarryWide(const core::Meter& from, const core::Meter& to, WideState&& state, Now now,
                    uint64_t spread) {
  if (from.algorithm() != to.algorithm()) return {};
  // Leases and logged units are the same under any limit. A log keeps its times: a longer window
  // sees what is left.
  if (to.form() == Form::kParallel || to.form() == Form::kLog) return std::move(state);
  if (to.form() == Form::kWindow) {
    const auto* window = std::get_if<core::FixedWindowState>(&state);
    if (window == nullptr) return {};
    return to.window().Carry(*window, from.window(), now, spread);
  }
  // A counter of the same windows keeps its counts too.
  if (to.form() != Form::kExactBucket && from.form() == to.form() &&
      from.spec().rate.period == to.spec().rate.period &&
      from.spec().buckets == to.spec().buckets) {
    return std::move(state);
  }
  return WideFromUsed(to, UsedWide(from, state, now, spread), now, spread);
}

int64_t UsedWide(const core::Meter& meter, const WideState& state, Now now, uint64_t spread) {
  if (meter.form() == Form::kParallel) {
    const auto* leases = std::get_if<core::ParallelState>(&state);
    return leases == nullptr ? 0 : meter.parallel().Used(*leases, now.mono_ns);
  }
  return WithAlgorithm(meter, now, spread, [&]<typename A>(const Bound<A>& bound) -> int64_t {
    const auto* own = std::get_if<typename A::State>(&state);
    return own == nullptr ? 0 : bound.Call(&A::Used, *own);
  });
}

WideState WideFromUsed(const core::Meter& meter, int64_t used, Now now, uint64_t spread) {
  if (used <= 0) return {};
  return WithAlgorithm(meter, now, spread, [&]<typename A>(const Bound<A>& bound) -> WideState {
    return bound.Call(&A::FromUsed, used);
  });
}

Standing StandingOfWide(const core::Meter& meter, const WideState& state, Now now,
                        uint64_t spread) {
  if (meter.form() == Form::kExactBucket) {
    const auto* bucket = std::get_if<core::ExactBucketState>(&state);
    if (bucket == nullptr) return {true, false, 0};
    const core::ExactBucket& exact = meter.exact_bucket();
    return {exact.Full(*bucket, now.mono_ns), exact.Exhausted(*bucket, now.mono_ns),
            exact.UsedShare(*bucket, now.mono_ns)};
  }
  const int64_t used = UsedWide(meter, state, now, spread);
  return {used == 0, used >= meter.quota(),
          static_cast<double>(used) / static_cast<double>(meter.quota())};
}

}  // namespace weir::store
