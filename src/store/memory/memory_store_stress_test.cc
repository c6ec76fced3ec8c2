// Several threads on the same keys, in tables so small that entries are made, replaced and carried
// over all the time. Built to run under ThreadSanitizer too.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "store/memory/memory_store.h"

namespace weir::store {
namespace {

constexpr int kThreads = 4;
constexpr int64_t kSec = 1'000'000'000;

core::MeterSpec Bucket(int64_t units) {
  return {.algorithm = Algorithm::kTokenBucket,
          .rate = {.units = units, .period = std::chrono::hours(1), .burst = units}};
}

// Keys as a hasher would give them.
Key128 KeyOf(uint64_t number) { return base::KeyHasher(99).Begin("stress").Add(number).Finish(); }

template <typename Work>
void OnThreads(Work work) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&work, t] { work(t); });
}

bool Take(MemoryStore* store, const core::Meter* meter, Key128 key, core::Now now = {}) {
  const Charge charge{.meter = meter, .key = key};
  Outcome outcome;
  return store->Decide({&charge, 1}, {&outcome, 1}, now, Mode::kCharge);
}

// The first calls of a key race to make its entry: a limit of 1 passes one of them, in every round.
TEST(MemoryStoreStressTest, RacingFirstCallsPassALimitOfOneOnce) {
  constexpr uint64_t kRounds = 4'000;
  MemoryStore store({.max_keys = kRounds});
  const core::Meter* meter = *store.Intern(Bucket(1));
  std::vector<std::atomic<int>> passed(kRounds);
  std::barrier<> start(kThreads);
  OnThreads([&](int) {
    for (uint64_t round = 0; round < kRounds; ++round) {
      const Key128 key = KeyOf(round);
      if (round % 8 == 0) start.arrive_and_wait();
      passed[round] += Take(&store, meter, key);
    }
  });
  for (uint64_t round = 0; round < kRounds; ++round) ASSERT_EQ(passed[round], 1) << round;
  EXPECT_EQ(store.TrackedKeys({}), static_cast<int64_t>(kRounds));
}

// The report-free door and the full one charge the same counters, whoever comes first.
TEST(MemoryStoreStressTest, AllowAndDecideTogetherPassExactlyTheLimit) {
  constexpr uint64_t kKeys = 50;
  constexpr int64_t kLimit = 300;
  constexpr int kCallsPerKey = 200;  // Of each thread: more than the limit altogether.
  // Room for all that is under way at once: a thread that was stopped in the middle of an insertion
  // holds a place.
  MemoryStore store({.max_keys = kKeys + kThreads});
  const core::Meter* meter = *store.Intern(Bucket(kLimit));
  std::vector<std::atomic<int64_t>> passed(kKeys);
  OnThreads([&](int thread) {
    for (int call = 0; call < kCallsPerKey; ++call) {
      for (uint64_t key = 0; key < kKeys; ++key) {
        const bool bare = (call + thread) % 2 == 0;
        passed[key] +=
            bare ? store.Allow(*meter, KeyOf(key), 1, {}) : Take(&store, meter, KeyOf(key));
      }
    }
  });
  for (uint64_t key = 0; key < kKeys; ++key) EXPECT_EQ(passed[key], kLimit) << key;
}

