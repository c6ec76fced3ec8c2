#include "decide/engine.h"

#include <algorithm>
#include <utility>

#include "decide/engine_impl.h"

namespace weir::decide {
namespace {

store::MemoryStoreOptions StoreOptionsOf(const policy::StoreConfig& config) {
  return {.max_keys = config.max_keys,
          .on_full = config.on_full_open ? store::OnFull::kOpen : store::OnFull::kClosed};
}

std::vector<Source> SourcesOf(const EngineOptions& options) {
  if (!options.shared) return {Source::kMemory, Source::kFallback};
  return {Source::kMemory, Source::kRedis, Source::kLease, Source::kDenyCache, Source::kFallback};
}

metrics::HotKeysOptions HotKeysOptionsOf(const EngineOptions& options) {
  metrics::HotKeysOptions hot_keys;
  if (!options.hot_keys) hot_keys.clients = hot_keys.limit_clients = 1;
  return hot_keys;
}

}  // namespace

Engine::Impl::Impl(EngineOptions given, IdHasher id_hasher)
    : options(std::move(given)),
      start_mono_ns(options.clock->MonotonicNs()),
      hasher(base::KeyHasher::Random()),
      ad_hoc_front(base::KeyHasher::State(hasher.Begin()).Add(uint64_t{1})),
      client_front(base::KeyHasher::State(hasher.Begin()).Add(uint64_t{2})),
      descriptor_front(base::KeyHasher::State(hasher.Begin()).Add(uint64_t{3})),
      ids(std::move(id_hasher)),
      store(StoreOptionsOf(options.policy->config().store)),
      metrics({.shards = options.shards,
               .version = options.version,
               .sources = SourcesOf(options),
               .client_id =
                   [this](std::string_view client) {
                     return std::string(ids.Hash(IdKind::kAttribute, client).view());
                   },
               .hot_keys = HotKeysOptionsOf(options)}),
      ledger({.max_reservations = options.max_reservations}) {}

Result<std::unique_ptr<Engine>> Engine::Create(EngineOptions options) {
  const policy::Secret& secret = options.policy->config().identity.secret;
  Result<IdHasher> ids =
      secret.empty() ? IdHasher::CreateRandom() : IdHasher::Create(secret.Reveal());
  if (!ids) return std::unexpected(ids.error());
  options.shards = std::max<size_t>(options.shards, 1);
  const bool wants_shared = options.policy->config().store.kind == policy::StoreKind::kRedis;
  if (wants_shared != options.shared) {
    return MakeError(ErrorCode::kFailedPrecondition,
                     wants_shared
                         ? "store.kind: this program counts in process only; write `memory`"
                         : "store.kind: this program was started for a shared store");
  }
  auto impl = std::make_unique<Impl>(std::move(options), std::move(*ids));
  if (wants_shared) {
    Result<base::HmacKeys> keys = base::HmacKeys::Create(secret.Reveal());
    if (!keys) return std::unexpected(keys.error());
    impl->shared_keys.emplace(std::move(*keys));
  }
  auto bound =
      BoundPolicy::Bind(impl->options.policy, impl->store, wants_shared ? &impl->leased : nullptr,
                        impl->metrics, impl->hasher);
  if (!bound) return std::unexpected(bound.error());
  impl->bound = std::move(*bound);
  impl->metrics.SetReloadSuccessful(true);
  std::unique_ptr<Engine> engine(new Engine(std::move(impl)));
  Impl* const self = engine->impl_.get();
  self->metrics.SetStoreKeys([self] {
    const int64_t mono_ns = self->options.clock->MonotonicNs() - self->start_mono_ns;
    const core::Now now{.mono_ns = std::max<int64_t>(mono_ns, 0),
                        .wall_ns = self->options.clock->RealtimeNs()};
    return static_cast<uint64_t>(self->store.TrackedKeys(now));
  });
  return engine;
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<policy::ReloadPlan> Engine::Reload(std::shared_ptr<const policy::Policy> next) {
  const std::lock_guard one_at_a_time(impl_->reload_mutex);
  const auto fail = [this](Error error) {
    impl_->metrics.SetReloadSuccessful(false);
    return std::unexpected(std::move(error));
  };
  const std::shared_ptr<const policy::Policy> running = policy();
  policy::ReloadPlan plan = policy::Diff(*running, *next);
  if (next->config().identity.secret != running->config().identity.secret &&
      plan.restart_needed.empty()) {
    plan.restart_needed.push_back(
        "identity.secret: it names every client, so a new one needs a restart");
  }
  if (!plan.restart_needed.empty())
    return fail({ErrorCode::kFailedPrecondition, policy::RestartMessage(plan)});
  auto bound = BoundPolicy::Bind(std::move(next), impl_->store,
                                 impl_->options.shared ? &impl_->leased : nullptr, impl_->metrics,
                                 impl_->hasher);
  if (!bound) return fail(bound.error());
  std::shared_ptr<const BoundPolicy> previous;  // Destroyed outside the lock.
  {
    const std::lock_guard lock(impl_->bound_mutex);
    previous = std::exchange(impl_->bound, std::move(*bound));
    // Release: a worker that sees the number also takes the mutex, and finds this policy or a later
    // one.
    impl_->generation.fetch_add(1, std::memory_order_release);
  }
  impl_->metrics.SetReloadSuccessful(true);
  return plan;
}

std::shared_ptr<const policy::Policy> Engine::policy() const {
  const std::lock_guard lock(impl_->bound_mutex);
  return impl_->bound->policy;
}

metrics::WeirMetrics& Engine::metrics() { return impl_->metrics; }
store::MemoryStore& Engine::local_store() { return impl_->store; }

Result<Engine::AdHocCounters> Engine::PrepareAdHoc(const core::MeterSpec& spec) {
  Result<const core::Meter*> meter = impl_->store.InternForCall(spec);
  if (!meter) return std::unexpected(meter.error());
  return AdHocCounters{&impl_->store, *meter, impl_->AdHocFront(spec.algorithm)};
}

core::Now Engine::NowAt(int64_t clock_mono_ns, int64_t wall_ns) const {
  return {.mono_ns = std::max<int64_t>(clock_mono_ns - impl_->start_mono_ns, 0),
          .wall_ns = wall_ns};
}

}  // namespace weir::decide
