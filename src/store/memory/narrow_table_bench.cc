// A keyed decision: hash a 24-byte key, find its counter, charge it. Time is passed in. Beside it,
// the same token bucket in 64 mutex shards of boost::unordered_flat_map, and in the form of the
// tutorials: one mutex around an unordered_map of strings. Keys are drawn uniformly, all of them
// present before the clock starts.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <chrono>
#include <fstream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/memory/memory_store.h"

namespace weir::store {
namespace {

constexpr core::MeterSpec Spec() {
  return {.algorithm = Algorithm::kTokenBucket,
          .rate = {.units = 1000, .period = std::chrono::seconds(1), .burst = 1'000'000}};
}

// 24 bytes, such as a prefix and an id.
struct KeyText {
  uint64_t words[3];
  explicit KeyText(uint64_t id) : words{0x6b3a746e65696c63u, id * 0x9e3779b97f4a7c15u, id} {}
  std::string_view view() const { return {reinterpret_cast<const char*>(words), sizeof(words)}; }
};

// Keys drawn uniformly from [first, first + count), made before the clock starts and read one after
// the other, as bytes that a socket brought: a key written just before it is hashed would stall the
// hash's wide loads on the store buffer, and so measure the harness.
class Requests {
 public:
  Requests(uint64_t first, uint64_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<uint64_t> id(first, first + count - 1);
    keys_.reserve(kRequests);
    for (size_t i = 0; i < kRequests; ++i) keys_.emplace_back(id(random));
    next_ = keys_.data();
    end_ = next_ + kRequests;
  }
  std::string_view Next() {
    if (next_ == end_) next_ -= kRequests;
    return (next_++)->view();
  }

 private:
  static constexpr size_t kRequests = size_t{1} << 21;
  std::vector<KeyText> keys_;
  const KeyText* next_;
  const KeyText* end_;
};

class WeirTable {
 public:
  explicit WeirTable(int64_t keys)
      : store_({.max_keys = keys}),
        meter_(*store_.Intern(Spec())),
        limit_(hasher_.Begin("per-client")) {}
  base::Key128 KeyOf(std::string_view key) const {
    return base::KeyHasher::State(limit_).Add(key).Finish();
  }
  Charge MakeCharge(std::string_view key) const { return {.meter = meter_, .key = KeyOf(key)}; }
  bool Decide(std::string_view key, int64_t now_ns) {
    return store_.Allow(*meter_, KeyOf(key), 1, {.mono_ns = now_ns});
  }
  bool Decide(const Charge& charge, int64_t now_ns) {
    Outcome outcome;
    return store_.Decide({&charge, 1}, {&outcome, 1}, {.mono_ns = now_ns}, Mode::kCharge);
  }
  void Prefetch(const Charge& charge) const { store_.Prefetch(charge); }

 private:
  base::KeyHasher hasher_{42};
  MemoryStore store_;
  const core::Meter* meter_;
  base::KeyHasher::State limit_;
};

class ShardedFlatMap {
 public:
  explicit ShardedFlatMap(int64_t keys) : bucket_(*core::TickBucket::Fit(Spec().rate)) {
    for (Shard& shard : shards_) shard.map.reserve(static_cast<size_t>(keys) / shards_.size());
  }
  bool Decide(std::string_view key, int64_t now_ns) {
    const base::Key128 hash = base::KeyHasher::State(limit_).Add(key).Finish();
    Shard& shard = shards_[hash.hi % shards_.size()];
    const std::scoped_lock lock(shard.mutex);
    return bucket_.Charge(&shard.map[hash], 1, now_ns).allowed;
  }

 private:
  struct Hash {
    using is_avalanching = void;
    size_t operator()(const base::Key128& key) const { return key.lo; }
  };
  struct alignas(64) Shard {
    std::mutex mutex;
    boost::unordered_flat_map<base::Key128, int64_t, Hash> map;
  };
  base::KeyHasher hasher_{42};
  base::KeyHasher::State limit_ = hasher_.Begin("per-client");
  core::TickBucket bucket_;
  std::array<Shard, 64> shards_;
};

class TutorialMap {
 public:
  explicit TutorialMap(int64_t keys) : bucket_(*core::TickBucket::Fit(Spec().rate)) {
    map_.reserve(static_cast<size_t>(keys));
  }
  bool Decide(std::string_view key, int64_t now_ns) {
    const std::scoped_lock lock(mutex_);
    return bucket_.Charge(&map_[std::string(key)], 1, now_ns).allowed;
  }