// Exhausted entries stay while others around them are made, expire, and are replaced by newcomers.
TEST(MemoryStoreStressTest, EvictionNeverFreesAnExhaustedKey) {
  constexpr int kKept = 8;
  constexpr int64_t kLimit = 50;
  MemoryStore store({.max_keys = 24});
  const core::Meter* kept = *store.Intern(Bucket(kLimit));
  const core::Meter* flood =
      *store.Intern({.rate = {.units = 1000, .period = std::chrono::seconds(1), .burst = 1000}});
  std::atomic<int64_t> passed[kKept] = {};
  for (uint64_t key = 0; key < kKept; ++key) {
    for (int64_t i = 0; i < kLimit - 1; ++i) passed[key] += Take(&store, kept, KeyOf(key));
    // One unit left; whoever takes it exhausts the key.
    passed[key] += Take(&store, kept, KeyOf(key));
  }
  OnThreads([&](int thread) {
    for (uint64_t i = 0; i < 8'000; ++i) {
      // The clock moves enough for the flood's entries to expire, not for the kept ones to refill.
      const core::Now now{.mono_ns = static_cast<int64_t>(i) * 1000};
      Take(&store, flood, KeyOf(1000 + i * kThreads + static_cast<uint64_t>(thread)), now);
      const uint64_t key = i % kKept;
      passed[key] += Take(&store, kept, KeyOf(key), now);
    }
  });
  for (const auto& count : passed) EXPECT_EQ(count, kLimit);
  EXPECT_LE(store.TakenKeys(), 24);
}

// Threads charge the same keys under rates that change under them: the used units go along, so no
// more passes than the largest of the limits. The third rate lives in the other table.
TEST(MemoryStoreStressTest, ChangingRatesNeverAdmitMore) {
  for (const int64_t third : {300, 99'991}) {
    constexpr uint64_t kKeys = 6;
    MemoryStore store({.max_keys = 64});
    const core::Meter* meters[] = {*store.Intern(Bucket(200)), *store.Intern(Bucket(300)),
                                   *store.Intern(Bucket(third))};
    std::atomic<int64_t> passed[kKeys] = {};
    OnThreads([&](int thread) {
      for (uint64_t i = 0; i < 4'000; ++i) {
        const uint64_t key = i % kKeys;
        const bool other_table = third == 99'991 && i % 64 < 8;
        const core::Meter* meter = other_table ? meters[2] : meters[(i / 100) % 2];
        // Under the large rate only peek: it moves the state and must not lose a unit of it.
        const Charge charge{.meter = meter, .key = KeyOf(key), .cost = other_table ? 0 : 1};
        Outcome outcome;
        store.Decide({&charge, 1}, {&outcome, 1}, {}, Mode::kCharge);
        passed[key] += outcome.charged;
        (void)thread;
      }
    });
    for (const auto& count : passed) EXPECT_EQ(count, 300);
  }
}

// Calls over two limits at once: what passes is charged to both, what is denied to neither.
TEST(MemoryStoreStressTest, Case32_AllOrNothingUnderContention) {
  MemoryStore store({.max_keys = 64});
  const core::Meter* own = *store.Intern(Bucket(150));
  const core::Meter* shared = *store.Intern(Bucket(400));
  const core::Meter* logged =
      *store.Intern({.algorithm = Algorithm::kSlidingWindow,
                     .rate = {.units = 400, .period = std::chrono::hours(1)}});
  for (const core::Meter* group : {shared, logged}) {
    const uint64_t base = group == shared ? 0 : 100;
    std::atomic<int64_t> passed{0};
    std::atomic<int64_t> own_passed[kThreads] = {};
    OnThreads([&](int thread) {
      for (int i = 0; i < 1'000; ++i) {
        const Charge charges[2] = {
            {.meter = own, .key = KeyOf(base + static_cast<uint64_t>(thread))},
            {.meter = group, .key = KeyOf(base + 50)}};
        Outcome outcomes[2];
        if (!store.Decide(charges, outcomes, {}, Mode::kCharge)) continue;
        ++passed;
        ++own_passed[thread];
      }
    });
    // A charge that was undone may have denied another thread for an instant; the calls after it
    // make up for that.
    EXPECT_EQ(passed, 400);
    int64_t used = 0;
    for (int thread = 0; thread < kThreads; ++thread) {
      EXPECT_LE(own_passed[thread], 150);
      const int64_t left =
          store.Peek(*own, KeyOf(base + static_cast<uint64_t>(thread)), 0, {}).remaining;
      EXPECT_EQ(150 - left, own_passed[thread]);
      used += 150 - left;
    }
    EXPECT_EQ(used, 400);
    EXPECT_EQ(store.Peek(*group, KeyOf(base + 50), 0, {}).remaining, 0);
  }
}

// Charges, releases and scans together, for the sanitizer; afterwards everything that was taken is
// back, but for what of the buckets has to wait for time, since the others' calls went on too long
// beside it (refund_total.h).
TEST(MemoryStoreStressTest, ReleasesBringEverythingBack) {
  MemoryStore store({.max_keys = 32});
  const core::Meter* bucket = *store.Intern(Bucket(10));
  const core::Meter* window =
      *store.Intern({.algorithm = Algorithm::kFixedWindow,
                     .rate = {.units = 10, .period = std::chrono::hours(1)}});
  const core::Meter* parallel =
      *store.Intern({.algorithm = Algorithm::kParallel, .rate = {.units = 2}});
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  OnThreads([&](int thread) {
    for (uint64_t i = 0; i < 3'000; ++i) {
      const Charge charges[3] = {{.meter = bucket, .key = KeyOf(i % 3)},
                                 {.meter = window, .key = KeyOf(10 + i % 3)},
                                 {.meter = parallel,
                                  .key = KeyOf(20),
                                  .lease_id = i * kThreads + static_cast<uint64_t>(thread) + 1,
                                  .lease_ttl_ns = kSec}};
      Outcome outcomes[3];
      if (store.Decide(charges, outcomes, {}, Mode::kReserve)) {
        const int now_inside = ++inside;
        int seen = most;
        while (now_inside > seen && !most.compare_exchange_weak(seen, now_inside)) {
        }
        --inside;
        for (int c = 0; c < 3; ++c) {
          const bool back =
              store.Release(*charges[c].meter, charges[c].key, outcomes[c].receipt, 1, {});
          EXPECT_TRUE(back || c == 0);
        }
      }
      if (i % 500 == 0) {
        EXPECT_LE(store.TrackedKeys({}), 32);
      }
    }
  });
  EXPECT_LE(most, 2);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_GE(store.Peek(*bucket, KeyOf(i), 0, {}).remaining, 8) << i;
    EXPECT_EQ(store.Peek(*window, KeyOf(10 + i), 0, {}).remaining, 10) << i;
  }
  EXPECT_EQ(store.Peek(*parallel, KeyOf(20), 0, {}).remaining, 2);
}

