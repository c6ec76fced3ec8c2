// Every series that Weir exposes, by the names of the documentation, and cheap handles for the hot
// path.
//
// Counters live as long as this object, not as long as a policy: BindLimits gives a limit that kept
// its name and layer the series it had, so a reload loses no count. Thread safety: methods with a
// `shard` belong to the thread that owns it; the others may be called from any thread.
//
//   WeirMetrics metrics({.shards = loops, .version = "0.1.0"});
//   auto limits = metrics.BindLimits({{"per-client", "client"}});  // Kept with the policy.
//   metrics.OnDecision(shard, Door::kApi, Outcome::kDenied, Source::kMemory);
//   metrics.OnLimit(shard, limits[0], Outcome::kDenied);
//   std::string page = metrics.Expose();
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/hot_keys.h"
#include "metrics/registry.h"
#include "weir/decision.h"

namespace weir::metrics {

enum class Outcome : uint8_t { kAllowed, kDenied, kShadowDenied };
inline constexpr size_t kOutcomeCount = 3;
std::string_view OutcomeName(Outcome outcome);  // "allowed", "denied", "shadow_denied"

enum class Door : uint8_t { kGateway, kApi, kForwardAuth, kGrpc, kResp, kAdmin, kOps };
inline constexpr size_t kDoorCount = 7;
std::string_view DoorName(
    Door door);  // "gateway", "api", "forward_auth", "grpc", "resp", "admin", "ops"

inline constexpr size_t kSourceCount = 5;

// A limit's series; kept by the policy beside the limit. Valid as long as the WeirMetrics.
struct LimitSeries {
  std::array<Counter, kOutcomeCount> decisions;
  Counter near;
  uint32_t id = 0;  // The same for the same name, across reloads.
};

struct LimitLabels {
  std::string_view name;
  std::string_view layer;  // "model", "endpoint", "client", "ip", "global"
};

// One upstream's series.
struct UpstreamSeries {
  std::array<Counter, 6> answers;  // By status class: [0] none came, [1] 1xx ... [5] 5xx.
  Histogram first_byte;            // From the request's first byte sent to the answer's first byte.
  Gauge pending;                   // Calls under way.
  Gauge connections;               // Open, idle ones included.
};

enum class StoreOp : uint8_t { kDecide, kSettle, kPeek, kReset, kLease };
inline constexpr size_t kStoreOpCount = 5;

struct WeirMetricsOptions {
  size_t shards = 1;
  std::string version;
  std::vector<Door> doors = {Door::kGateway, Door::kApi,  Door::kForwardAuth, Door::kAdmin,
                             Door::kOps,     Door::kResp, Door::kGrpc};  // In use.
  std::vector<Source> sources = {Source::kMemory, Source::kFallback};    // That the store can give.
  size_t max_limits =
      10'000;  // Limit names over the life of the process; later ones share "other".
  size_t max_upstreams = 1'000;
  // Turns a client's plain name into what /metrics shows; called at scrapes only. Empty: such
  // clients are left out.
  std::function<std::string(std::string_view client)> client_id;
  HotKeysOptions hot_keys;  // `shards` is overwritten.
};

class WeirMetrics {
 public:
  explicit WeirMetrics(WeirMetricsOptions options);
  ~WeirMetrics();
  WeirMetrics(const WeirMetrics&) = delete;

  // --- At start and on reload; these allocate and take a mutex.

  // One LimitSeries per limit, in order. Limits of earlier policies that are not named any more
  // leave the page; they show their old counts when they come back.
  std::vector<LimitSeries> BindLimits(const std::vector<LimitLabels>& limits);
  std::vector<UpstreamSeries> BindUpstreams(const std::vector<std::string>& names);

  // --- The hot path: no lock, no allocation, a few ns each. Doors and sources that were not
  // declared are not counted.

  void OnDecision(size_t shard, Door door, Outcome outcome, Source source) {
    decisions_[DecisionIndex(door, outcome, source)].Add(shard);
  }

  // `near`: the call was admitted and at least 80 % of the quota is used (see IsNear).
  void OnLimit(size_t shard, const LimitSeries& limit, Outcome outcome, bool near = false) {
    limit.decisions[static_cast<size_t>(outcome)].Add(shard);
    if (near) limit.near.Add(shard);
  }
  static bool IsNear(int64_t remaining, int64_t quota) { return remaining <= quota / 5; }

