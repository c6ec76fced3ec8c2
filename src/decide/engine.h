// Engine: the one decision path. Every door turns bytes into attributes and costs, calls Decide on
// its loop's Worker and turns the Verdict into bytes. Rate logic is in core; the engine joins
// policy, store, reservations and metrics.
//
//   auto engine = decide::Engine::Create({.policy = policy, .clock = clock}).value();
//   decide::Worker worker(*engine, /*shard=*/0);                    // one per loop
//   auto verdict = worker.Decide(attributes, decide::Costs::Requests(), {.door = door}, now);
//
// Thread safety: Engine is shared by all threads. A Worker belongs to one thread.
// Ownership: the engine owns the store, the counters' meters and the running policy; workers borrow
// it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/hmac_id.h"
#include "base/keyed_hash.h"
#include "base/task.h"
#include "core/now.h"
#include "decide/ledger.h"
#include "decide/verdict.h"
#include "identity/client_identity.h"
#include "metrics/weir_metrics.h"
#include "policy/policy.h"
#include "policy/reload.h"
#include "store/memory/memory_store.h"
#include "store/shared_store.h"
#include "weir/result.h"

namespace weir::decide {

// A policy joined to the store's meters, the metrics' series and the identity rules. Immutable.
struct BoundPolicy;
struct BoundLimit;
struct CompiledRule;
struct DescriptorCounter;
struct RateFigures;

struct EngineOptions {
  std::shared_ptr<const policy::Policy> policy;  // Required.
  const Clock* clock = nullptr;                  // Required; must outlive the engine.
  size_t shards = 1;                             // Workers, at most; one per loop.
  size_t max_reservations =
      1'000'000;         // Beyond: a call that asks for one is refused (kResourceExhausted).
  bool hot_keys = true;  // Counts by client, for /admin/top; 30 ns or so per decision.
  // The workers come with shared stores, as `store.kind: redis` wants. A policy and a program that
  // disagree about it are refused.
  bool shared = false;
  std::string version;  // For weir_build_info.
};

class Engine {
 public:
  // Errors: unusable identity keys, meters that do not compile.
  static Result<std::unique_ptr<Engine>> Create(EngineOptions options);
  ~Engine();

  // Swaps the policy whole. Counters whose limit kept its identity stay. kFailedPrecondition when
  // only a restart could do it; the running policy then stays, as it does after any error.
  Result<policy::ReloadPlan> Reload(std::shared_ptr<const policy::Policy> next);

  std::shared_ptr<const policy::Policy> policy() const;
  metrics::WeirMetrics& metrics();
  // The counters of rules that come without a policy, for callers that skip everything but the
  // counter itself.
  struct AdHocCounters {
    store::MemoryStore* store = nullptr;
    const core::Meter* meter = nullptr;
    base::KeyHasher::State key_front;  // Add the key.
  };
  // kInvalidArgument: the rule does not compile; the message names the field.
  Result<AdHocCounters> PrepareAdHoc(const core::MeterSpec& spec);

  // Counters of this node alone: all of them on the embedded store; beside a shared one its
  // fallback.
  store::MemoryStore& local_store();

  // The engine's time: monotonic nanoseconds since it was made, as core::Now wants them.
  core::Now NowAt(int64_t clock_mono_ns, int64_t wall_ns) const;

 private:
  friend class Worker;
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct DecideOptions {
  metrics::Door door = metrics::Door::kApi;
  policy::Missing missing = policy::Missing::kSkip;  // What an absent attribute means at this door.
  bool peek = false;  // `allowed` says whether the cost would pass; nothing changes.
  // Above 0: charges are held in a reservation for so long, to be settled or released. Needed by
  // parallel limits, which are only tested otherwise.
  int64_t reserve_ttl_ns = 0;
  // With reserve_ttl_ns: make the reservation only when a parallel limit applies (the gateway's
  // way: costs stand as charged, slots are freed by Settle with no amounts).
  bool reserve_parallel_only = false;
  // Fills LimitVerdict::next_unit_after_ns, which the RateLimit field needs; a look-up more for
  // sliding windows.
  bool next_unit = true;
  std::string_view client;     // For hot keys; the attribute's value when empty.
  bool client_hashed = false;  // `client` is a keyed id and may be shown in /metrics.
};

// A rule that comes with the call instead of a policy. Counters are named by (algorithm, key)
// alone, so a changed rate carries the used units over.
struct AdHocRule {
  std::string_view key;
  core::MeterSpec spec;
  std::string_view name;  // Shown as the limit's name.
};

// One limit's standing for one set of attributes, for GET /admin/state.
struct LimitState {
  const policy::Limit* limit = nullptr;
  const policy::Variant* variant = nullptr;  // Unlimited: `step` says nothing.
  core::Step step;                           // Of a peek.
  int64_t quota = 0;
};

struct Decision;        // decision.h
struct DescriptorCall;  // descriptors.h
class Worker;
struct EndDecision {
  Worker* worker;
  void operator()(Decision* decision) const;
};
// A decision under way, from Begin to the last use of its verdict.
using DecisionPtr = std::unique_ptr<Decision, EndDecision>;

class Worker {
 public:
  // REQUIRES: shard < the engine's shards, and no other worker has it. `shared`, not owned, is
  // there if EngineOptions::shared says so, and must outlive every task of this worker.
  Worker(Engine& engine, size_t shard, store::SharedStore* shared = nullptr);
  ~Worker();

