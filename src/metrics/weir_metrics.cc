#include "metrics/weir_metrics.h"

#include <algorithm>
#include <utility>

#include "metrics/process_metrics.h"

namespace weir::metrics {
namespace {

constexpr size_t kMaxRatioSeries = 100;
constexpr std::array<Outcome, kOutcomeCount> kOutcomes = {Outcome::kAllowed, Outcome::kDenied,
                                                          Outcome::kShadowDenied};
constexpr std::string_view kStoreOpNames[kStoreOpCount] = {"decide", "settle", "peek", "reset",
                                                           "lease"};
constexpr std::string_view kSourceNames[kSourceCount] = {"memory", "redis", "lease", "deny_cache",
                                                         "fallback"};
constexpr std::string_view kStatusClasses[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
constexpr size_t kLayers = 5;

// 1, 2.5 and 5 of each decade.
std::vector<uint64_t> Decades(uint64_t first_ns, uint64_t last_ns) {
  std::vector<uint64_t> bounds;
  for (uint64_t decade = first_ns; decade <= last_ns; decade *= 10) {
    for (const uint64_t bound : {decade, decade * 5 / 2, decade * 5}) {
      if (bound <= last_ns) bounds.push_back(bound);
    }
  }
  return bounds;
}

bool Decides(Door door) { return door != Door::kAdmin && door != Door::kOps; }

}  // namespace

std::string_view OutcomeName(Outcome outcome) {
  constexpr std::string_view kNames[] = {"allowed", "denied", "shadow_denied"};
  return kNames[static_cast<int>(outcome)];
}

std::string_view DoorName(Door door) {
  constexpr std::string_view kNames[] = {"gateway", "api",   "forward_auth", "grpc",
                                         "resp",    "admin", "ops"};
  return kNames[static_cast<int>(door)];
}

WeirMetrics::WeirMetrics(WeirMetricsOptions options)
    : registry_({.shards = options.shards}),
      client_id_(options.client_id),
      timing_(std::make_unique<Timing[]>(options.shards)),
      breakers_(options.shards),
      max_limits_(options.max_limits) {
  options.hot_keys.shards = options.shards;
  hot_keys_ = std::make_unique<HotKeys>(options.hot_keys);
  DeclareDecisions(options);
  DeclareStoreAndConnections(options);
  DeclareUpstreams(options);
  AddProcessMetrics(registry_);
  Family& build =
      registry_.AddGauges("weir_build_info", "1; the label says what runs.", {"version"}, 1);
  registry_.GaugeOf(build, {options.version}).Set(1);
  Family& reload =
      registry_.AddGauges("weir_config_last_reload_successful",
                          "1 if the latest load of the configuration succeeded, else 0.", {}, 1);
  reload_successful_ = registry_.GaugeOf(reload, {});
}

WeirMetrics::~WeirMetrics() = default;

void WeirMetrics::DeclareDecisions(const WeirMetricsOptions& options) {
  Family& decisions =
      registry_.AddCounters("weir_decisions_total", "Decisions by door, outcome and who answered.",
                            {"door", "outcome", "source"}, decisions_.size());
  unlisted_ = registry_.UnlistedCounter();
  decisions_.fill(unlisted_);
  for (const Door door : options.doors) {
    if (!Decides(door)) continue;
    for (const Outcome outcome : kOutcomes) {
      for (const Source source : options.sources) {
        decisions_[DecisionIndex(door, outcome, source)] = registry_.CounterOf(
            decisions,
            {DoorName(door), OutcomeName(outcome), kSourceNames[static_cast<int>(source)]});
      }
    }
  }
  Family& duration =
      registry_.AddHistograms("weir_decision_duration_seconds",
                              "How long a decision took, in seconds. Every 64th decision of each "
                              "event loop is timed; _count counts these.",
                              {}, Decades(100, 100'000'000), 1);
  decision_duration_ = registry_.HistogramOf(duration, {});

  limit_decisions_ = &registry_.AddCounters(
      "weir_limit_decisions_total", "What each limit said of the calls it matched.",
      {"limit", "layer", "outcome"}, (max_limits_ + 1) * kLayers * kOutcomeCount);
  limit_near_ = &registry_.AddCounters(
      "weir_limit_near_total", "Admitted calls after which at least 80 % of the quota was used.",
      {"limit"}, max_limits_ + 1);
  registry_.AddCollected(MetricType::kGauge, "weir_limit_remaining_ratio",
                         "Remaining share of the quota, 0 to 1, at the latest call of the hottest "
                         "clients; clients are "
                         "keyed hashes.",
                         {"limit", "client"}, kMaxRatioSeries,
                         [this](const SampleSink& sink) { CollectRatios(sink); });
}

void WeirMetrics::SetBreakerState(size_t shard, BreakerState state) {
  if (breakers_[shard].exchange(state) == state) return;
  const std::lock_guard lock(mutex_);  // Whoever comes last has seen all.
  const auto any = [&](BreakerState wanted) {
    return std::ranges::any_of(breakers_, [&](const auto& one) { return one.load() == wanted; });
  };
  const BreakerState worst = any(BreakerState::kOpen)       ? BreakerState::kOpen
                             : any(BreakerState::kHalfOpen) ? BreakerState::kHalfOpen
                                                            : BreakerState::kClosed;
  breaker_state_.Set(static_cast<int64_t>(worst));
}

void WeirMetrics::DeclareStoreAndConnections(const WeirMetricsOptions& options) {
  Family& store = registry_.AddHistograms("weir_store_request_duration_seconds",
                                          "How long requests to the store took, in seconds.",
                                          {"op"}, Decades(1'000, 10'000'000'000), kStoreOpCount);
  for (size_t op = 0; op < kStoreOpCount; ++op) {
    store_duration_[op] = registry_.HistogramOf(store, {kStoreOpNames[op]});
  }
  Family& breaker = registry_.AddGauges("weir_store_breaker_state",
                                        "The worst of all loops'. 0: requests go to the store; 1: "
                                        "they do not; 2: one is being tried.",
                                        {}, 1);
  breaker_state_ = registry_.GaugeOf(breaker, {});

  Family& connections = registry_.AddGauges("weir_connections", "Open client connections by door.",
                                            {"door"}, kDoorCount);
  Family& opened =
      registry_.AddCounters("weir_connections_opened_total", "Client connections accepted by door.",
                            {"door"}, kDoorCount);
  Family& streams = registry_.AddGauges("weir_streams", "Streamed answers under way.", {}, 1);
  streams_ = registry_.GaugeOf(streams, {});
  connections_.fill(registry_.UnlistedGauge());
  connections_opened_.fill(registry_.UnlistedCounter());
  for (size_t door = 0; door < kDoorCount; ++door) {
    const auto one = static_cast<Door>(door);
    // ForwardAuth is spoken on the api door's connections.
    const bool listens =
        one != Door::kForwardAuth && std::ranges::find(options.doors, one) != options.doors.end();
    if (!listens) continue;
    connections_[door] = registry_.GaugeOf(connections, {DoorName(one)});
    connections_opened_[door] = registry_.CounterOf(opened, {DoorName(one)});
  }
}

void WeirMetrics::DeclareUpstreams(const WeirMetricsOptions& options) {
  const size_t upstreams = options.max_upstreams;
  upstream_requests_ =
      &registry_.AddCounters("weir_upstream_requests_total",
                             "Requests sent to each upstream, by the answer's status class.",
                             {"upstream", "class"}, upstreams * std::size(kStatusClasses));
  upstream_first_byte_ = &registry_.AddHistograms(
      "weir_upstream_first_byte_seconds",
      "From sending a request to the first byte of its answer, in seconds.", {"upstream"},
      Decades(100'000, 100'000'000'000), upstreams);
  upstream_pending_ = &registry_.AddGauges(
      "weir_upstream_pending", "Requests to each upstream under way.", {"upstream"}, upstreams);
  upstream_connections_ = &registry_.AddGauges(
      "weir_upstream_connections", "Open connections to each upstream, idle ones included.",
      {"upstream"}, upstreams);
}

void WeirMetrics::SetStoreKeys(std::function<uint64_t()> count) {
  store_keys_ = std::move(count);
  registry_.AddCollected(
      MetricType::kGauge, "weir_store_keys", "Keys that the store holds.", {}, 1,
      [this](const SampleSink& sink) { sink({}, static_cast<double>(StoreKeys())); });
}

void WeirMetrics::SetStoreNodes(std::function<uint64_t()> count) {
  registry_.AddCollected(MetricType::kGauge, "weir_store_nodes",
                         "Nodes that share the limits: as configured, or as the store counts.", {},
                         1, [count = std::move(count)](const SampleSink& sink) {
                           sink({}, static_cast<double>(count()));
                         });
}

uint32_t WeirMetrics::LimitId(std::string_view name) {
  const auto known = std::ranges::find(limit_names_, name, &LimitName::name);
  if (known != limit_names_.end()) {
    known->current = true;
    return static_cast<uint32_t>(known - limit_names_.begin());
  }
  if (limit_names_.size() >= max_limits_ && name != "other") return LimitId("other");
  limit_names_.push_back({std::string(name), true});
  return static_cast<uint32_t>(limit_names_.size() - 1);
}

std::vector<LimitSeries> WeirMetrics::BindLimits(const std::vector<LimitLabels>& limits) {
  const std::lock_guard lock(mutex_);
  for (LimitName& name : limit_names_) name.current = false;
  std::vector<LimitSeries> bound;
  std::vector<uint32_t> ids;
  for (const LimitLabels& limit : limits) ids.push_back(LimitId(limit.name));
  std::vector<std::string_view> shown;
  for (const uint32_t id : ids) shown.push_back(limit_names_[id].name);
  registry_.ShowOnly(*limit_decisions_, {});
  registry_.ShowOnly(*limit_near_, {});
  for (size_t i = 0; i < limits.size(); ++i) {
    LimitSeries series;
    series.id = ids[i];
    for (const Outcome outcome : kOutcomes) {
      series.decisions[static_cast<size_t>(outcome)] =
          registry_.CounterOf(*limit_decisions_, {shown[i], limits[i].layer, OutcomeName(outcome)});
    }
    series.near = registry_.CounterOf(*limit_near_, {shown[i]});
    bound.push_back(series);
  }
  return bound;
}

std::vector<UpstreamSeries> WeirMetrics::BindUpstreams(const std::vector<std::string>& names) {
  const std::lock_guard lock(mutex_);
  for (Family* family :
       {upstream_requests_, upstream_first_byte_, upstream_pending_, upstream_connections_}) {
    registry_.ShowOnly(*family, {});
  }
  std::vector<UpstreamSeries> bound;
  for (const std::string& name : names) {
    UpstreamSeries series;
    for (size_t i = 0; i < series.answers.size(); ++i) {
      series.answers[i] = registry_.CounterOf(*upstream_requests_, {name, kStatusClasses[i]});
    }
    series.first_byte = registry_.HistogramOf(*upstream_first_byte_, {name});
    series.pending = registry_.GaugeOf(*upstream_pending_, {name});
    series.connections = registry_.GaugeOf(*upstream_connections_, {name});
    bound.push_back(series);
  }
  return bound;
}

void WeirMetrics::CollectRatios(const SampleSink& sink) const {
  for (const LimitRatio& ratio : hot_keys_->Ratios(kMaxRatioSeries)) {
    const std::string& limit = limit_names_[ratio.limit].name;
    if (!limit_names_[ratio.limit].current) continue;
    if (ratio.hashed) {
      sink(std::array<std::string_view, 2>{limit, ratio.client}, ratio.remaining_ratio);
    } else if (client_id_) {
      const std::string id = client_id_(ratio.client);
      sink(std::array<std::string_view, 2>{limit, id}, ratio.remaining_ratio);
    }
  }
}

std::string WeirMetrics::Expose() const {
  const std::lock_guard lock(mutex_);  // Before the registry's, as in BindLimits.
  return registry_.Expose();
}

uint64_t WeirMetrics::DecisionCount(Outcome outcome) const {
  uint64_t count = 0;
  for (size_t door = 0; door < kDoorCount; ++door) {
    for (size_t source = 0; source < kSourceCount; ++source) {
      const Counter& counter =
          decisions_[DecisionIndex(static_cast<Door>(door), outcome, static_cast<Source>(source))];
      if (!(counter == unlisted_)) count += counter.Value();
    }
  }
  return count;
}

}  // namespace weir::metrics