 private:
  core::TickBucket bucket_;
  std::mutex mutex_;
  std::unordered_map<std::string, int64_t> map_;
};

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

// One limiter per benchmark, shared by its threads and filled before they start.
template <typename Limiter>
struct Fixture {
  static inline std::unique_ptr<Limiter> limiter;
  static inline int64_t bytes = 0;
  static void SetUp(const benchmark::State& state) {
    const int64_t before = ResidentBytes();
    limiter = std::make_unique<Limiter>(state.range(0));
    for (int64_t id = 0; id < state.range(0); ++id) {
      limiter->Decide(KeyText(static_cast<uint64_t>(id)).view(), 1);
    }
    bytes = ResidentBytes() - before;
  }
  static void TearDown(const benchmark::State&) { limiter.reset(); }
};

// Threads draw from disjoint parts of the keys.
template <typename Limiter>
void BM_Decide(benchmark::State& state) {
  Limiter& limiter = *Fixture<Limiter>::limiter;
  const auto part = static_cast<uint64_t>(state.range(0) / state.threads());
  const uint64_t first = part * static_cast<uint64_t>(state.thread_index());
  Requests requests(first, part, static_cast<uint64_t>(state.thread_index()));
  int64_t now_ns = 2;
  for (auto _ : state) {
    now_ns += 100;
    benchmark::DoNotOptimize(limiter.Decide(requests.Next(), now_ns));
  }
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) {
    state.counters["bytes_per_key"] =
        static_cast<double>(Fixture<Limiter>::bytes) / static_cast<double>(state.range(0));
  }
}

// With the report: what is left, when the quota is full again, when to retry.
void BM_DecideWithReport(benchmark::State& state) {
  WeirTable& table = *Fixture<WeirTable>::limiter;
  Requests requests(0, static_cast<uint64_t>(state.range(0)), 7);
  int64_t now_ns = 2;
  for (auto _ : state) {
    now_ns += 100;
    benchmark::DoNotOptimize(table.Decide(table.MakeCharge(requests.Next()), now_ns));
  }
  state.SetItemsProcessed(state.iterations());
}

// A batch at hand: load the lines of sixteen keys, then decide them.
void BM_DecideBatch16(benchmark::State& state) {
  WeirTable& table = *Fixture<WeirTable>::limiter;
  Requests requests(0, static_cast<uint64_t>(state.range(0)), 7);
  int64_t now_ns = 2;
  std::array<Charge, 16> batch;
  for (auto _ : state) {
    now_ns += 1600;
    for (Charge& charge : batch) {
      charge = table.MakeCharge(requests.Next());
      table.Prefetch(charge);
    }
    for (const Charge& charge : batch) benchmark::DoNotOptimize(table.Decide(charge, now_ns));
  }
  state.SetItemsProcessed(state.iterations() * 16);
}

// What a decision costs in the harness itself: to fetch the key, and to hash it.
void BM_KeyAndHash(benchmark::State& state) {
  const base::KeyHasher hasher(42);
  const base::KeyHasher::State limit = hasher.Begin("per-client");
  Requests requests(0, 1000, 7);
  for (auto _ : state) {
    benchmark::DoNotOptimize(base::KeyHasher::State(limit).Add(requests.Next()).Finish());
  }
}
BENCHMARK(BM_KeyAndHash);

void BM_Hash24(benchmark::State& state) {
  const base::KeyHasher hasher(42);
  const base::KeyHasher::State limit = hasher.Begin("per-client");
  KeyText text(77);
  for (auto _ : state) {
    benchmark::DoNotOptimize(text);
    benchmark::DoNotOptimize(base::KeyHasher::State(limit).Add(text.view()).Finish());
  }
}
BENCHMARK(BM_Hash24);

#define WEIR_DECIDE(limiter)                 \
  BENCHMARK(BM_Decide<limiter>)              \
      ->Setup(Fixture<limiter>::SetUp)       \
      ->Teardown(Fixture<limiter>::TearDown) \
      ->ArgName("keys")                      \
      ->Arg(1'000)                           \
      ->Arg(1'000'000)                       \
      ->Arg(10'000'000)                      \
      ->Threads(1)                           \
      ->Threads(2)                           \
      ->UseRealTime()
WEIR_DECIDE(WeirTable);
WEIR_DECIDE(ShardedFlatMap);
BENCHMARK(BM_DecideWithReport)
    ->Setup(Fixture<WeirTable>::SetUp)
    ->Teardown(Fixture<WeirTable>::TearDown)
    ->ArgName("keys")
    ->Arg(1'000)
    ->Arg(10'000'000);
BENCHMARK(BM_DecideBatch16)
    ->Setup(Fixture<WeirTable>::SetUp)
    ->Teardown(Fixture<WeirTable>::TearDown)
    ->ArgName("keys")
    ->Arg(1'000)
    ->Arg(1'000'000)
    ->Arg(10'000'000);
BENCHMARK(BM_Decide<TutorialMap>)
    ->Setup(Fixture<TutorialMap>::SetUp)
    ->Teardown(Fixture<TutorialMap>::TearDown)
    ->ArgName("keys")
    ->Arg(1'000)
    ->Arg(1'000'000)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

}  // namespace
}  // namespace weir::store

BENCHMARK_MAIN();
