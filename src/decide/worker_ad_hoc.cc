// Rules that come with the call instead of a policy.
#include <cassert>
#include <utility>

#include "decide/worker_scratch.h"

namespace weir::decide {
namespace {

size_t SlotOf(const core::MeterSpec& spec, size_t slots) {
  uint64_t mixed = static_cast<uint64_t>(spec.rate.units) * 0x9e3779b97f4a7c15u;
  mixed ^= static_cast<uint64_t>(spec.rate.period.count()) * 0xd1b54a32d192ed03u;
  mixed ^= static_cast<uint64_t>(spec.rate.burst) * 0xbf58476d1ce4e5b9u +
           static_cast<uint64_t>(spec.algorithm);
  return (mixed >> 32) % slots;
}

}  // namespace

Result<const CompiledRule*> Worker::CompileRule(const core::MeterSpec& spec) {
  CompiledRule& compiled = scratch_->rules[SlotOf(spec, Scratch::kRules)];
  if (compiled.meter == nullptr || compiled.spec != spec) {
    Result<const core::Meter*> meter = engine_.impl_->store.InternForCall(spec);
    if (!meter) return std::unexpected(meter.error());
    compiled = {.spec = spec, .meter = *meter, .figures = RateFigures::Of(spec)};
  }
  return &compiled;
}

void Worker::CollectRule(const AdHocRule& rule, const CompiledRule& compiled, int64_t cost,
                         const DecideOptions& options, uint64_t lease_id, Decision& decision) {
  const bool parallel = rule.spec.algorithm == Algorithm::kParallel;
  decision.Clear();
  decision.has_parallel = parallel;
  decision.charge_count = decision.verdict_count = 1;
  decision.rows[0] = {nullptr, 0, &compiled.figures, 0};
  decision.verdicts[0] = {.name = rule.name,
                          .spec = &compiled.spec,
                          .unit = parallel ? Unit::kParallel : Unit::kRequests,
                          .cost = cost,
                          .quota = compiled.figures.quota,
                          .window_s = compiled.figures.window_s};
  decision.charges[0] = {.meter = compiled.meter, .key = {}, .cost = cost};
  if (parallel) {
    decision.charges[0].lease_id = lease_id;
    decision.charges[0].lease_ttl_ns = options.reserve_ttl_ns;
  }
}

Result<const Verdict*> Worker::DecideAdHoc(const AdHocRule& rule, int64_t cost,
                                           const DecideOptions& options, core::Now now) {
  assert(!waits());
  Engine::Impl& engine = *engine_.impl_;
  Decision& decision = scratch_->decision;
  const Result<const CompiledRule*> compiled = CompileRule(rule.spec);
  if (!compiled) return std::unexpected(compiled.error());
  const bool reserves = options.reserve_ttl_ns > 0 && !options.peek;
  const ReservationId id = reserves ? scratch_->ids.Next() : ReservationId{};

  CollectRule(rule, **compiled, cost, options, id.low, decision);
  base::KeyHasher::State key = engine.AdHocFront(rule.spec.algorithm);
  decision.charges[0].key = key.Add(rule.key).Finish();
  const store::Mode mode = options.peek ? store::Mode::kPeek
                           : reserves   ? store::Mode::kReserve
                                        : store::Mode::kCharge;
  const bool admitted =
      engine.store.Decide({decision.charges.data(), 1}, {decision.outcomes.data(), 1}, now, mode);
  Describe(options, now, decision);
  Judge(admitted, decision);
  if (reserves && admitted) {
    Costs costs;
    costs.Set(decision.verdicts[0].unit, cost);
    Result<void> reserved = Reserve(id, costs, options, now, decision);
    if (!reserved) return std::unexpected(reserved.error());
  }
  if (!options.peek) CountRule(options, decision);
  return &decision.verdict;
}

void Worker::CountRule(const DecideOptions& options, const Decision& decision) {
  const metrics::Outcome outcome =
      decision.verdict.allowed ? metrics::Outcome::kAllowed : metrics::Outcome::kDenied;
  engine_.impl_->metrics.OnDecision(shard_, options.door, outcome, decision.verdict.source);
}

}  // namespace weir::decide
