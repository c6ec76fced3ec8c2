// What a decision costs, from the bare counter up to the whole path with policy, metrics and hot
// keys. One thread; keys are drawn from 1,000, which stay in cache.
#include <benchmark/benchmark.h>

#include <chrono>
#include <string>
#include <vector>

#include "decide/engine.h"
#include "policy/policy.h"
#include "testing/simulated_clock.h"
#include "weir/limiter.h"

namespace weir {
namespace {

constexpr size_t kKeys = 1000;

std::vector<std::string> Keys() {
  std::vector<std::string> keys;
  for (size_t i = 0; i < kKeys; ++i) keys.push_back("user:" + std::to_string(100000 + i));
  return keys;
}

void BM_BucketAllow(benchmark::State& state) {
  auto limiter = Limiter::WithoutPolicy().value();
  const Bucket bucket =
      limiter->Prepare({.units = 1000, .period = std::chrono::seconds(1), .burst = 1000}).value();
  const std::vector<std::string> keys = Keys();
  Instant now{};
  size_t i = 0;
  for (auto _ : state) {
    now.since_start += std::chrono::nanoseconds(100);
    benchmark::DoNotOptimize(bucket.Allow(keys[i], 1, now));
    if (++i == kKeys) i = 0;
  }
}
BENCHMARK(BM_BucketAllow);

void BM_LimiterCheck(benchmark::State& state) {
  auto limiter = Limiter::FromYaml("limits: [{name: a, per: [client], rate: 1000/s}]").value();
  const std::vector<std::string> keys = Keys();
  CheckOptions options{.now = Instant{}};
  size_t i = 0;
  for (auto _ : state) {
    options.now->since_start += std::chrono::nanoseconds(100);
    benchmark::DoNotOptimize(
        limiter->Check({{"client", keys[i]}}, {.requests = 1}, options)->allowed);
    if (++i == kKeys) i = 0;
  }
}
BENCHMARK(BM_LimiterCheck);

void DecideLimits(benchmark::State& state, const std::string& yaml, bool hot_keys) {
  SimulatedClock clock;
  auto policy =
      policy::Policy::FromText(yaml, "bench.yaml", [](std::string_view) { return std::nullopt; });
  auto engine =
      decide::Engine::Create({.policy = *policy, .clock = &clock, .hot_keys = hot_keys}).value();
  decide::Worker worker(*engine, 0);
  const std::vector<std::string> keys = Keys();
  policy::Attributes call;
  core::Now now{};
  size_t i = 0;
  for (auto _ : state) {
    now.mono_ns += 100;
    call.Set(policy::kClientAttribute, keys[i]);
    benchmark::DoNotOptimize(
        (*worker.Decide(call, decide::Costs::Requests(), {.next_unit = false}, now))->allowed);
    if (++i == kKeys) i = 0;
  }
}

void BM_DecideOneLimit(benchmark::State& state) {
  DecideLimits(state, "limits: [{name: a, per: [client], rate: 1000/s}]", state.range(0) != 0);
}
BENCHMARK(BM_DecideOneLimit)->Arg(0)->Arg(1);

void BM_DecideThreeLimits(benchmark::State& state) {
  DecideLimits(state,
               "limits: [{name: a, per: [client], rate: 1000/s}, {name: b, per: [client], rate: "
               "10000000/hour}, "
               "{name: c, rate: 1000000000/s}]",
               state.range(0) != 0);
}
BENCHMARK(BM_DecideThreeLimits)->Arg(0)->Arg(1);

}  // namespace
}  // namespace weir

BENCHMARK_MAIN();