  // The running policy, taken over here when a reload has happened. Ask once at the start of each
  // call, before its attributes are indexed: identity, Decide and the rest work by the policy that
  // was given last, so that no call is decided by another policy than the one that named its
  // attributes. Valid until the next call of this.
  const policy::Policy& policy();
  // What policy() gave last. For whoever is in the middle of a call: a verdict's views are of this
  // policy, and end with the next policy().
  const policy::Policy& policy_in_use() const;
  const identity::IdentityResolver& identity();
  identity::IdentityCache& identity_cache();
  size_t shard() const { return shard_; }
  Engine& engine() { return engine_; }

  // The client's id for an API key, as the gateway names it. For attributes.api_key of /v1/check.
  ClientId ApiKeyId(std::string_view api_key);

  // Whether decisions wait for a shared store: then Begin and Finish decide, and Settle, Release,
  // Renew, Reset and State have their twins that wait. REQUIRES, for each of the others: !waits().
  bool waits() const { return shared_ != nullptr; }

  // Decides one call: all limits that apply, all or nothing. Neither blocks nor allocates in the
  // steady state (a reservation allocates). An error only when a reservation cannot be made.
  Result<const Verdict*> Decide(const policy::Attributes& call, const Costs& costs,
                                const DecideOptions& options, core::Now now);
  // kInvalidArgument: the rule does not compile; the message names the field.
  Result<const Verdict*> DecideAdHoc(const AdHocRule& rule, int64_t cost,
                                     const DecideOptions& options, core::Now now);

  // Decides a call by descriptors: all of its descriptors, all or nothing. If any is over its limit
  // nothing is charged, and Verdict::descriptors says of each what its own limits say.
  // Reservations are not made; `options.missing` and `client` have no meaning. Neither blocks nor
  // allocates in the steady state. kInvalidArgument: no domain, no descriptors or entries, too many
  // of them, hits or a rate out of range, or one counter under two rates; nothing is charged.
  Result<const Verdict*> DecideDescriptors(const DescriptorCall& call, const DecideOptions& options,
                                           core::Now now);

  // The same in two steps. Begin reads the call, whose views may go afterwards; Finish asks the
  // shared store and answers as Decide does. The verdict lives as long as the decision.
  DecisionPtr Begin(const policy::Attributes& call, const Costs& costs,
                    const DecideOptions& options);
  Result<DecisionPtr> BeginAdHoc(const AdHocRule& rule, int64_t cost, const DecideOptions& options);
  Result<DecisionPtr> BeginDescriptors(const DescriptorCall& call, const DecideOptions& options);
  Task<Result<const Verdict*>> Finish(Decision& decision, core::Now now);
  // Finishes without waiting where the shared store can: out of a lease, or by what is known to be
  // denied. Nothing: ask Finish, as if this had not been called. Allocates nothing in the steady
  // state.
  std::optional<Result<const Verdict*>> FinishNow(Decision& decision, core::Now now);

  // Ends a reservation: for each unit given in `actual`, the reserved amount becomes the actual one
  // (the difference is given back or becomes debt); the others stand as charged; parallel slots are
  // freed. Idempotent: a repeat answers the same. kNotFound: unknown or expired.
  using Settled = decide::Settled;
  Result<Settled> Settle(ReservationId id, const Costs& actual, core::Now now);
  // Gives everything back. Idempotent, as Settle.
  Result<Settled> Release(ReservationId id, core::Now now);
  // Prolongs the parallel slots of a reservation to `ttl_ns` from now; for long streams. False: it
  // is gone.
  bool Renew(ReservationId id, int64_t ttl_ns, core::Now now);

  Task<Result<Settled>> SettleShared(ReservationId id, Costs actual, core::Now now);
  Task<Result<Settled>> ReleaseShared(ReservationId id, core::Now now);
  Task<bool> RenewShared(ReservationId id, int64_t ttl_ns, core::Now now);