// A counter that moves between the tables of a full store keeps its place: newcomers, who would
// take any that comes free, get none, and its units are never forgotten.
TEST(MemoryStoreStressTest, ACounterOnItsWayToTheOtherTableKeepsItsPlace) {
  constexpr int64_t kMaxKeys = 8;
  constexpr int64_t kLimit = 50;
  MemoryStore store({.max_keys = kMaxKeys});
  const core::Meter* packed = *store.Intern(Bucket(kLimit));
  const core::Meter* wide =
      *store.Intern({.rate = {.units = 99'991, .period = std::chrono::hours(1), .burst = kLimit}});
  const core::Meter* newcomer = *store.Intern(Bucket(1));  // Exhausted at once, so never replaced.
  ASSERT_TRUE(packed->packed());
  ASSERT_FALSE(wide->packed());
  const Key128 mover = KeyOf(0);
  for (int64_t i = 0; i < kLimit; ++i) ASSERT_TRUE(Take(&store, packed, mover));
  std::atomic<int64_t> passed{0};
  std::atomic<int64_t> newcomers{0};
  OnThreads([&](int thread) {
    for (uint64_t i = 0; i < 20'000; ++i) {
      if (thread < 2) {
        passed += Take(&store, i % 2 == 0 ? wide : packed, mover);
      } else {
        newcomers += Take(&store, newcomer, KeyOf(1 + 2 * i + static_cast<uint64_t>(thread % 2)));
      }
    }
  });
  EXPECT_EQ(passed, 0);
  EXPECT_EQ(newcomers, kMaxKeys - 1);
  EXPECT_EQ(store.TrackedKeys({}), kMaxKeys);
  EXPECT_EQ(store.TakenKeys(), kMaxKeys);
}

}  // namespace
}  // namespace weir::store
