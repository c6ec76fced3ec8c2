// Counters of descriptors, looked at and forgotten: for the admin door.
#include <cassert>
#include <utility>

#include "decide/descriptor_counter.h"
#include "decide/worker_scratch.h"

namespace weir::decide {

Result<const BoundLimit*> Worker::DescriptorLimit(
    std::string_view limit_name, std::span<const policy::DescriptorEntry> entries) const {
  const policy::Limit* const limit = bound_->policy->FindLimit(limit_name);
  if (limit == nullptr) return MakeError(ErrorCode::kNotFound, "limit: there is none of that name");
  if (!limit->descriptor)
    return InvalidArgument("descriptor: the limit is kept by attributes; name these");
  if (!limit->descriptor->Matches(limit->descriptor->domain, entries))
    return InvalidArgument("descriptor: the limit binds to " +
                           policy::ToString(limit->descriptor->entries));
  return &bound_->limits[static_cast<size_t>(limit->index)];
}

Result<void> Worker::ResetDescriptor(std::string_view limit_name,
                                     std::span<const policy::DescriptorEntry> entries,
                                     core::Now now) {
  assert(!waits());
  const Result<const BoundLimit*> bound = DescriptorLimit(limit_name, entries);
  if (!bound) return std::unexpected(bound.error());
  const core::Meter* const meter = (*bound)->variants[0].meter;
  if (meter != nullptr) engine_.impl_->store.Reset(*meter, (*bound)->KeyOf(entries, 0), now);
  return {};
}

Task<Result<void>> Worker::ResetDescriptorShared(std::string_view limit_name,
                                                 std::span<const policy::DescriptorEntry> entries,
                                                 core::Now now) {
  const Result<const BoundLimit*> bound = DescriptorLimit(limit_name, entries);
  if (!bound) co_return std::unexpected(bound.error());
  const BoundVariant& variant = (*bound)->variants[0];
  if (variant.meter == nullptr) co_return Result<void>();
  const DescriptorCounter counter{*bound, (*bound)->limit->descriptor->domain, entries};
  const base::HmacKeys& keys = *engine_.impl_->shared_keys;
  const store::SharedCharge charge{.meter = variant.meter,
                                   .key = counter.SharedKey(keys),
                                   .tag = counter.Tag(keys),
                                   .leased = variant.leased};
  const bool told = co_await shared_->Reset({&charge, 1}, now);
  if (!told) co_return MakeError(ErrorCode::kUnavailable, "the store is away; nothing was reset");
  co_return Result<void>();
}

// Every limit of the descriptor; for those that count, a charge of nothing too.
void Worker::CollectDescriptorState(std::string_view domain,
                                    std::span<const policy::DescriptorEntry> entries,
                                    std::vector<LimitState>& states, Decision& decision) {
  decision.Clear();
  const std::span<const int> limits = bound_->policy->descriptors().Find(domain, entries);
  decision.MakeRoom(limits.size());
  for (const int index : limits) {
    const BoundLimit& bound = bound_->limits[static_cast<size_t>(index)];
    const BoundVariant& variant = bound.variants[0];
    states.push_back({.limit = bound.limit,
                      .variant = bound.limit->variants.data(),
                      .step = {},
                      .quota = variant.figures.quota});
    if (variant.meter == nullptr) continue;
    const DescriptorCounter counter{&bound, domain, entries};
    decision.charges[decision.charge_count] = {
        .meter = variant.meter, .key = bound.KeyOf(entries, 0), .cost = 0};
    if (waits()) NameDescriptor(counter, decision);
    decision.rows[decision.charge_count++] = {&bound, 0, &variant.figures, states.size() - 1};
  }
}

std::vector<LimitState> Worker::DescriptorState(std::string_view domain,
                                                std::span<const policy::DescriptorEntry> entries,
                                                core::Now now) {
  assert(!waits());
  std::vector<LimitState> states;
  Decision& decision = scratch_->decision;
  CollectDescriptorState(domain, entries, states, decision);
  for (size_t i = 0; i < decision.charge_count; ++i) {
    const store::Charge& charge = decision.charges[i];
    states[decision.rows[i].verdict].step =
        engine_.impl_->store.Peek(*charge.meter, charge.key, 0, now);
  }
  return states;
}

Task<std::vector<LimitState>> Worker::DescriptorStateShared(
    std::string_view domain, std::span<const policy::DescriptorEntry> entries, core::Now now) {
  std::vector<LimitState> states;
  DecisionPtr decision = TakeDecision();
  CollectDescriptorState(domain, entries, states, *decision);
  const size_t count = decision->charge_count;
  if (count > 0) {
    const std::span<const store::Charge> charges(decision->charges.data(), count);
    const std::span<const store::SharedTerms> terms(decision->waiting->terms.data(), count);
    const std::span<store::SharedOutcome> outcomes(decision->waiting->outcomes.data(), count);
    co_await shared_->Decide(charges, terms, outcomes, now, store::Mode::kPeek);
  }
  for (size_t i = 0; i < count; ++i)
    states[decision->rows[i].verdict].step = decision->waiting->outcomes[i].step;
  co_return states;
}

}  // namespace weir::decide
