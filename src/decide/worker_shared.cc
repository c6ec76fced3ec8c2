// Decisions that wait for a store shared by many nodes, and what happens to their charges
// afterwards.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "decide/worker_asked.h"
#include "decide/worker_scratch.h"

namespace weir::decide {
namespace {

std::vector<store::SharedCharge> SharedChargesOf(const Reservation& held) {
  std::vector<store::SharedCharge> charges;
  for (const HeldCharge& charge : held.charges) {
    charges.push_back({.meter = charge.meter,
                       .key = charge.key,
                       .tag = charge.tag,
                       .receipt = charge.receipt,
                       .source = charge.source,
                       .reserved = charge.amount,
                       .actual = charge.amount,
                       .leased = charge.leased});
  }
  return charges;
}

// Limits of which nothing is known, since another had denied the call before they were asked, do
// not show in the verdict.
void DropUnknown(Decision& decision) {
  std::vector<store::SharedOutcome>& outcomes = decision.waiting->outcomes;
  const std::span<const store::SharedOutcome> asked(outcomes.data(), decision.charge_count);
  if (std::ranges::all_of(asked, &store::SharedOutcome::known)) return;
  size_t charges = 0;
  size_t verdicts = 0;
  size_t next = 0;  // Of the charges.
  for (size_t v = 0; v < decision.verdict_count; ++v) {
    const bool charged = next < decision.charge_count && decision.rows[next].verdict == v;
    const bool known = !charged || outcomes[next].known;
    if (known) decision.verdicts[verdicts] = decision.verdicts[v];
    if (known && charged) {
      decision.charges[charges] = decision.charges[next];
      outcomes[charges] = outcomes[next];
      decision.waiting->terms[charges] = decision.waiting->terms[next];
      decision.rows[charges] = decision.rows[next];
      decision.rows[charges++].verdict = verdicts;
    }
    next += charged;
    verdicts += known;
  }
  decision.charge_count = charges;
  decision.verdict_count = verdicts;
}

}  // namespace

void EndDecision::operator()(Decision* decision) const {
  std::unique_ptr<Decision> owned(decision);
  // The running policy is kept with it: it fits the next call as it is.
  if (owned->waiting->bound != worker->bound_) owned->waiting->bound.reset();
  auto& spare = worker->scratch_->spare;
  if (spare.size() < Worker::Scratch::kSpareDecisions) spare.push_back(std::move(owned));
}

DecisionPtr Worker::TakeDecision() {
  auto& spare = scratch_->spare;
  std::unique_ptr<Decision> decision;
  if (spare.empty()) {
    decision = std::make_unique<Decision>();
    decision->waiting = std::make_unique<Decision::Waiting>();
  } else {
    decision = std::move(spare.back());
    spare.pop_back();
  }
  decision->Clear();
  Decision::Waiting& waiting = *decision->waiting;
  if (waiting.bound != bound_) {
    const size_t limits = std::max<size_t>(bound_->by_attributes.size(), 1);
    decision->FitTo(limits);
    waiting.terms.resize(limits);
    waiting.outcomes.resize(limits);
    waiting.bound = bound_;
  }
  return DecisionPtr(decision.release(), EndDecision{this});
}

// The charge that is being collected, as a shared store knows it. Counters of one client share a
// tag, so that its limits are decided in one place; others have a tag of their own.
void Worker::NameShared(const BoundLimit& limit, int variant, const policy::Attributes& call,
                        Decision& decision) {
  const base::Key128 local = limit.KeyOf(variant, call);
  SharedNames::Name& name = scratch_->names.At(local);
  if (name.local != local) {
    const base::HmacKeys& keys = *engine_.impl_->shared_keys;
    name = {.local = local, .key = limit.SharedKeyOf(variant, call, keys)};
    name.tag = name.key.hi;
    if (limit.per_client) {
      const std::array<std::string_view, 2> parts{"client", call.Get(policy::kClientAttribute)};
      name.tag = keys.Of(parts).hi;
    }
  }
  decision.charges[decision.charge_count].key = name.key;
  decision.waiting->terms[decision.charge_count] =
      TermsOf(*limit.limit, decision.waiting->bound->policy->config().store, name.tag);
  decision.waiting->terms[decision.charge_count].leased =
      limit.variants[static_cast<size_t>(variant)].leased;
}

DecisionPtr Worker::Begin(const policy::Attributes& call, const Costs& costs,
                          const DecideOptions& options) {
  DecisionPtr decision = TakeDecision();
  Decision::Waiting& waiting = *decision->waiting;
  const bool reserves = options.reserve_ttl_ns > 0 && !options.peek;
  waiting.id = reserves ? scratch_->ids.Next() : ReservationId{};
  waiting.costs = costs;
  waiting.options = options;
  waiting.client = options.client.empty() ? call.Get(policy::kClientAttribute) : options.client;
  waiting.options.client = waiting.client;
  Collect(call, costs, options, waiting.id.low, *decision);
  // A reservation of parallel slots alone leaves costs as they were charged.
  const bool settles = reserves && !options.reserve_parallel_only;
  for (size_t i = 0; i < decision->charge_count; ++i) waiting.terms[i].settles = settles;
  return decision;
}

Result<DecisionPtr> Worker::BeginAdHoc(const AdHocRule& rule, int64_t cost,
                                       const DecideOptions& options) {
  const Result<const CompiledRule*> compiled = CompileRule(rule.spec);
  if (!compiled) return std::unexpected(compiled.error());
  DecisionPtr decision = TakeDecision();
  Decision::Waiting& waiting = *decision->waiting;
  const bool reserves = options.reserve_ttl_ns > 0 && !options.peek;
  waiting.id = reserves ? scratch_->ids.Next() : ReservationId{};
  waiting.options = options;
  waiting.options.client = {};
  CollectRule(rule, **compiled, cost, options, waiting.id.low, *decision);
  // The worker's compiled rules may change while this one waits.
  waiting.rule_name = rule.name;
  waiting.rule_spec = rule.spec;
  waiting.rule_figures = (*compiled)->figures;
  LimitVerdict& verdict = decision->verdicts[0];
  verdict.name = waiting.rule_name;
  verdict.spec = &waiting.rule_spec;
  decision->rows[0].figures = &waiting.rule_figures;
  waiting.costs = {};
  waiting.costs.Set(verdict.unit, cost);
  const std::string algorithm(AlgorithmName(rule.spec.algorithm));
  const std::array<std::string_view, 3> parts{"rule", algorithm, rule.key};
  decision->charges[0].key = engine_.impl_->shared_keys->Of(parts);
  const policy::StoreConfig& config = bound_->policy->config().store;
  waiting.terms[0] = {.tag = decision->charges[0].key.hi,
                      .on_failure = OnFailureOf(config.on_failure)};
  return decision;
}

std::optional<Result<const Verdict*>> Worker::FinishNow(Decision& decision, core::Now now) {
  const Decision::Waiting& waiting = *decision.waiting;
  // A reservation that does not find room has to be given back, which may wait.
  const bool reserves =
      waiting.id.low != 0 && (!waiting.options.reserve_parallel_only || decision.has_parallel);
  const bool looks = decision.descriptors.used && decision.descriptors.looks > 0;
  if (reserves || looks || decision.charge_count == 0) return std::nullopt;
  const bool timed = engine_.impl_->metrics.ShouldTime(shard_);
  const int64_t began_ns = timed ? engine_.impl_->options.clock->MonotonicNs() : 0;
  const Asked asked(decision, now);
  const std::optional<bool> admitted =
      shared_->DecideNow(asked.charges, asked.terms, asked.outcomes, now, asked.mode);
  if (!admitted || (!*admitted && LacksStatuses(decision))) return std::nullopt;
  Conclude(*admitted, now, decision);
  CountFinished(decision);
  if (timed) {
    engine_.impl_->metrics.OnDecisionDuration(
        shard_, engine_.impl_->options.clock->MonotonicNs() - began_ns);
  }
  return &decision.verdict;
}

Task<Result<const Verdict*>> Worker::Finish(Decision& decision, core::Now now) {
  const Decision::Waiting& waiting = *decision.waiting;
  const int64_t began_ns = engine_.impl_->options.clock->MonotonicNs();
  bool admitted = true;
  if (decision.descriptors.used) {
    admitted = co_await AskDescriptors(decision, now);
  } else if (decision.charge_count > 0) {
    const Asked asked(decision, now);
    admitted =
        co_await shared_->Decide(asked.charges, asked.terms, asked.outcomes, now, asked.mode);
  }
  Conclude(admitted, now, decision);
  if (waiting.id.low != 0 && decision.verdict.allowed) {
    Result<void> reserved = Reserve(waiting.id, waiting.costs, waiting.options, now, decision);
    if (!reserved) {
      std::vector<store::SharedCharge> charges =
          SharedChargesOf(ReservationOf(waiting.costs, waiting.options, now, decision));
      for (store::SharedCharge& charge : charges) charge.actual = 0;
      co_await shared_->Settle(charges, now);
      co_return std::unexpected(reserved.error());
    }
  }
  CountFinished(decision);
  if (!waiting.options.peek) {
    engine_.impl_->metrics.OnDecisionDuration(
        shard_, engine_.impl_->options.clock->MonotonicNs() - began_ns);
  }
  co_return &decision.verdict;
}

// Turns what the store said into the verdict.
void Worker::Conclude(bool admitted, core::Now now, Decision& decision) {
  const Decision::Waiting& waiting = *decision.waiting;
  if (!decision.descriptors.used) DropUnknown(decision);
  for (size_t i = 0; i < decision.charge_count; ++i) decision.outcomes[i] = waiting.outcomes[i];
  Describe(waiting.options, now, decision);
  Judge(admitted && !decision.denied_missing, decision);
  if (decision.descriptors.used) JudgeDescriptors(decision);
}

void Worker::CountFinished(const Decision& decision) {
  const Decision::Waiting& waiting = *decision.waiting;
  if (waiting.options.peek) return;
  if (decision.charge_count == 1 && decision.rows[0].limit == nullptr) {
    CountRule(waiting.options, decision);
  } else {
    Count(waiting.client, waiting.options, decision);
  }
}

Task<Result<Worker::Settled>> Worker::SettleShared(ReservationId id, Costs actual, core::Now now) {
  std::vector<store::SharedCharge> charges;
  Result<Settled> settled =
      engine_.impl_->ledger.End(id, now.mono_ns, [&](const Reservation& held) {
        charges = SharedChargesOf(held);
        for (size_t i = 0; i < charges.size(); ++i) {
          const Unit unit = held.charges[i].unit;
          if (unit == Unit::kParallel) charges[i].actual = 0;
          if (unit != Unit::kParallel && actual.has(unit)) charges[i].actual = actual[unit];
        }
        return SettledOf(held, actual);
      });
  std::erase_if(charges,
                [](const store::SharedCharge& charge) { return charge.actual == charge.reserved; });
  if (!charges.empty()) co_await shared_->Settle(charges, now);
  co_return settled;
}

Task<Result<Worker::Settled>> Worker::ReleaseShared(ReservationId id, core::Now now) {
  std::vector<store::SharedCharge> charges;
  Result<Settled> settled =
      engine_.impl_->ledger.End(id, now.mono_ns, [&](const Reservation& held) {
        charges = SharedChargesOf(held);
        for (store::SharedCharge& charge : charges) charge.actual = 0;
        return Settled{.given = held.costs.given};
      });
  std::erase_if(charges, [](const store::SharedCharge& charge) { return charge.reserved == 0; });
  if (!charges.empty()) co_await shared_->Settle(charges, now);
  co_return settled;
}

Task<bool> Worker::RenewShared(ReservationId id, int64_t ttl_ns, core::Now now) {
  std::vector<store::SharedCharge> charges;
  const bool open = engine_.impl_->ledger.Prolong(
      id, now.mono_ns, now.mono_ns + ttl_ns, [&](const Reservation& held) {
        charges = SharedChargesOf(held);
        for (size_t i = charges.size(); i-- > 0;) {
          if (held.charges[i].unit != Unit::kParallel)
            charges.erase(charges.begin() + static_cast<std::ptrdiff_t>(i));
        }
        return true;
      });
  if (!open || charges.empty()) co_return open;
  co_return co_await shared_->Renew(charges, ttl_ns, now);
}

Task<Result<void>> Worker::ResetShared(std::string_view limit_name, const policy::Attributes& call,
                                       core::Now now) {
  const Result<const BoundLimit*> bound = ResetLimit(limit_name, call);
  if (!bound) co_return std::unexpected(bound.error());
  DecisionPtr decision = TakeDecision();
  std::vector<store::SharedCharge> charges;
  for (const int variant : (*bound)->distinct) {
    NameShared(**bound, variant, call, *decision);
    charges.push_back({.meter = (*bound)->variants[static_cast<size_t>(variant)].meter,
                       .key = decision->charges[0].key,
                       .tag = decision->waiting->terms[0].tag,
                       .leased = decision->waiting->terms[0].leased});
  }
  const bool told = co_await shared_->Reset(charges, now);
  if (!told) co_return MakeError(ErrorCode::kUnavailable, "the store is away; nothing was reset");
  co_return Result<void>();
}

Task<std::vector<LimitState>> Worker::StateShared(const policy::Attributes& call, core::Now now) {
  std::vector<LimitState> states;
  DecisionPtr decision = TakeDecision();
  CollectState(call, states, *decision);
  const size_t count = std::exchange(decision->charge_count, 0);
  for (; decision->charge_count < count; ++decision->charge_count) {
    const Decision::Row& row = decision->rows[decision->charge_count];
    NameShared(*row.limit, row.variant, call, *decision);
  }
  if (count > 0) {
    const std::span<const store::Charge> charges(decision->charges.data(), count);
    const std::span<const store::SharedTerms> terms(decision->waiting->terms.data(), count);
    const std::span<store::SharedOutcome> outcomes(decision->waiting->outcomes.data(), count);
    co_await shared_->Decide(charges, terms, outcomes, now, store::Mode::kPeek);
  }
  for (size_t i = 0; i < count; ++i) {
    LimitState& state = states[decision->rows[i].verdict];
    state.step = decision->waiting->outcomes[i].step;
    if (state.limit->unit == Unit::kParallel) state.step.reset_after_ns = core::kNever;
  }
  co_return states;
}

}  // namespace weir::decide
