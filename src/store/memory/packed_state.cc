#include "store/memory/packed_state.h"

namespace weir::store {

using core::FixedWindowState;
using core::Form;

bool RefundPacked(const core::Meter& meter, int64_t* state, core::RefundTotal* total,
                  core::Receipt receipt, int64_t units, core::Now now, uint64_t spread) {
  if (meter.form() == Form::kTickBucket) {
    return RefundOpen(meter.tick_bucket(), state, total, receipt, units, now.mono_ns) > 0;
  }
  FixedWindowState window = meter.window().Unpack(*state);
  if (meter.window().IsSaturated(window)) return false;  // How much is left then is not known.
  if (!meter.window().Refund(&window, receipt, units, now, spread)) return false;
  *state = meter.window().Pack(window);
  return true;
}

void OverrunPacked(const core::Meter& meter, int64_t* state, int64_t units, core::Now now,
                   uint64_t spread) {
  if (meter.form() == Form::kTickBucket) {
    meter.tick_bucket().Overrun(state, units, now.mono_ns);
    return;
  }
  FixedWindowState window = meter.window().Unpack(*state);
  meter.window().Overrun(&window, units, now, spread);
  *state = meter.window().Pack(window);
}

int64_t CarryPacked(const core::Meter& from, const core::Meter& to, int64_t state, core::Now now,
                    uint64_t spread) {
  if (from.form() != to.form()) return 0;
  if (to.form() == Form::kTickBucket) {
    return to.tick_bucket().Carry(state, from.tick_bucket(), now.mono_ns);
  }
  const FixedWindowState window = from.window().Unpack(state);
  return to.window().Pack(to.window().Carry(window, from.window(), now, spread));
}

int64_t UsedPacked(const core::Meter& meter, int64_t state, core::Now now, uint64_t spread) {
  if (meter.form() == Form::kTickBucket) return meter.tick_bucket().Used(state, now.mono_ns);
  return meter.window().Used(meter.window().Unpack(state), now, spread);
}

int64_t PackedFromUsed(const core::Meter& meter, int64_t used, core::Now now, uint64_t spread) {
  if (used <= 0) return 0;
  if (meter.form() == Form::kTickBucket) return meter.tick_bucket().FromUsed(used, now.mono_ns);
  return meter.window().Pack(meter.window().FromUsed(used, now, spread));
}

Standing StandingOfPacked(const core::Meter& meter, int64_t state, core::Now now, uint64_t spread) {
  if (meter.form() == Form::kTickBucket) {
    const core::TickBucket& bucket = meter.tick_bucket();
    return {bucket.Full(state, now.mono_ns), bucket.Exhausted(state, now.mono_ns),
            bucket.UsedShare(state, now.mono_ns)};
  }
  const int64_t used = UsedPacked(meter, state, now, spread);
  return {used == 0, used >= meter.quota(),
          static_cast<double>(used) / static_cast<double>(meter.quota())};
}

}  // namespace weir::store
