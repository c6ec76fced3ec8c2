// What a decision costs that never leaves the node: by a lease, and by a denial that still holds;
// the embedded store's own decision beside them.

#include <benchmark/benchmark.h>

#include <chrono>

#include "store/lease/deny_cache.h"
#include "store/lease/lease_book.h"
#include "store/memory/memory_store.h"

namespace weir::store::lease {
namespace {

constexpr core::MeterSpec kSpec{
    .rate = {.units = 1'000'000'000, .period = std::chrono::seconds(1), .burst = 1'000'000'000}};

Key128 KeyAt(uint64_t i) {
  const uint64_t hash = (i + 1) * 0x9e3779b97f4a7c15u;
  return {hash ^ (hash >> 29), hash * 0xbf58476d1ce4e5b9u};
}

void SpendFromLease(benchmark::State& state) {
  const LeaseTerms terms = LeaseTerms::Compile({.spec = kSpec}, LeaseKind::kReserved).value();
  LeaseBook book({.holder = 1, .keys = 65536});
  const auto keys = static_cast<uint64_t>(state.range(0));
  for (uint64_t i = 0; i < keys; ++i) {
    for (int call = 0; call < 10; ++call) book.Spend(KeyAt(i), terms, 1, 0);
    const RefillRequest request = *book.Ask(KeyAt(i), terms, 0);
    book.Apply(KeyAt(i),
               {.number = request.number,
                .since_us = 1,
                .units = 1'000'000'000,
                .allotment = 1'000'000'000,
                .lasts_us = 2'000'000,
                .holders = 1},
               0);
  }
  uint64_t i = 0;
  int64_t now_ns = 0, spent = 0;
  for (auto _ : state) {
    const LeaseBook::Answer answer = book.Spend(KeyAt(i++ % keys), terms, 1, now_ns);
    spent += answer.spent;
    now_ns ^= 1000;
  }
  if (spent != state.iterations()) state.SkipWithError("ran dry");
}
BENCHMARK(SpendFromLease)->Arg(1)->Arg(1000)->Arg(20'000);

void DecideInMemory(benchmark::State& state) {
  MemoryStore store;
  const core::Meter* meter = store.Intern(kSpec).value();
  const auto keys = static_cast<uint64_t>(state.range(0));
  uint64_t i = 0;
  int64_t now_ns = 1'000'000'000, allowed = 0;
  for (auto _ : state) {
    const Charge charge{.meter = meter, .key = KeyAt(i++ % keys)};
    Outcome outcome;
    allowed += store.Decide({&charge, 1}, {&outcome, 1}, {.mono_ns = now_ns}, Mode::kCharge);
    now_ns += 1000;
  }
  if (allowed != state.iterations()) state.SkipWithError("denied");
}
BENCHMARK(DecideInMemory)->Arg(1)->Arg(1000)->Arg(20'000);

void DenyFromCache(benchmark::State& state) {
  DenyCache cache({.slots = 65536});
  const auto keys = static_cast<uint64_t>(state.range(0));
  for (uint64_t i = 0; i < keys; ++i) cache.Put(KeyAt(i), 1, 0, 1'000'000'000, false);
  uint64_t i = 0;
  int64_t denied = 0;
  for (auto _ : state) denied += cache.Find(KeyAt(i++ % keys), 1, 1000).has_value();
  benchmark::DoNotOptimize(denied);
}
BENCHMARK(DenyFromCache)->Arg(1)->Arg(1000)->Arg(20'000);

}  // namespace
}  // namespace weir::store::lease

BENCHMARK_MAIN();
