#include <benchmark/benchmark.h>

#include "base/hmac_id.h"

namespace weir {
namespace {

constexpr std::string_view kSecret = "0123456789abcdef0123456789abcdef";
constexpr std::string_view kCredential = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGH";

void BM_Hash(benchmark::State& state) {
  const IdHasher hasher = IdHasher::Create(kSecret).value();
  for (auto _ : state) benchmark::DoNotOptimize(hasher.Hash(IdKind::kKey, kCredential));
}
BENCHMARK(BM_Hash);

void BM_CacheHit(benchmark::State& state) {
  const IdHasher hasher = IdHasher::Create(kSecret).value();
  IdCache cache(hasher);
  for (auto _ : state) benchmark::DoNotOptimize(cache.Get(IdKind::kKey, kCredential));
}
BENCHMARK(BM_CacheHit);

}  // namespace
}  // namespace weir

BENCHMARK_MAIN();
