// One hot key, decided out of leases, against the same worker over its memory store, in one run:
// four nodes share the limit through a real redis-server and take turns on one thread. Counters:
//   of_memory    decisions a second, of those of the memory store
//   round_trips  script calls that the server has carried out, for each decision
//   denied       decisions that were denied (the limit is far away: none should be)
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "decide/engine.h"
#include "net/event_loop.h"
#include "net/resolver.h"
#include "policy/policy.h"
#include "shared_store/redis_store.h"
#include "testing/redis_server.h"

namespace weir::decide {
namespace {

constexpr size_t kNodes = 4;
// Decisions of one tick; a busy loop has as many.
constexpr int kDecisionsPerTick = 64;
constexpr int kTicks = 512;

constexpr const char* kLimits =
    "identity: {secret: 0123456789abcdef}\n"
    "limits: [{name: hot, per: [client], rate: 100000000/s, consistency: leased}]\n";

std::shared_ptr<const policy::Policy> PolicyOf(const std::string& text) {
  return *policy::Policy::FromText(text, "bench.yaml",
                                   [](std::string_view) { return std::nullopt; });
}

class HotKey {
 public:
  HotKey()
      : loop_(net::EventLoop::Create(clock_).value()),
        memory_(Engine::Create({.policy = PolicyOf(kLimits), .clock = &clock_}).value()),
        memory_worker_(*memory_, 0),
        engine_(Engine::Create({.policy = PolicyOf("store: {kind: redis, url: 'redis://-'}\n" +
                                                   std::string(kLimits)),
                                .clock = &clock_,
                                .shards = kNodes,
                                .shared = true})
                    .value()) {
    call_.Set(policy::kClientAttribute, "key:hot");
    for (size_t i = 0; i < kNodes; ++i) {
      shared_store::RedisStoreOptions options;
      options.loop = loop_.get();
      options.resolver = &resolver_;
      options.memory = &engine_->local_store();
      options.node = &node_;
      options.metrics = &engine_->metrics();
      options.shard = i;
      options.client = redis::ParseUrl(server_.url()).value();
      options.timeout_ns = 1'000'000'000;
      stores_[i] = std::make_unique<shared_store::RedisStore>(std::move(options));
      workers_[i] = std::make_unique<Worker>(*engine_, i, stores_[i].get());
    }
  }
  ~HotKey() {
    for (auto& store : stores_) store->Disconnect();
    loop_.reset();
  }

  // Runs for so many ticks and returns the nanoseconds that it took.
  int64_t RunMemory() {
    return Run([this](core::Now now) -> Task<bool> {
      for (int i = 0; i < kDecisionsPerTick; ++i) {
        const auto verdict = memory_worker_.Decide(call_, Costs::Requests(), {}, now);
        benchmark::DoNotOptimize((*verdict)->allowed);
      }
      co_return true;
    });
  }
  int64_t RunLeased() {
    return Run([this](core::Now now) { return DecideLeased(now); });
  }
  int64_t CallsOfServer() {
    const std::string stats = server_.Info("commandstats", "cmdstat_evalsha");
    const size_t at = stats.find("calls=");
    return at == std::string::npos ? 0 : std::atoll(stats.c_str() + at + 6);
  }
  int64_t denied = 0;

 private:
  Task<bool> DecideLeased(core::Now now) {
    Worker& worker = *workers_[turn_++ % kNodes];
    for (int i = 0; i < kDecisionsPerTick; ++i) {
      const DecisionPtr decision = worker.Begin(call_, Costs::Requests(), {});
      if (const auto finished = worker.FinishNow(*decision, now)) {
        denied += (**finished)->allowed ? 0 : 1;
        continue;
      }
      const auto verdict = co_await worker.Finish(*decision, now);
      denied += (*verdict)->allowed ? 0 : 1;
    }
    co_return true;
  }

  template <typename Tick>
  int64_t Run(Tick tick) {
    const auto began = std::chrono::steady_clock::now();
    loop_->Spawn(Ticks(tick));
    loop_->Run();
    return std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count();
  }
  template <typename Tick>
  Task<void> Ticks(Tick tick) {
    for (int i = 0; i < kTicks; ++i) {
      const core::Now now = engine_->NowAt(loop_->now_ns(), loop_->wall_ns());
      co_await tick(now);
      co_await loop_->SleepFor(0);
    }
    loop_->Stop();
  }

  SystemClock clock_;
  testing::RedisServer server_;
  net::Resolver resolver_;
  shared_store::NodeState node_;
  std::unique_ptr<net::EventLoop> loop_;
  std::unique_ptr<Engine> memory_;
  Worker memory_worker_;
  std::unique_ptr<Engine> engine_;
  std::array<std::unique_ptr<shared_store::RedisStore>, kNodes> stores_;
  std::array<std::unique_ptr<Worker>, kNodes> workers_;
  policy::Attributes call_;
  size_t turn_ = 0;
};

void BM_HotKeyOfFourNodes(benchmark::State& state) {
  HotKey hot;
  for (int i = 0; i < 20; ++i) hot.RunLeased();  // Leases grow to the rate of use.
  const int64_t calls_before = hot.CallsOfServer();
  int64_t memory_ns = 0;
  int64_t leased_ns = 0;
  int64_t decisions = 0;
  for (auto _ : state) {
    memory_ns += hot.RunMemory();
    const int64_t took_ns = hot.RunLeased();
    leased_ns += took_ns;
    decisions += kTicks * kDecisionsPerTick;
    state.SetIterationTime(static_cast<double>(took_ns) / 1e9);
  }
  const auto ratio = [](int64_t a, int64_t b) {
    return static_cast<double>(a) / static_cast<double>(b);
  };
  state.SetItemsProcessed(decisions);
  state.counters["of_memory"] = ratio(memory_ns, leased_ns);
  state.counters["memory_ns"] = ratio(memory_ns, decisions);
  state.counters["leased_ns"] = ratio(leased_ns, decisions);
  state.counters["round_trips"] = ratio(hot.CallsOfServer() - calls_before, decisions);
  state.counters["denied"] = static_cast<double>(hot.denied);
}
BENCHMARK(BM_HotKeyOfFourNodes)->UseManualTime()->MinTime(2);

}  // namespace
}  // namespace weir::decide

BENCHMARK_MAIN();
