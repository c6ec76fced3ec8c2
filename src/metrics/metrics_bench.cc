#include <benchmark/benchmark.h>

#include "metrics/weir_metrics.h"

namespace weir::metrics {
namespace {

void BM_OnDecisionAndLimit(benchmark::State& state) {
  WeirMetrics metrics({.shards = 2, .version = "bench"});
  const auto limits = metrics.BindLimits({{"per-client", "client"}});
  for (auto _ : state) {
    metrics.OnDecision(0, Door::kApi, Outcome::kAllowed, Source::kMemory);
    metrics.OnLimit(0, limits[0], Outcome::kAllowed, false);
  }
}
BENCHMARK(BM_OnDecisionAndLimit);

// Clients by turns: few of them stay in the sketch, many push each other out.
void BM_HotKeysOnClient(benchmark::State& state) {
  HotKeys hot({.shards = 1});
  std::vector<base::Key128> keys;
  for (int64_t i = 0; i < state.range(0); ++i) {
    keys.push_back(base::KeyHasher(7).Begin().Add(static_cast<uint64_t>(i)).Finish());
  }
  size_t at = 0;
  for (auto _ : state) {
    hot.OnClient(0, keys[at], "key:0123456789abcdefghijkl", true, true);
    if (++at == keys.size()) at = 0;
  }
}
BENCHMARK(BM_HotKeysOnClient)->Arg(10)->Arg(100'000);

void BM_Expose(benchmark::State& state) {
  WeirMetrics metrics({.shards = 2, .version = "bench"});
  for (auto _ : state) benchmark::DoNotOptimize(metrics.Expose());
}
BENCHMARK(BM_Expose);

}  // namespace
}  // namespace weir::metrics

BENCHMARK_MAIN();
