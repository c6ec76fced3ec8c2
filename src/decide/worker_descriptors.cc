// Calls by descriptors: which limits they meet, and what each descriptor is told.
#include <algorithm>
#include <cassert>
#include <string>

#include "decide/binding.h"
#include "decide/descriptor_counter.h"
#include "decide/descriptors.h"
#include "decide/worker_asked.h"
#include "decide/worker_scratch.h"

namespace weir::decide {
namespace {

std::string Name(size_t index) { return "descriptors[" + std::to_string(index) + "]"; }

// What is wrong with one descriptor.
Result<void> Check(const Descriptor& descriptor) {
  if (descriptor.entries.empty() || descriptor.entries.size() > kMaxDescriptorEntries)
    return InvalidArgument("entries: must be 1 to " + std::to_string(kMaxDescriptorEntries));
  if (descriptor.hits < 0 || descriptor.hits > kMaxUnits)
    return InvalidArgument("hits_addend: must be 0 to 2^53; hits are not given back");
  if (!descriptor.own_rate) return {};
  const RateOverride& rate = *descriptor.own_rate;
  if (rate.units < 0 || rate.units > kMaxUnits || rate.period.count() <= 0)
    return InvalidArgument("limit: must be 0 to 2^53 requests in a period above 0");
  return {};
}

Result<void> Check(const DescriptorCall& call) {
  if (call.domain.empty()) return InvalidArgument("domain: must not be empty");
  if (call.descriptors.empty() || call.descriptors.size() > kMaxDescriptors)
    return InvalidArgument("descriptors: must be 1 to " + std::to_string(kMaxDescriptors));
  return {};
}

// The calendar window of that length; windows that follow the calendar go on to.
core::Alignment AlignmentOf(std::chrono::nanoseconds period) {
  using std::chrono::hours;
  if (period == std::chrono::minutes(1)) return core::Alignment::kMinute;
  if (period == hours(1)) return core::Alignment::kHour;
  if (period == hours(24)) return core::Alignment::kDay;
  if (period == hours(24 * 7)) return core::Alignment::kWeek;
  if (period == hours(24 * 30)) return core::Alignment::kMonth;
  if (period == hours(24 * 365)) return core::Alignment::kYear;
  return core::Alignment::kNone;
}

core::MeterSpec SpecOf(const core::MeterSpec& base, const RateOverride& rate) {
  core::MeterSpec spec = base;
  spec.rate = {.units = rate.units, .period = rate.period, .burst = rate.units};
  if (spec.alignment != core::Alignment::kNone) spec.alignment = AlignmentOf(rate.period);
  return spec;
}

bool CountsInWindows(Algorithm algorithm) {
  return algorithm == Algorithm::kFixedWindow || algorithm == Algorithm::kSlidingCounter;
}

// Charges of no hits: asked for one unit while they are looked at, for none when others are
// charged.
void SetLooks(Decision& decision, int64_t cost) {
  for (size_t i = 0; i < decision.charge_count; ++i) {
    if (decision.verdicts[i].cost == 0) decision.charges[i].cost = cost;
  }
}

bool Enforces(const policy::Limit& limit, std::span<const DescriptorEntry> entries) {
  return limit.enforce == policy::Enforce::kAll ||
         (limit.enforce == policy::Enforce::kPercent && policy::IsEnforced(limit, entries));
}

}  // namespace

base::Key128 Worker::LocalKeyOf(const DescriptorCounter& counter) const {
  if (counter.limit != nullptr) return counter.limit->KeyOf(counter.entries, counter.period_ns);
  base::KeyHasher::State state = engine_.impl_->descriptor_front;
  state.Add(counter.domain);
  for (const DescriptorEntry& entry : counter.entries) state.Add(entry.key).Add(entry.value);
  return state.Finish();
}

// The charge that is being collected, as a shared store knows it.
void Worker::NameDescriptor(const DescriptorCounter& counter, Decision& decision) {
  const base::Key128 local = decision.charges[decision.charge_count].key;
  SharedNames::Name& name = scratch_->names.At(local);
  if (name.local != local) {
    const base::HmacKeys& keys = *engine_.impl_->shared_keys;
    name = {.local = local, .key = counter.SharedKey(keys), .tag = counter.Tag(keys)};
  }
  const policy::StoreConfig& config = decision.waiting->bound->policy->config().store;
  store::SharedTerms& terms = decision.waiting->terms[decision.charge_count];
  terms = {.tag = name.tag, .on_failure = OnFailureOf(config.on_failure)};
  if (counter.limit != nullptr) {
    terms = TermsOf(*counter.limit->limit, config, name.tag);
    if (counter.period_ns == 0) terms.leased = counter.limit->variants[0].leased;
  }
  decision.charges[decision.charge_count].key = name.key;
}

// One limit of a descriptor, whose charge is being collected. Descriptors that meet on a counter
// share its charge, since a store takes each counter once and then decides the sum exactly.
Result<void> Worker::AddPart(const DescriptorCounter& counter, const RateFigures* figures,
                             Decision& decision) {
  Decision::Descriptors& by = decision.descriptors;
  const size_t fresh = decision.charge_count;
  store::Charge& charge = decision.charges[fresh];
  charge.key = LocalKeyOf(counter);
  if (waits()) NameDescriptor(counter, decision);
  size_t at = 0;
  while (decision.charges[at].key != charge.key) ++at;
  if (at < fresh) {
    store::Charge& earlier = decision.charges[at];
    if (earlier.meter != charge.meter)
      return InvalidArgument("limit: an equal descriptor has another rate");
    if (earlier.cost + charge.cost > kMaxUnits)
      return InvalidArgument("hits_addend: those of equal descriptors add up to more than 2^53");
    by.parts.push_back({.charge = at, .hits = charge.cost, .before = earlier.cost});
    earlier.cost += charge.cost;
    decision.verdicts[at].cost += charge.cost;
    return {};
  }
  const policy::Limit* const limit = counter.limit != nullptr ? counter.limit->limit : nullptr;
  decision.verdicts[fresh] = {.name = limit != nullptr ? limit->name : std::string_view(),
                              .limit = limit,
                              .variant = limit != nullptr ? limit->variants.data() : nullptr,
                              .spec = &charge.meter->spec(),
                              .unit = limit != nullptr ? limit->unit : Unit::kRequests,
                              .shadow = !charge.enforced,
                              .cost = charge.cost,
                              .quota = figures->quota,
                              .window_s = figures->window_s};
  decision.rows[fresh] = {counter.limit, 0, figures, fresh};
  by.parts.push_back({.charge = fresh, .hits = charge.cost});
  decision.charge_count = decision.verdict_count = fresh + 1;
  return {};
}

// A rate that came with the call stands in place of all limits of the pattern; the first enforced
// one lends it its name and algorithm.
Result<void> Worker::CollectOwnRate(const DescriptorCall& call, size_t index, Decision& decision) {
  const Descriptor& descriptor = call.descriptors[index];
  DescriptorCounter counter{.domain = call.domain, .entries = descriptor.entries};
  core::MeterSpec base;
  for (const int limit : decision.descriptors.met[index].limits) {
    const BoundLimit& bound = bound_->limits[static_cast<size_t>(limit)];
    const BoundVariant& variant = bound.variants[0];
    if (variant.meter == nullptr || !Enforces(*bound.limit, descriptor.entries)) continue;
    base = variant.meter->spec();
    const bool other_windows =
        CountsInWindows(base.algorithm) && base.rate.period != descriptor.own_rate->period;
    if (other_windows || variant.leased != nullptr)
      counter.period_ns = descriptor.own_rate->period.count();
    counter.limit = &bound;
    break;
  }
  const Result<const CompiledRule*> rule = CompileRule(SpecOf(base, *descriptor.own_rate));
  if (!rule) return MakeError(rule.error().code, "limit: " + rule.error().message);
  RateFigures& figures = decision.descriptors.own_figures[decision.charge_count];
  figures = (*rule)->figures;
  decision.charges[decision.charge_count] = {.meter = (*rule)->meter, .cost = descriptor.hits};
  return AddPart(counter, &figures, decision);
}

Result<void> Worker::CollectDescriptor(const DescriptorCall& call, size_t index,
                                       Decision& decision) {
  return call.descriptors[index].own_rate ? CollectOwnRate(call, index, decision)
                                          : CollectLimits(call, index, decision);
}

Result<void> Worker::CollectLimits(const DescriptorCall& call, size_t index, Decision& decision) {
  const Descriptor& descriptor = call.descriptors[index];
  Decision::Descriptors::Met& met = decision.descriptors.met[index];
  for (const int limit : met.limits) {
    const BoundLimit& bound = bound_->limits[static_cast<size_t>(limit)];
    const BoundVariant& variant = bound.variants[0];
    const bool enforced = Enforces(*bound.limit, descriptor.entries);
    if (variant.meter == nullptr) {
      met.unlimited = met.unlimited || enforced;
      continue;
    }
    const DescriptorCounter counter{&bound, call.domain, descriptor.entries};
    decision.charges[decision.charge_count] = {
        .meter = variant.meter, .cost = descriptor.hits, .enforced = enforced};
    Result<void> added = AddPart(counter, &variant.figures, decision);
    if (!added) return added;
  }
  return {};
}

Result<void> Worker::CollectDescriptors(const DescriptorCall& call, Decision& decision) {
  Result<void> checked = Check(call);
  if (!checked) return checked;
  decision.Clear();
  Decision::Descriptors& by = decision.descriptors;
  by.used = true;
  by.parts.clear();
  by.met.resize(call.descriptors.size());
  size_t charges = 0;
  for (size_t i = 0; i < call.descriptors.size(); ++i) {
    Decision::Descriptors::Met& met = by.met[i];
    met.limits = bound_->policy->descriptors().Find(call.domain, call.descriptors[i].entries);
    met.unlimited = false;
    charges += std::max<size_t>(met.limits.size(), 1);
  }
  decision.MakeRoom(charges + 1);  // One more to try a key in.
  for (size_t i = 0; i < call.descriptors.size(); ++i) {
    Result<void> collected = Check(call.descriptors[i]);
    if (collected) collected = CollectDescriptor(call, i, decision);
    if (!collected)
      return MakeError(collected.error().code, Name(i) + "." + collected.error().message);
    by.met[i].parts_end = by.parts.size();
  }
  by.looks = 0;
  for (size_t i = 0; i < decision.charge_count; ++i) by.looks += decision.charges[i].cost == 0;
  return {};
}

// What each descriptor is told. Of those that meet on one counter, the earlier ones are served
// first.
void Worker::JudgeDescriptors(Decision& decision) {
  Decision::Descriptors& by = decision.descriptors;
  by.statuses.clear();
  size_t part = 0;
  for (const Decision::Descriptors::Met& met : by.met) {
    DescriptorStatus status;
    for (; part < met.parts_end; ++part) {
      const Decision::Descriptors::Part& share = by.parts[part];
      const LimitVerdict& limit = decision.verdicts[share.charge];
      if (limit.shadow) continue;
      // Where several meet on one counter, some may have room that all have not.
      const bool alone = share.before == 0 && share.hits >= limit.cost;
      const int64_t wanted = share.before + std::max<int64_t>(share.hits, 1);
      const bool passes = limit.allowed || (!alone && wanted <= limit.remaining);
      if (status.allowed && !passes) status = {.allowed = false};
      if (passes != status.allowed) continue;
      const LimitVerdict* const best = status.binding;
      if (best == nullptr || (passes ? BindsPass(limit, *best) : BindsDenial(limit, *best)))
        status.binding = &limit;
    }
    status.unlimited = met.unlimited && status.binding == nullptr;
    by.statuses.push_back(status);
  }
  decision.verdict.descriptors = by.statuses;
}

bool Worker::ChargeDescriptors(bool peek, core::Now now, Decision& decision) {
  store::MemoryStore& store = engine_.impl_->store;
  const std::span<const store::Charge> charges(decision.charges.data(), decision.charge_count);
  const std::span<store::Outcome> outcomes(decision.outcomes.data(), decision.charge_count);
  const size_t looks = decision.descriptors.looks;
  if (peek || looks > 0) {
    SetLooks(decision, 1);
    const bool passes = store.Decide(charges, outcomes, now, store::Mode::kPeek);
    if (!passes || peek || looks == charges.size()) return passes;
    SetLooks(decision, 0);
  }
  return store.Decide(charges, outcomes, now, store::Mode::kCharge);
}

Result<const Verdict*> Worker::DecideDescriptors(const DescriptorCall& call,
                                                 const DecideOptions& options, core::Now now) {
  assert(!waits());
  Engine::Impl& engine = *engine_.impl_;
  Decision& decision = scratch_->decision;
  const bool timed = !options.peek && engine.metrics.ShouldTime(shard_);
  const int64_t began_ns = timed ? engine.options.clock->MonotonicNs() : 0;
  Result<void> collected = CollectDescriptors(call, decision);
  if (!collected) return std::unexpected(collected.error());
  const bool admitted = ChargeDescriptors(options.peek, now, decision);
  Describe(options, now, decision);
  Judge(admitted, decision);
  JudgeDescriptors(decision);
  if (!options.peek) Count({}, options, decision);
  if (timed)
    engine.metrics.OnDecisionDuration(shard_, engine.options.clock->MonotonicNs() - began_ns);
  return &decision.verdict;
}

Result<DecisionPtr> Worker::BeginDescriptors(const DescriptorCall& call,
                                             const DecideOptions& options) {
  DecisionPtr decision = TakeDecision();
  Decision::Waiting& waiting = *decision->waiting;
  waiting.id = {};
  waiting.options = options;
  waiting.options.client = {};
  waiting.options.reserve_ttl_ns = 0;
  waiting.client.clear();
  Result<void> collected = CollectDescriptors(call, *decision);
  if (!collected) return std::unexpected(collected.error());
  return decision;
}

// As ChargeDescriptors. After a denial every limit is asked what it says, since each descriptor is
// told.
Task<bool> Worker::AskDescriptors(Decision& decision, core::Now now) {
  if (decision.charge_count == 0) co_return true;
  const bool peek = decision.waiting->options.peek;
  const size_t looks = decision.descriptors.looks;
  Asked asked(decision, now);
  bool admitted = true;
  if (peek || looks > 0) {
    SetLooks(decision, 1);
    admitted = co_await shared_->Decide(asked.charges, asked.terms, asked.outcomes, now,
                                        store::Mode::kPeek);
    if (admitted && (peek || looks == decision.charge_count)) co_return true;
  }
  if (admitted) {
    SetLooks(decision, 0);
    admitted =
        co_await shared_->Decide(asked.charges, asked.terms, asked.outcomes, now, asked.mode);
  }
  if (!admitted) co_await LearnUnknown(decision, now);
  co_return admitted;
}

bool Worker::LacksStatuses(const Decision& decision) {
  if (!decision.descriptors.used) return false;
  const auto& outcomes = decision.waiting->outcomes;
  return !std::ranges::all_of(std::span(outcomes).first(decision.charge_count),
                              &store::SharedOutcome::known);
}

// A store that knows of a denial asks nobody else. Each round asks those that are left, and at
// least one of them is known after it.
Task<void> Worker::LearnUnknown(Decision& decision, core::Now now) {
  Decision::Waiting& waiting = *decision.waiting;
  while (LacksStatuses(decision)) {
    std::vector<size_t> left;
    std::vector<store::Charge> charges;
    std::vector<store::SharedTerms> terms;
    for (size_t i = 0; i < decision.charge_count; ++i) {
      if (waiting.outcomes[i].known) continue;
      left.push_back(i);
      charges.push_back(decision.charges[i]);
      terms.push_back(waiting.terms[i]);
    }
    std::vector<store::SharedOutcome> outcomes(left.size());
    co_await shared_->Decide(charges, terms, outcomes, now, store::Mode::kPeek);
    bool learnt = false;
    for (size_t n = 0; n < left.size(); ++n) {
      learnt = learnt || outcomes[n].known;
      waiting.outcomes[left[n]] = outcomes[n];
    }
    if (!learnt) co_return;
  }
}

}  // namespace weir::decide