  // True for every 64th call on a shard, its first one included: two clock reads cost more than a
  // decision, so only these are timed. weir_decision_duration_seconds counts the timed ones.
  bool ShouldTime(size_t shard) { return (timing_[shard].calls++ & (kTimedEvery - 1)) == 0; }
  void OnDecisionDuration(size_t shard, int64_t duration_ns) {
    decision_duration_.Record(shard, duration_ns);
  }
  static constexpr uint32_t kTimedEvery = 64;

  void OnStoreRequest(size_t shard, StoreOp op, int64_t duration_ns) {
    store_duration_[static_cast<size_t>(op)].Record(shard, duration_ns);
  }
  void OnConnection(size_t shard, Door door, int delta) {
    connections_[static_cast<size_t>(door)].Add(shard, delta);
    if (delta > 0) connections_opened_[static_cast<size_t>(door)].Add(shard);
  }
  void OnStream(size_t shard, int delta) { streams_.Add(shard, delta); }

  HotKeys& hot_keys() { return *hot_keys_; }

  // --- State, from any thread.

  void SetReloadSuccessful(bool successful) { reload_successful_.Set(successful ? 1 : 0); }
  enum class BreakerState : uint8_t { kClosed = 0, kOpen = 1, kHalfOpen = 2 };
  // Of the shard's breaker. What is shown is the worst of all: open, else half-open, else closed.
  void SetBreakerState(size_t shard, BreakerState state);
  // Asked at each scrape, on the scraping thread. Call once, before the first scrape.
  void SetStoreKeys(std::function<uint64_t()> count);

  // How many nodes share the limits, as weir_store_nodes says. Asked and called as SetStoreKeys.
  void SetStoreNodes(std::function<uint64_t()> count);

  // Prometheus text, version 0.0.4 (Registry::kContentType).
  std::string Expose() const;

  // Decisions so far over all declared doors and sources, for the per-minute log line.
  uint64_t DecisionCount(Outcome outcome) const;
  // Keys in the store, as weir_store_keys says; scans the store.
  uint64_t StoreKeys() const { return store_keys_ ? store_keys_() : 0; }

  // For series of other parts, registered at start. Scrapes go through Expose().
  Registry& registry() { return registry_; }

 private:
  struct alignas(64) Timing {
    uint32_t calls = 0;
  };
  struct LimitName {
    std::string name;
    bool current = false;
  };

  static constexpr size_t DecisionIndex(Door door, Outcome outcome, Source source) {
    return (static_cast<size_t>(door) * kOutcomeCount + static_cast<size_t>(outcome)) *
               kSourceCount +
           static_cast<size_t>(source);
  }
  void DeclareDecisions(const WeirMetricsOptions& options);
  void DeclareStoreAndConnections(const WeirMetricsOptions& options);
  void DeclareUpstreams(const WeirMetricsOptions& options);
  void CollectRatios(const SampleSink& sink) const;
  uint32_t LimitId(std::string_view name);

  Registry registry_;
  const std::function<std::string(std::string_view)> client_id_;
  std::unique_ptr<HotKeys> hot_keys_;
  std::function<uint64_t()> store_keys_;
  std::unique_ptr<Timing[]> timing_;
  std::vector<std::atomic<BreakerState>> breakers_;  // By shard.

  Counter unlisted_;  // Takes what nobody declared.
  std::array<Counter, kDoorCount * kOutcomeCount * kSourceCount> decisions_;
  std::array<Histogram, kStoreOpCount> store_duration_;
  std::array<Gauge, kDoorCount> connections_;
  std::array<Counter, kDoorCount> connections_opened_;
  Histogram decision_duration_;
  Gauge streams_;
  Gauge reload_successful_;
  Gauge breaker_state_;

  Family* limit_decisions_ = nullptr;
  Family* limit_near_ = nullptr;
  Family* upstream_requests_ = nullptr;
  Family* upstream_first_byte_ = nullptr;
  Family* upstream_pending_ = nullptr;
  Family* upstream_connections_ = nullptr;

  const size_t max_limits_;
  mutable std::mutex mutex_;            // Of breaker_state_ and what follows.
  std::vector<LimitName> limit_names_;  // By id.
};

}  // namespace weir::metrics