  // Forgets the counter of `limit_name` for these attributes. kNotFound: no such limit;
  // kInvalidArgument: an attribute of its `per` is missing.
  Result<void> Reset(std::string_view limit_name, const policy::Attributes& call, core::Now now);
  // The same of a limit that binds to descriptors. kInvalidArgument: its pattern does not match.
  Result<void> ResetDescriptor(std::string_view limit_name,
                               std::span<const policy::DescriptorEntry> entries, core::Now now);
  // Every limit whose `per` the attributes fill, with what is left of it.
  std::vector<LimitState> State(const policy::Attributes& call, core::Now now);
  // Every limit that applies to the descriptor.
  std::vector<LimitState> DescriptorState(std::string_view domain,
                                          std::span<const policy::DescriptorEntry> entries,
                                          core::Now now);
  // kUnavailable: the store is away.
  Task<Result<void>> ResetShared(std::string_view limit_name, const policy::Attributes& call,
                                 core::Now now);
  Task<Result<void>> ResetDescriptorShared(std::string_view limit_name,
                                           std::span<const policy::DescriptorEntry> entries,
                                           core::Now now);
  Task<std::vector<LimitState>> StateShared(const policy::Attributes& call, core::Now now);
  Task<std::vector<LimitState>> DescriptorStateShared(
      std::string_view domain, std::span<const policy::DescriptorEntry> entries, core::Now now);

 private:
  friend struct EndDecision;
  struct Scratch;
  void Refresh();
  void Collect(const policy::Attributes& call, const Costs& costs, const DecideOptions& options,
               uint64_t lease_id, Decision& decision);
  void NameShared(const BoundLimit& limit, int variant, const policy::Attributes& call,
                  Decision& decision);
  void CollectRule(const AdHocRule& rule, const CompiledRule& compiled, int64_t cost,
                   const DecideOptions& options, uint64_t lease_id, Decision& decision);
  Result<void> CollectDescriptors(const DescriptorCall& call, Decision& decision);
  Result<void> CollectDescriptor(const DescriptorCall& call, size_t index, Decision& decision);
  Result<void> CollectOwnRate(const DescriptorCall& call, size_t index, Decision& decision);
  Result<void> CollectLimits(const DescriptorCall& call, size_t index, Decision& decision);
  Result<void> AddPart(const DescriptorCounter& counter, const RateFigures* figures,
                       Decision& decision);
  void NameDescriptor(const DescriptorCounter& counter, Decision& decision);
  Result<const BoundLimit*> DescriptorLimit(std::string_view limit_name,
                                            std::span<const policy::DescriptorEntry> entries) const;
  void CollectDescriptorState(std::string_view domain,
                              std::span<const policy::DescriptorEntry> entries,
                              std::vector<LimitState>& states, Decision& decision);
  base::Key128 LocalKeyOf(const DescriptorCounter& counter) const;
  bool ChargeDescriptors(bool peek, core::Now now, Decision& decision);
  Task<bool> AskDescriptors(Decision& decision, core::Now now);
  Task<void> LearnUnknown(Decision& decision, core::Now now);
  static bool LacksStatuses(const Decision& decision);
  static void JudgeDescriptors(Decision& decision);
  Result<const CompiledRule*> CompileRule(const core::MeterSpec& spec);
  void Conclude(bool admitted, core::Now now, Decision& decision);
  void CountFinished(const Decision& decision);
  void Describe(const DecideOptions& options, core::Now now, Decision& decision);
  static void Judge(bool admitted, Decision& decision);
  static Reservation ReservationOf(const Costs& costs, const DecideOptions& options, core::Now now,
                                   const Decision& decision);
  Result<void> Reserve(ReservationId id, const Costs& costs, const DecideOptions& options,
                       core::Now now, Decision& decision);
  void Undo(core::Now now, const Decision& decision);
  void Count(std::string_view client, const DecideOptions& options, const Decision& decision);
  void CountRule(const DecideOptions& options, const Decision& decision);
  void CountClient(std::string_view client, const DecideOptions& options, const Decision& decision);
  DecisionPtr TakeDecision();
  Result<const BoundLimit*> ResetLimit(std::string_view limit_name,
                                       const policy::Attributes& call) const;
  void CollectState(const policy::Attributes& call, std::vector<LimitState>& states,
                    Decision& decision) const;

  Engine& engine_;
  const size_t shard_;
  store::SharedStore* const shared_;
  std::shared_ptr<const BoundPolicy> bound_;
  uint64_t seen_generation_ = 0;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace weir::decide
