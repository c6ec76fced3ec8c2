#include "weir/limiter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <thread>
#include <utility>

#include "decide/bound_policy.h"
#include "decide/engine.h"
#include "decide/worker_slots.h"

namespace weir {
namespace {

constexpr size_t kMaxSlots = 64;

size_t SlotCount() {
  const size_t threads = std::max<size_t>(std::thread::hardware_concurrency(), 1);
  return std::min(std::bit_ceil(threads * 2), kMaxSlots);
}

Error ErrorOf(const std::vector<policy::ConfigError>& errors) {
  std::string text;
  for (const policy::ConfigError& error : errors) {
    if (!text.empty()) text += '\n';
    text += policy::ToString(error);
  }
  return {ErrorCode::kInvalidArgument, std::move(text)};
}

struct NamedAmount {
  Unit unit;
  std::string_view name;
  int64_t amount;
};

bool InRange(int64_t amount) { return amount >= 0 && amount <= kMaxUnits; }

Error CostError(std::string_view unit) {
  return {ErrorCode::kInvalidArgument,
          "cost." + std::string(unit) + ": must be a whole number from 0 to 2^53"};
}

Result<decide::Costs> CostsOf(const Cost& cost) {
  decide::Costs costs;
  for (const NamedAmount& named : {NamedAmount{Unit::kRequests, "requests", cost.requests},
                                   {Unit::kTokens, "tokens", cost.tokens},
                                   {Unit::kInputTokens, "input_tokens", cost.input_tokens},
                                   {Unit::kOutputTokens, "output_tokens", cost.output_tokens},
                                   {Unit::kUsd, "usd_micros", cost.usd_micros},
                                   {Unit::kBytes, "bytes", cost.bytes}}) {
    if (!InRange(named.amount)) return std::unexpected(CostError(named.name));
    if (named.amount > 0) costs.Set(named.unit, named.amount);
  }
  return costs;
}

Result<decide::Costs> CostsOf(const ActualCost& actual) {
  decide::Costs costs;
  const auto add = [&](Unit unit, const std::optional<int64_t>& amount) {
    if (!amount) return true;
    if (!InRange(*amount)) return false;
    costs.Set(unit, *amount);
    return true;
  };
  if (!add(Unit::kRequests, actual.requests)) return std::unexpected(CostError("requests"));
  if (!add(Unit::kTokens, actual.tokens)) return std::unexpected(CostError("tokens"));
  if (!add(Unit::kInputTokens, actual.input_tokens))
    return std::unexpected(CostError("input_tokens"));
  if (!add(Unit::kOutputTokens, actual.output_tokens))
    return std::unexpected(CostError("output_tokens"));
  if (!add(Unit::kUsd, actual.usd_micros)) return std::unexpected(CostError("usd_micros"));
  if (!add(Unit::kBytes, actual.bytes)) return std::unexpected(CostError("bytes"));
  return costs;
}

std::optional<std::chrono::nanoseconds> WaitOf(int64_t wait_ns) {
  if (wait_ns == core::kNever) return std::nullopt;
  return std::chrono::nanoseconds(wait_ns);
}

LimitResult ResultOf(const decide::LimitVerdict& limit) {
  return {.name = limit.name,
          .unit = limit.unit,
          .allowed = limit.allowed,
          .shadow = limit.shadow,
          .quota = limit.quota,
          .remaining = limit.remaining,
          .reset_after = std::chrono::nanoseconds(std::max<int64_t>(limit.reset_after_ns, 0)),
          .retry_after = WaitOf(limit.retry_after_ns)};
}

core::Now NowOf(const Instant& instant) {
  return {.mono_ns = instant.since_start.count(), .wall_ns = instant.unix_time.count()};
}

}  // namespace

struct Limiter::Impl {
  static Result<std::unique_ptr<Limiter>> Make(policy::Policy::LoadResult loaded);
  Result<void> Reload(policy::Policy::LoadResult loaded);
  core::Now NowOr(const std::optional<Instant>& now) const {
    return now ? NowOf(*now) : engine->NowAt(clock.MonotonicNs(), clock.RealtimeNs());
  }

