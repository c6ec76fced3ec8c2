// What happens to charges after the decision: settled, released, renewed, reset, looked at.
#include <string>
#include <utility>

#include "decide/worker_scratch.h"

namespace weir::decide {

Result<Worker::Settled> Worker::Settle(ReservationId id, const Costs& actual, core::Now now) {
  store::MemoryStore& store = engine_.impl_->store;
  return engine_.impl_->ledger.End(id, now.mono_ns, [&](const Reservation& held) {
    Settled settled{held.costs.amount, held.costs.given};
    for (const HeldCharge& charge : held.charges) {
      if (charge.unit == Unit::kParallel) {
        store.Release(*charge.meter, charge.key, charge.receipt, charge.amount, now);
      } else if (actual.has(charge.unit)) {
        store.Settle(*charge.meter, charge.key, charge.receipt, charge.amount, actual[charge.unit],
                     now);
      }
    }
    for (size_t unit = 0; unit < kUnitCount; ++unit) {
      if (actual.has(static_cast<Unit>(unit))) settled.charged[unit] = actual.amount[unit];
    }
    settled.given |= actual.given;
    return settled;
  });
}

Result<Worker::Settled> Worker::Release(ReservationId id, core::Now now) {
  store::MemoryStore& store = engine_.impl_->store;
  return engine_.impl_->ledger.End(id, now.mono_ns, [&](const Reservation& held) {
    for (const HeldCharge& charge : held.charges) {
      if (charge.amount > 0)
        store.Release(*charge.meter, charge.key, charge.receipt, charge.amount, now);
    }
    return Settled{.given = held.costs.given};
  });
}

bool Worker::Renew(ReservationId id, int64_t ttl_ns, core::Now now) {
  store::MemoryStore& store = engine_.impl_->store;
  return engine_.impl_->ledger.Prolong(
      id, now.mono_ns, now.mono_ns + ttl_ns, [&](const Reservation& held) {
        bool renewed = true;
        for (const HeldCharge& charge : held.charges) {
          if (charge.unit != Unit::kParallel) continue;
          renewed = store.Renew(*charge.meter, charge.key, charge.receipt, ttl_ns, now) && renewed;
        }
        return renewed;
      });
}

Result<void> Worker::Reset(std::string_view limit_name, const policy::Attributes& call,
                           core::Now /*now*/) {
  const policy::Limit* const limit = bound_->policy->FindLimit(limit_name);
  if (limit == nullptr) return MakeError(ErrorCode::kNotFound, "limit: there is none of that name");
  for (const int attribute : limit->per) {
    if (call.Has(attribute)) continue;
    const std::string name(bound_->policy->attributes().NameOf(attribute));
    return InvalidArgument("attributes." + name + ": missing; the limit is kept per " + name);
  }
  const BoundLimit& bound = bound_->limits[static_cast<size_t>(limit->index)];
  for (const int variant : bound.distinct) {
    engine_.impl_->store.Reset(*bound.variants[static_cast<size_t>(variant)].meter,
                               bound.KeyOf(variant, call));
  }
  return {};
}

std::vector<LimitState> Worker::State(const policy::Attributes& call, core::Now now) {
  std::vector<LimitState> states;
  for (const BoundLimit& bound : bound_->limits) {
    const policy::Limit& limit = *bound.limit;
    bool filled = true;
    for (const int attribute : limit.per) filled = filled && call.Has(attribute);
    if (!filled) continue;
    const int variant = bound.VariantByOverrides(call);
    const BoundVariant& rate = bound.variants[static_cast<size_t>(variant)];
    LimitState state{.limit = &limit,
                     .variant = &limit.variants[static_cast<size_t>(variant)],
                     .quota = rate.figures.quota};
    if (rate.meter != nullptr)
      state.step = engine_.impl_->store.Peek(*rate.meter, bound.KeyOf(variant, call), 0, now);
    if (limit.unit == Unit::kParallel) state.step.reset_after_ns = core::kNever;
    states.push_back(state);
  }
  return states;
}

}  // namespace weir::decide
