// The two algorithms whose state is one int64, behind one set of operations. Zero is full quota in
// both.
//
//   int64_t next = state;
//   core::Step step = ChargePacked(meter, &next, cost, now, spread, &receipt);
//
// Thread safety: pure functions. REQUIRES of all: meter.packed().
#pragma once

#include "core/meter.h"
#include "core/refund_total.h"

namespace weir::store {

inline core::Step ChargePacked(const core::Meter& meter, int64_t* state, int64_t cost,
                               core::Now now, uint64_t spread, core::Receipt* receipt) {
  if (meter.form() == core::Form::kTickBucket) [[likely]] {
    return meter.tick_bucket().Charge(state, cost, now.mono_ns, receipt);
  }
  core::FixedWindowState window = meter.window().Unpack(*state);
  const core::Step step = meter.window().Charge(&window, cost, now, spread, receipt);
  if (step.allowed) receipt->at_ns = now.mono_ns;
  *state = meter.window().Pack(window);
  return step;
}

inline core::Step TestPacked(const core::Meter& meter, int64_t state, int64_t cost, core::Now now,
                             uint64_t spread) {
  if (meter.form() == core::Form::kTickBucket) [[likely]] {
    return meter.tick_bucket().Test(state, cost, now.mono_ns);
  }
  return meter.window().Test(meter.window().Unpack(state), cost, now, spread);
}

// False: nothing to give back, the state is as it was. `total` is what came back of the bucket
// before; windows have no use for it.
bool RefundPacked(const core::Meter& meter, int64_t* state, core::RefundTotal* total,
                  core::Receipt receipt, int64_t units, core::Now now, uint64_t spread);
void OverrunPacked(const core::Meter& meter, int64_t* state, int64_t units, core::Now now,
                   uint64_t spread);

// The state under `to` with the units used under `from`; full when they are different algorithms.
int64_t CarryPacked(const core::Meter& from, const core::Meter& to, int64_t state, core::Now now,
                    uint64_t spread);
int64_t UsedPacked(const core::Meter& meter, int64_t state, core::Now now, uint64_t spread);
int64_t PackedFromUsed(const core::Meter& meter, int64_t used, core::Now now, uint64_t spread);

// What an entry is worth to keep.
struct Standing {
  bool full;          // Full quota: forgetting it changes nothing.
  bool exhausted;     // Not one unit left: forgetting it would admit calls.
  double used_share;  // Of the capacity.
};
Standing StandingOfPacked(const core::Meter& meter, int64_t state, core::Now now, uint64_t spread);

}  // namespace weir::store
