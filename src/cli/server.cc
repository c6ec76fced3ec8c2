#include "cli/server.h"

#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <ostream>
#include <thread>
#include <utility>

#include "cli/commands.h"
#include "cli/descriptor_limit.h"
#include "cli/store_options.h"

namespace weir::cli {
namespace {

// The cores that this process may run on.
size_t CoreCount() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return std::max(1u, std::thread::hardware_concurrency());
  return static_cast<size_t>(std::max(1, CPU_COUNT(&set)));
}

// The connections to hold at most; says when they are fewer than the operator asked for.
int64_t ConnectionsToHold(const policy::Config& config, Logger& logger) {
  const int64_t allowed = RaiseDescriptorLimit();
  const DescriptorPlan plan = PlanDescriptors(config, allowed);
  if (plan.short_of_them) {
    logger.Log(
        LogLevel::kWarn,
        "too few file descriptors for bounds.connections; fewer connections are held: raise "
        "`ulimit -Hn`, or lower the bound",
        {{"descriptors", allowed}, {"needed", plan.needed}, {"connections", plan.connections}});
  }
  return plan.connections;
}

std::array<metrics::Counter, metrics::kDoorCount> RegisterRefused(metrics::Registry& registry) {
  metrics::Family& family = registry.AddCounters(
      "weir_connections_refused_total",
      "Connections closed because bounds.connections was reached.", {"door"}, metrics::kDoorCount);
  std::array<metrics::Counter, metrics::kDoorCount> counters;
  for (size_t i = 0; i < counters.size(); ++i) {
    counters[i] = registry.CounterOf(family, {metrics::DoorName(static_cast<metrics::Door>(i))});
  }
  return counters;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Create(ServerOptions options) {
  std::unique_ptr<Server> server(new Server(std::move(options)));
  if (auto started = server->Start(); !started) return std::unexpected(started.error());
  return server;
}

Server::Server(ServerOptions options) : options_(std::move(options)) {}

Server::~Server() {
  // What lives on the loops, then the resolver, which posts to them, then the loops with their
  // tasks.
  drain_.reset();
  summary_.reset();
  watch_.reset();
  signals_.reset();
  resolver_.reset();
  shards_.clear();
}

Result<void> Server::Start() {
  Signals::Block();  // Before the first thread starts.
  Result<std::unique_ptr<Logger>> logger = Logger::Create({.level = options_.log_level});
  if (!logger) return std::unexpected(logger.error());
  logger_ = std::move(*logger);
  const policy::Config& config = options_.policy->config();
  for (const policy::ConfigError& warning : options_.policy->warnings()) {
    logger_->Log(LogLevel::kWarn, policy::ToString(warning));
  }
  const size_t threads = config.threads > 0 ? static_cast<size_t>(config.threads) : CoreCount();
  const bool shared = config.store.kind == policy::StoreKind::kRedis;
  std::optional<shared_store::RedisStoreOptions> shared_store;
  if (shared) {
    auto store = RedisOptionsOf(config.store);
    if (!store) return InvalidArgument(policy::ToString(store.error()));
    shared_store = std::move(*store);
    node_.id = decide::RandomIds().Next().low;
    if (config.store.nodes > 0) node_.nodes = config.store.nodes;
  }
  Result<std::unique_ptr<decide::Engine>> engine =
      decide::Engine::Create({.policy = options_.policy,
                              .clock = &clock_,
                              .shards = threads,
                              .shared = shared,
                              .version = kVersion});
  if (!engine) return std::unexpected(engine.error());
  engine_ = std::move(*engine);
  if (shared) {
    engine_->metrics().SetStoreNodes(
        [this] { return static_cast<uint64_t>(node_.nodes.load(std::memory_order_relaxed)); });
  }
  bound_ = std::make_unique<ConnectionBound>(ConnectionsToHold(config, *logger_));
  resolver_ = std::make_unique<net::Resolver>();
  reloader_ = std::make_unique<Reloader>(
      *engine_, *logger_, options_.config_path,
      [this](const policy::Policy& next) { return PrepareReload(next.config()); });
  state_.reload = [this] {
    Result<policy::ReloadPlan> plan = reloader_->Reload("admin");
    if (plan) shards_.front()->loop().Post([this] { WatchFiles(); });
    return plan;
  };

  const ShardOptions shard_options{.clock = &clock_,
                                   .engine = engine_.get(),
                                   .resolver = resolver_.get(),
                                   .logger = logger_.get(),
                                   .bound = bound_.get(),
                                   .state = &state_,
                                   .refused = RegisterRefused(engine_->metrics().registry()),
                                   .shared_store = std::move(shared_store),
                                   .node = &node_};
  for (size_t i = 0; i < threads; ++i) {
    Result<std::unique_ptr<Shard>> shard = Shard::Create(shard_options, i);
    if (!shard) return std::unexpected(shard.error());
    shards_.push_back(std::move(*shard));
  }
  return OpenDoors();
}

Result<void> Server::OpenDoors() {
  Result<std::vector<DoorPlan>> plans = PlanDoors(options_.policy->config().listen);
  if (!plans) return std::unexpected(plans.error());
  for (const DoorPlan& plan : *plans) {
    for (const auto& shard : shards_) {
      const Shard* const first = shard == shards_.front() ? nullptr : shards_.front().get();
      if (auto listening = shard->Listen(plan, first); !listening) {
        return std::unexpected(Prefixed(plan.door, listening.error()));
      }
    }
  }
  return {};
}

// Certificates are read again with every reload: the files may have new content under old names.
Result<Reloader::Apply> Server::PrepareReload(const policy::Config& next) {
  Result<std::vector<DoorPlan>> plans = PlanDoors(next.listen);
  if (!plans) return std::unexpected(plans.error());
  return [this, &next, plans = std::move(*plans)] {
    bound_->SetMost(ConnectionsToHold(next, *logger_));
    for (const auto& shard : shards_) {
      shard->loop().Post([shard = shard.get(), plans] {
        // Now rather than with the loop's next call, which also gives back what it holds under the
        // policy before.
        shard->worker().policy();
        shard->UseCertificates(plans);
      });
    }
  };
}

void Server::Reload(const char* why) {
  if (drain_->begun()) return;
  if (reloader_->Reload(why)) WatchFiles();
}

void Server::WatchFiles() {
  const std::shared_ptr<const policy::Policy> policy = engine_->policy();
  if (!policy->config().watch) {
    watch_.reset();
    return;
  }
  std::vector<std::string> files(policy->files().begin(), policy->files().end());
  std::ranges::move(CertificateFiles(policy->config().listen), std::back_inserter(files));
  if (watch_ != nullptr) return watch_->SetFiles(files);
  Result<std::unique_ptr<FileWatch>> watch =
      FileWatch::Open(shards_.front()->loop(), files, [this] { Reload("file change"); });
  if (watch) {
    watch_ = std::move(*watch);
  } else {
    logger_->Log(LogLevel::kError, "cannot watch the configuration",
                 {{"error", std::string_view(watch.error().message)}});
  }
}

void Server::OnSignal(int number) {
  if (number == SIGHUP) return Reload("SIGHUP");
  if (drain_->begun()) return drain_->Cut();
  const policy::TimeoutsConfig timeouts = engine_->policy()->config().timeouts;
  drain_->Begin(timeouts.drain_delay, timeouts.drain);
}

int Server::Run(std::ostream& announcements) {
  net::EventLoop& loop = shards_.front()->loop();
  drain_ = std::make_unique<Drain>(shards_, state_, *logger_, [this](int calls_cut) {
    calls_cut_ = calls_cut;
    for (const auto& shard : shards_) shard->loop().Stop();
  });
  Result<std::unique_ptr<Signals>> signals =
      Signals::Watch(loop, [this](int number) { OnSignal(number); });
  if (!signals) {
    logger_->Log(LogLevel::kError, "cannot receive signals",
                 {{"error", std::string_view(signals.error().message)}});
    return 0;
  }
  signals_ = std::move(*signals);
  WatchFiles();
  summary_ =
      std::make_unique<Summary>(loop, *engine_, *bound_, *logger_, options_.summary_period_ns);

  state_.ready.store(true, std::memory_order_relaxed);
  for (size_t i = 0; i < metrics::kDoorCount; ++i) {
    const auto door = static_cast<metrics::Door>(i);
    if (const net::Endpoint* endpoint = shards_.front()->EndpointOf(door)) {
      announcements << "listening " << metrics::DoorName(door) << "=" << endpoint->ToString()
                    << "\n";
    }
  }
  announcements.flush();
  logger_->Log(LogLevel::kInfo, "serving",
               {{"version", kVersion}, {"loops", static_cast<int64_t>(shards_.size())}});

  std::vector<std::thread> threads;
  for (size_t i = 1; i < shards_.size(); ++i)
    threads.emplace_back([this, i] { shards_[i]->loop().Run(); });
  loop.Run();
  for (std::thread& thread : threads) thread.join();
  summary_->Log();
  logger_->Log(LogLevel::kInfo, "stopped", {{"calls_cut", static_cast<int64_t>(calls_cut_)}});
  return calls_cut_;
}

}  // namespace weir::cli
