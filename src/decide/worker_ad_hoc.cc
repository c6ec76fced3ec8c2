// Rules that come with the call instead of a policy.
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

Result<const Verdict*> Worker::DecideAdHoc(const AdHocRule& rule, int64_t cost,
                                           const DecideOptions& options, core::Now now) {
  Engine::Impl& engine = *engine_.impl_;
  Scratch& scratch = *scratch_;
  CompiledRule& compiled = scratch.rules[SlotOf(rule.spec, Scratch::kRules)];
  if (compiled.meter == nullptr || compiled.spec != rule.spec) {
    Result<const core::Meter*> meter = engine.store.InternForCall(rule.spec);
    if (!meter) return std::unexpected(meter.error());
    compiled = {.spec = rule.spec, .meter = *meter, .figures = RateFigures::Of(rule.spec)};
  }
  const bool parallel = rule.spec.algorithm == Algorithm::kParallel;
  const bool reserves = options.reserve_ttl_ns > 0 && !options.peek;
  const ReservationId id = reserves ? scratch.ids.Next() : ReservationId{};

  scratch.Clear();
  scratch.has_parallel = parallel;
  scratch.charge_count = scratch.verdict_count = 1;
  scratch.rows[0] = {nullptr, 0, &compiled.figures, 0};
  scratch.verdicts[0] = {.name = rule.name,
                         .spec = &compiled.spec,
                         .unit = parallel ? Unit::kParallel : Unit::kRequests,
                         .cost = cost,
                         .quota = compiled.figures.quota,
                         .window_s = compiled.figures.window_s};
  base::KeyHasher::State key = engine.AdHocFront(rule.spec.algorithm);
  scratch.charges[0] = {.meter = compiled.meter, .key = key.Add(rule.key).Finish(), .cost = cost};
  if (parallel) {
    scratch.charges[0].lease_id = id.low;
    scratch.charges[0].lease_ttl_ns = options.reserve_ttl_ns;
  }
  const store::Mode mode = options.peek ? store::Mode::kPeek : store::Mode::kCharge;
  const bool admitted =
      engine.store.Decide({scratch.charges.data(), 1}, {scratch.outcomes.data(), 1}, now, mode);
  Describe(options, now);
  Judge(admitted);
  if (reserves && admitted) {
    Costs costs;
    costs.Set(scratch.verdicts[0].unit, cost);
    Result<void> reserved = Reserve(id, costs, options, now);
    if (!reserved) return std::unexpected(reserved.error());
  }
  if (!options.peek) {
    const metrics::Outcome outcome =
        admitted ? metrics::Outcome::kAllowed : metrics::Outcome::kDenied;
    engine.metrics.OnDecision(shard_, options.door, outcome, scratch.verdict.source);
  }
  return &scratch.verdict;
}

}  // namespace weir::decide