  SystemClock clock;
  std::unique_ptr<decide::Engine> engine;
  std::unique_ptr<decide::WorkerSlots> slots;
};

struct Bucket::State {
  const SystemClock* clock = nullptr;
  decide::Engine* engine = nullptr;
  store::MemoryStore* store = nullptr;
  const core::Meter* meter = nullptr;
  base::KeyHasher::State key_front;
  int64_t quota = 0;

  base::Key128 KeyOf(std::string_view key) const {
    return base::KeyHasher::State(key_front).Add(key).Finish();
  }
};

Result<std::unique_ptr<Limiter>> Limiter::Impl::Make(policy::Policy::LoadResult loaded) {
  if (!loaded) return std::unexpected(ErrorOf(loaded.error()));
  auto impl = std::make_unique<Impl>();
  const size_t slots = SlotCount();
  auto engine = decide::Engine::Create(
      {.policy = std::move(*loaded), .clock = &impl->clock, .shards = slots, .hot_keys = false});
  if (!engine) return std::unexpected(engine.error());
  impl->engine = std::move(*engine);
  impl->slots = std::make_unique<decide::WorkerSlots>(*impl->engine, slots);
  return std::unique_ptr<Limiter>(new Limiter(std::move(impl)));
}

Result<void> Limiter::Impl::Reload(policy::Policy::LoadResult loaded) {
  if (!loaded) return std::unexpected(ErrorOf(loaded.error()));
  Result<policy::ReloadPlan> plan = engine->Reload(std::move(*loaded));
  if (!plan) return std::unexpected(plan.error());
  return {};
}

Limiter::Limiter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Limiter::~Limiter() = default;

Result<std::unique_ptr<Limiter>> Limiter::FromFile(const std::string& path) {
  return Impl::Make(policy::Policy::Load(path, policy::ProcessEnv()));
}

Result<std::unique_ptr<Limiter>> Limiter::FromYaml(std::string yaml) {
  return Impl::Make(policy::Policy::FromText(std::move(yaml), "policy.yaml", policy::ProcessEnv()));
}

Result<std::unique_ptr<Limiter>> Limiter::WithoutPolicy(int64_t max_keys) {
  return FromYaml("store: {kind: memory, max_keys: " + std::to_string(max_keys) + "}\n");
}

Result<Decision> Limiter::Check(std::span<const Attribute> attributes, const Cost& cost,
                                const CheckOptions& options) {
  Result<decide::Costs> costs = CostsOf(cost);
  if (!costs) return std::unexpected(costs.error());
  const core::Now now = impl_->NowOr(options.now);
  const decide::WorkerSlots::Lease worker = impl_->slots->Take();
  const policy::AttributeTable& names = worker->policy().attributes();
  policy::Attributes call;
  for (const Attribute& attribute : attributes) {
    const Result<int> index = names.Find(attribute.name);
    if (!index) return std::unexpected(index.error());
    if (*index == policy::kUnusedAttribute) continue;
    if (call.Has(*index))
      return InvalidArgument("attributes." + std::string(attribute.name) + ": given twice");
    call.Set(*index, attribute.value);
  }
  const Result<const decide::Verdict*> decided = worker->Decide(
      call, *costs,
      {.peek = options.peek, .reserve_ttl_ns = options.reserve.count(), .next_unit = false}, now);
  if (!decided) return std::unexpected(decided.error());
  const decide::Verdict& verdict = **decided;
  Decision decision{.allowed = verdict.allowed,
                    .source = verdict.source,
                    .retry_after = WaitOf(verdict.retry_after_ns)};
  if (verdict.binding != nullptr) decision.binding = ResultOf(*verdict.binding);
  if (options.all_limits) {
    decision.limits.reserve(verdict.limits.size());
    for (const decide::LimitVerdict& limit : verdict.limits)
      decision.limits.push_back(ResultOf(limit));
  }
  if (verdict.reservation) {
    const std::array<char, 32> text = decide::ToText(*verdict.reservation);
    decision.reservation.assign(text.data(), text.size());
  }
  return decision;
}

Result<void> Limiter::Settle(std::string_view reservation, const ActualCost& actual,
                             std::optional<Instant> now) {
  Result<decide::Costs> costs = CostsOf(actual);
  if (!costs) return std::unexpected(costs.error());
  const std::optional<decide::ReservationId> id = decide::ParseReservationId(reservation);
  if (!id) return MakeError(ErrorCode::kNotFound, "reservation: unknown or expired");
  const core::Now at = impl_->NowOr(now);
  const auto settled = impl_->slots->Take()->Settle(*id, *costs, at);
  if (!settled) return std::unexpected(settled.error());
  return {};
}

Result<void> Limiter::Release(std::string_view reservation, std::optional<Instant> now) {
  const std::optional<decide::ReservationId> id = decide::ParseReservationId(reservation);
  if (!id) return MakeError(ErrorCode::kNotFound, "reservation: unknown or expired");
  const core::Now at = impl_->NowOr(now);
  const auto released = impl_->slots->Take()->Release(*id, at);
  if (!released) return std::unexpected(released.error());
  return {};
}

Result<Bucket> Limiter::Prepare(Rate rate, Algorithm algorithm) {
  if (algorithm == Algorithm::kParallel)
    return InvalidArgument("algorithm: parallel needs reservations; use a policy");
  if (algorithm == Algorithm::kTokenBucket && rate.burst == 0)
    rate.burst = std::max<int64_t>(rate.units, 1);
  const core::MeterSpec spec{.algorithm = algorithm, .rate = rate};
  Result<decide::Engine::AdHocCounters> counters = impl_->engine->PrepareAdHoc(spec);
  if (!counters) return std::unexpected(counters.error());
  auto state = std::make_shared<Bucket::State>();
  *state = {&impl_->clock,   impl_->engine.get(), counters->store,
            counters->meter, counters->key_front, decide::RateFigures::Of(spec).quota};
  return Bucket(std::move(state));
}

Result<void> Limiter::Reload(std::string yaml) {
  return impl_->Reload(
      policy::Policy::FromText(std::move(yaml), "policy.yaml", policy::ProcessEnv()));
}

Result<void> Limiter::ReloadFile(const std::string& path) {
  return impl_->Reload(policy::Policy::Load(path, policy::ProcessEnv()));
}

bool Bucket::Allow(std::string_view key, int64_t cost, Instant now) const {
  if (cost <= 0 || !InRange(cost)) return cost == 0;
  return state_->store->Allow(*state_->meter, state_->KeyOf(key), cost, NowOf(now));
}

bool Bucket::Allow(std::string_view key, int64_t cost) const {
  const core::Now now = state_->engine->NowAt(state_->clock->MonotonicNs(), 0);
  return Allow(key, cost, Instant{.since_start = std::chrono::nanoseconds(now.mono_ns)});
}

LimitResult Bucket::Peek(std::string_view key, int64_t cost, Instant now) const {
  const int64_t asked = std::clamp<int64_t>(cost, 0, kMaxUnits);
  const core::Step step =
      state_->store->Peek(*state_->meter, state_->KeyOf(key), asked, NowOf(now));
  return {.name = {},
          .allowed = step.allowed,
          .quota = state_->quota,
          .remaining = step.remaining,
          .reset_after = std::chrono::nanoseconds(std::max<int64_t>(step.reset_after_ns, 0)),
          .retry_after = WaitOf(step.allowed ? 0 : step.retry_after_ns)};
}

}  // namespace weir
