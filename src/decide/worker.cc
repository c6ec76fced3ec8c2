#include <algorithm>
#include <cassert>
#include <utility>

#include "core/int128.h"
#include "decide/binding.h"
#include "decide/worker_scratch.h"

namespace weir::decide {
namespace {

constexpr int64_t kParallelRetryNs =
    1'000'000'000;  // When a slot comes free is not known: a second is a fair guess.

store::Mode ModeOf(bool peek, const DecideOptions& options) {
  if (peek) return store::Mode::kPeek;
  const bool settles = options.reserve_ttl_ns > 0 && !options.reserve_parallel_only;
  return settles ? store::Mode::kReserve : store::Mode::kCharge;
}

// Until one more unit is there, with what a bucket still lacks and refills evenly.
int64_t NextUnitOfBucket(const LimitVerdict& limit, const RateFigures& figures) {
  if (limit.remaining >= limit.quota) return 0;
  const int64_t beyond = limit.quota - limit.remaining - 1;
  const int64_t later_ns = figures.interval_ns > 0 ? beyond * figures.interval_ns
                                                   : core::Clamp64(core::Int128{beyond} *
                                                                   limit.spec->rate.period.count() /
                                                                   limit.spec->rate.units);
  return std::max<int64_t>(limit.reset_after_ns - later_ns, 0);
}

}  // namespace

Worker::Worker(Engine& engine, size_t shard, store::SharedStore* shared)
    : engine_(engine), shard_(shard), shared_(shared), scratch_(std::make_unique<Scratch>()) {
  Refresh();
}

Worker::~Worker() = default;

void Worker::Refresh() {
  Engine::Impl& engine = *engine_.impl_;
  if (engine.generation.load(std::memory_order_acquire) == seen_generation_) [[likely]]
    return;
  std::shared_ptr<const BoundPolicy> previous;
  {
    const std::lock_guard lock(engine.bound_mutex);
    seen_generation_ = engine.generation.load(std::memory_order_relaxed);
    previous = std::exchange(bound_, engine.bound);
  }
  scratch_->decision.FitTo(std::max<size_t>(bound_->by_attributes.size(), 1));
  scratch_->spare.clear();  // They hold the policy before.
  if (waits()) shared_->OnPolicy();
}

const policy::Policy& Worker::policy() {
  Refresh();
  return *bound_->policy;
}

const policy::Policy& Worker::policy_in_use() const { return *bound_->policy; }

const identity::IdentityResolver& Worker::identity() { return *bound_->identity; }

identity::IdentityCache& Worker::identity_cache() {
  if (!scratch_->identity_cache) scratch_->identity_cache.emplace(engine_.impl_->ids);
  return *scratch_->identity_cache;
}

ClientId Worker::ApiKeyId(std::string_view api_key) {
  return identity_cache().ids().Get(IdKind::kKey, api_key);
}

Result<const Verdict*> Worker::Decide(const policy::Attributes& call, const Costs& costs,
                                      const DecideOptions& options, core::Now now) {
  assert(!waits());
  Engine::Impl& engine = *engine_.impl_;
  Decision& decision = scratch_->decision;
  const bool timed = !options.peek && engine.metrics.ShouldTime(shard_);
  const int64_t began_ns = timed ? engine.options.clock->MonotonicNs() : 0;
  const bool reserves = options.reserve_ttl_ns > 0 && !options.peek;
  const ReservationId id = reserves ? scratch_->ids.Next() : ReservationId{};

  Collect(call, costs, options, id.low, decision);
  const bool admitted =
      engine.store.Decide({decision.charges.data(), decision.charge_count},
                          {decision.outcomes.data(), decision.charge_count}, now,
                          ModeOf(options.peek || decision.denied_missing, options));
  Describe(options, now, decision);
  Judge(admitted && !decision.denied_missing, decision);
  if (reserves && decision.verdict.allowed) {
    Result<void> reserved = Reserve(id, costs, options, now, decision);
    if (!reserved) return std::unexpected(reserved.error());
  }
  if (!options.peek) {
    Count(options.client.empty() ? call.Get(policy::kClientAttribute) : options.client, options,
          decision);
  }
  if (timed)
    engine.metrics.OnDecisionDuration(shard_, engine.options.clock->MonotonicNs() - began_ns);
  return &decision.verdict;
}

// Which limits apply, as charges; what they are called, as the beginnings of their verdicts.
void Worker::Collect(const policy::Attributes& call, const Costs& costs,
                     const DecideOptions& options, uint64_t lease_id, Decision& decision) {
  decision.Clear();
  for (const BoundLimit* const by_attributes : bound_->by_attributes) {
    const BoundLimit& bound = *by_attributes;
    const policy::Limit& limit = *bound.limit;
    const int selected = policy::SelectVariant(limit, call, options.missing);
    if (selected == policy::kDoesNotApply) continue;
    const bool enforced =
        limit.enforce == policy::Enforce::kAll ||
        (limit.enforce == policy::Enforce::kPercent && policy::IsEnforced(limit, call));
    const int variant = std::max(selected, 0);
    const BoundVariant& rate = bound.variants[static_cast<size_t>(variant)];
    if (selected != policy::kDeniedMissing && rate.meter == nullptr) continue;  // Unlimited.

    LimitVerdict& verdict = decision.verdicts[decision.verdict_count];
    verdict = {.name = limit.name,
               .limit = &limit,
               .variant = &limit.variants[static_cast<size_t>(variant)],
               .spec = &limit.variants[static_cast<size_t>(variant)].spec,
               .unit = limit.unit,
               .shadow = !enforced,
               .cost = costs[limit.unit],
               .quota = rate.figures.quota,
               .window_s = rate.figures.window_s};
    if (selected == policy::kDeniedMissing) {
      verdict.allowed = false;
      verdict.attribute_missing = true;
      verdict.reset_after_ns = verdict.retry_after_ns = core::kNever;
      decision.denied_missing = decision.denied_missing || enforced;
      ++decision.verdict_count;
      continue;
    }
    store::Charge& charge = decision.charges[decision.charge_count];
    charge = {.meter = rate.meter,
              .key = waits() ? base::Key128() : bound.KeyOf(variant, call),
              .cost = verdict.cost,
              .enforced = enforced};
    if (limit.unit == Unit::kParallel) {
      if (!costs.has(Unit::kParallel)) charge.cost = verdict.cost = 1;
      charge.lease_id = lease_id;
      charge.lease_ttl_ns = options.reserve_ttl_ns;
      decision.has_parallel = true;
    }
    if (waits()) NameShared(bound, variant, call, decision);
    decision.rows[decision.charge_count++] = {&bound, variant, &rate.figures,
                                              decision.verdict_count++};
  }
}

// Turns the store's outcomes into what answers show.
void Worker::Describe(const DecideOptions& options, core::Now now, Decision& decision) {
  for (size_t i = 0; i < decision.charge_count; ++i) {
    const store::Charge& charge = decision.charges[i];
    const core::Step& step = decision.outcomes[i].step;
    LimitVerdict& verdict = decision.verdicts[decision.rows[i].verdict];
    verdict.allowed = step.allowed;
    verdict.remaining = step.remaining;
    verdict.reset_after_ns = step.reset_after_ns;
    verdict.retry_after_ns = step.allowed ? 0 : step.retry_after_ns;
    switch (verdict.spec->algorithm) {
      case Algorithm::kParallel:
        verdict.reset_after_ns = core::kNever;
        if (!step.allowed)
          verdict.retry_after_ns = charge.cost > verdict.quota ? core::kNever : kParallelRetryNs;
        break;
      case Algorithm::kTokenBucket:
        if (options.next_unit)
          verdict.next_unit_after_ns = NextUnitOfBucket(verdict, *decision.rows[i].figures);
        break;
      case Algorithm::kFixedWindow:
        verdict.next_unit_after_ns = step.reset_after_ns;
        break;
      case Algorithm::kSlidingWindow:
      case Algorithm::kSlidingCounter:
        if (waits()) {
          verdict.next_unit_after_ns = step.reset_after_ns;  // Not later; a look-up would wait.
        } else if (options.next_unit && verdict.remaining < verdict.quota) {
          const core::Step next =
              engine_.impl_->store.Peek(*charge.meter, charge.key, verdict.remaining + 1, now);
          verdict.next_unit_after_ns = std::max<int64_t>(next.retry_after_ns, 0);
        }
        break;
    }
  }
}

// The answer over all limits: which one binds, how long to wait, who says so.
void Worker::Judge(bool admitted, Decision& decision) {
  Verdict& verdict = decision.verdict;
  verdict = {.allowed = admitted, .limits = {decision.verdicts.data(), decision.verdict_count}};
  for (const LimitVerdict& limit : verdict.limits) {
    if (limit.shadow || limit.allowed != admitted) continue;
    if (!admitted)
      verdict.retry_after_ns = LongerWait(verdict.retry_after_ns, limit.retry_after_ns);
    const LimitVerdict* const best = verdict.binding;
    if (best == nullptr || (admitted ? BindsPass(limit, *best) : BindsDenial(limit, *best)))
      verdict.binding = &limit;
  }
  if (decision.waiting) verdict.source = Source::kRedis;
  for (size_t i = 0; i < decision.charge_count; ++i) {
    const bool binds = &decision.verdicts[decision.rows[i].verdict] == verdict.binding;
    if (!binds) continue;
    if (decision.waiting) verdict.source = decision.waiting->outcomes[i].source;
    if (!decision.outcomes[i].tracked) verdict.source = Source::kFallback;
  }
}

Reservation Worker::ReservationOf(const Costs& costs, const DecideOptions& options, core::Now now,
                                  const Decision& decision) {
  Reservation reservation{.charges = {},
                          .costs = costs,
                          .expires_ns = now.mono_ns + options.reserve_ttl_ns,
                          .remember = !options.reserve_parallel_only};
  if (options.reserve_parallel_only && !decision.has_parallel) return reservation;
  for (size_t i = 0; i < decision.charge_count; ++i) {
    const store::Charge& charge = decision.charges[i];
    const store::Outcome& outcome = decision.outcomes[i];
    const Unit unit = decision.verdicts[decision.rows[i].verdict].unit;
    const bool parallel = unit == Unit::kParallel;
    // A limit that was only looked at (its unit had no cost) can still be charged by a settle.
    const bool looked_at = charge.cost == 0 && !parallel && outcome.tracked;
    if (!outcome.charged && !looked_at) continue;
    if (options.reserve_parallel_only && !parallel) continue;
    HeldCharge& held = reservation.charges.emplace_back(
        HeldCharge{charge.meter, charge.key, outcome.receipt, charge.cost, unit});
    if (!decision.waiting) continue;
    held.tag = decision.waiting->terms[i].tag;
    held.source = decision.waiting->outcomes[i].source;
    held.leased = decision.waiting->terms[i].leased;
  }
  return reservation;
}

Result<void> Worker::Reserve(ReservationId id, const Costs& costs, const DecideOptions& options,
                             core::Now now, Decision& decision) {
  Reservation reservation = ReservationOf(costs, options, now, decision);
  if (options.reserve_parallel_only && reservation.charges.empty()) return {};
  Result<void> opened = engine_.impl_->ledger.Open(id, std::move(reservation), now.mono_ns);
  if (!opened) {
    if (!waits()) Undo(now, decision);
    return opened;
  }
  decision.verdict.reservation = id;
  return {};
}

// Gives back what the call that is under way was charged.
void Worker::Undo(core::Now now, const Decision& decision) {
  for (size_t i = 0; i < decision.charge_count; ++i) {
    const store::Charge& charge = decision.charges[i];
    const store::Outcome& outcome = decision.outcomes[i];
    if (outcome.charged)
      engine_.impl_->store.Release(*charge.meter, charge.key, outcome.receipt, charge.cost, now);
  }
}

void Worker::Count(std::string_view client, const DecideOptions& options,
                   const Decision& decision) {
  metrics::WeirMetrics& metrics = engine_.impl_->metrics;
  const Verdict& verdict = decision.verdict;
  const BoundPolicy& bound = decision.waiting ? *decision.waiting->bound : *bound_;
  bool shadow_denied = false;
  for (const LimitVerdict& limit : verdict.limits) {
    const bool shadow_denies = limit.shadow && !limit.allowed;
    const metrics::Outcome outcome = limit.allowed  ? metrics::Outcome::kAllowed
                                     : limit.shadow ? metrics::Outcome::kShadowDenied
                                                    : metrics::Outcome::kDenied;
    const bool near = verdict.allowed && limit.allowed &&
                      metrics::WeirMetrics::IsNear(limit.remaining, limit.quota);
    if (limit.limit != nullptr) {
      const size_t index = static_cast<size_t>(limit.limit->index);
      metrics.OnLimit(shard_, bound.limits[index].series, outcome, near);
    }
    shadow_denied = shadow_denied || shadow_denies;
  }
  const metrics::Outcome outcome = !verdict.allowed ? metrics::Outcome::kDenied
                                   : shadow_denied  ? metrics::Outcome::kShadowDenied
                                                    : metrics::Outcome::kAllowed;
  metrics.OnDecision(shard_, options.door, outcome, verdict.source);
  if (engine_.impl_->options.hot_keys) CountClient(client, options, decision);
}

// The client's calls, and how near it is to one of the limits that are kept per client: these take
// turns, so that a decision pays for one of them however many there are.
void Worker::CountClient(std::string_view client, const DecideOptions& options,
                         const Decision& decision) {
  if (client.empty()) return;
  Engine::Impl& engine = *engine_.impl_;
  const base::Key128 key = base::KeyHasher::State(engine.client_front).Add(client).Finish();
  metrics::HotKeys& hot_keys = engine.metrics.hot_keys();
  hot_keys.OnClient(shard_, key, client, options.client_hashed, decision.verdict.allowed);
  const size_t count = decision.charge_count;
  for (size_t step = 0; step < count; ++step) {
    const size_t i = (scratch_->hot_turn + step) % count;
    const BoundLimit* const limit = decision.rows[i].limit;
    if (!limit->per_client) continue;
    const LimitVerdict& verdict = decision.verdicts[decision.rows[i].verdict];
    const base::Key128 pair =
        base::KeyHasher::State(engine.client_front).Add(client).Add(limit->series.id).Finish();
    hot_keys.OnLimit(shard_, limit->series.id, pair, client, options.client_hashed,
                     verdict.remaining, verdict.quota);
    scratch_->hot_turn = static_cast<uint32_t>(i + 1);
    return;
  }
}

}  // namespace weir::decide
