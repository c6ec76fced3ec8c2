// State that does not fit one int64, for every algorithm that has such, behind one set of
// operations.
//
//   WideState state;
//   core::Step step = ChargeWide(meter, &state, charge, now, spread, &receipt);
//
// Thread safety: none; the sharded map's locks guard it. REQUIRES of all: the meter has state and
// is not packed.
#pragma once

#include <variant>

#include "core/meter.h"
#include "core/refund_total.h"
#include "store/memory/packed_state.h"
#include "store/store.h"

namespace weir::store {

// Empty means full quota.
using WideState = std::variant<std::monostate, core::ExactBucketState, core::FixedWindowState,
                               core::SlidingLogState, core::SlidingCounterState,
                               core::StrictCounterState, core::ParallelState>;

core::Step ChargeWide(const core::Meter& meter, WideState* state, const Charge& charge,
                      core::Now now, uint64_t spread, core::Receipt* receipt);
// May drop what has expired from the state; means no change.
core::Step TestWide(const core::Meter& meter, WideState* state, int64_t cost, core::Now now,
                    uint64_t spread);
// False: nothing to give back. For a parallel meter it ends the lease of the receipt. `total` is
// what came back of the bucket before; the others have no use for it.
bool RefundWide(const core::Meter& meter, WideState* state, core::RefundTotal* total,
                core::Receipt receipt, int64_t units, core::Now now, uint64_t spread);
// REQUIRES: not a parallel meter.
void OverrunWide(const core::Meter& meter, WideState* state, int64_t units, core::Now now,
                 uint64_t spread);

// The same units used, now under `to`. Empty when the algorithms differ.
WideState CarryWide(const core::Meter& from, const core::Meter& to, WideState&& state,
                    core::Now now, uint64_t spread);
int64_t UsedWide(const core::Meter& meter, const WideState& state, core::Now now, uint64_t spread);
WideState WideFromUsed(const core::Meter& meter, int64_t used, core::Now now, uint64_t spread);
Standing StandingOfWide(const core::Meter& meter, const WideState& state, core::Now now,
                        uint64_t spread);

}  // namespace weir::store
