// What happens to charges after the decision: settled, released, renewed, reset, looked at.
#include <cassert>
#include <string>
#include <utility>

#include "decide/worker_scratch.h"

namespace weir::decide {

// What a settle by `actual` says: the units it names as they became, the others as reserved.
Settled SettledOf(const Reservation& held, const Costs& actual) {
  Settled settled{held.costs.amount, held.costs.given};
  for (size_t unit = 0; unit < kUnitCount; ++unit) {
    if (actual.has(static_cast<Unit>(unit))) settled.charged[unit] = actual.amount[unit];
  }
  settled.given |= actual.given;
  return settled;
}

Result<Worker::Settled> Worker::Settle(ReservationId id, const Costs& actual, core::Now now) {
  store::MemoryStore& store = engine_.impl_->store;
  return engine_.impl_->ledger.End(id, now.mono_ns, [&](const Reservation& held) {
    for (const HeldCharge& charge : held.charges) {
      if (charge.unit == Unit::kParallel) {
        store.Release(*charge.meter, charge.key, charge.receipt, charge.amount, now);
      } else if (actual.has(charge.unit)) {
        store.Settle(*charge.meter, charge.key, charge.receipt, charge.amount, actual[charge.unit],
                     now);
      }
    }
    return SettledOf(held, actual);
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

// The limit of that name, if the attributes name one of its counters.
Result<const BoundLimit*> Worker::ResetLimit(std::string_view limit_name,
                                             const policy::Attributes& call) const {
  const policy::Limit* const limit = bound_->policy->FindLimit(limit_name);
  if (limit == nullptr) return MakeError(ErrorCode::kNotFound, "limit: there is none of that name");
  if (limit->descriptor)
    return InvalidArgument(
        "descriptor: missing; the limit binds to descriptors, not to attributes");
  for (const int attribute : limit->per) {
    if (call.Has(attribute)) continue;
    const std::string name(bound_->policy->attributes().NameOf(attribute));
    return InvalidArgument("attributes." + name + ": missing; the limit is kept per " + name);
  }
  return &bound_->limits[static_cast<size_t>(limit->index)];
}

Result<void> Worker::Reset(std::string_view limit_name, const policy::Attributes& call,
                           core::Now now) {
  assert(!waits());
  const Result<const BoundLimit*> bound = ResetLimit(limit_name, call);
  if (!bound) return std::unexpected(bound.error());
  for (const int variant : (*bound)->distinct) {
    engine_.impl_->store.Reset(*(*bound)->variants[static_cast<size_t>(variant)].meter,
                               (*bound)->KeyOf(variant, call), now);
  }
  return {};
}

// Every limit whose `per` the attributes fill; for those that count, a charge of nothing too.
void Worker::CollectState(const policy::Attributes& call, std::vector<LimitState>& states,
                          Decision& decision) const {
  decision.Clear();
  for (const BoundLimit* const by_attributes : bound_->by_attributes) {
    const BoundLimit& bound = *by_attributes;
    const policy::Limit& limit = *bound.limit;
    bool filled = true;
    for (const int attribute : limit.per) filled = filled && call.Has(attribute);
    if (!filled) continue;
    const int variant = bound.VariantByOverrides(call);
    const BoundVariant& rate = bound.variants[static_cast<size_t>(variant)];
    states.push_back({.limit = &limit,
                      .variant = &limit.variants[static_cast<size_t>(variant)],
                      .step = {},
                      .quota = rate.figures.quota});
    if (rate.meter == nullptr) continue;
    decision.charges[decision.charge_count] = {.meter = rate.meter, .key = {}, .cost = 0};
    decision.rows[decision.charge_count++] = {&bound, variant, &rate.figures, states.size() - 1};
  }
}

std::vector<LimitState> Worker::State(const policy::Attributes& call, core::Now now) {
  assert(!waits());
  std::vector<LimitState> states;
  Decision& decision = scratch_->decision;
  CollectState(call, states, decision);
  for (size_t i = 0; i < decision.charge_count; ++i) {
    const Decision::Row& row = decision.rows[i];
    LimitState& state = states[row.verdict];
    state.step = engine_.impl_->store.Peek(*decision.charges[i].meter,
                                           row.limit->KeyOf(row.variant, call), 0, now);
    if (state.limit->unit == Unit::kParallel) state.step.reset_after_ns = core::kNever;
  }
  return states;
}

}  // namespace weir::decide
