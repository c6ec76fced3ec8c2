#include "store/lease/deny_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/step.h"

namespace weir::store::lease {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr Key128 kKey{1, 2};

// How long the denial that is found has to go.
std::optional<int64_t> Wait(const DenyCache& cache, Key128 key, int64_t cost, int64_t now_ns) {
  const auto denial = cache.Find(key, cost, now_ns);
  if (!denial) return std::nullopt;
  return denial->wait_ns;
}

TEST(DenyCache, HoldsForEveryCostAsLargeUntilSendTimePlusWait) {
  DenyCache cache({.slots = 16});
  cache.Put(kKey, 5, /*sent_ns=*/100 * kMs, /*retry_after_ns=*/40 * kMs, false);
  EXPECT_EQ(Wait(cache, kKey, 5, 110 * kMs), 30 * kMs);
  EXPECT_EQ(Wait(cache, kKey, 9, 110 * kMs), 30 * kMs);
  EXPECT_EQ(Wait(cache, kKey, 4, 110 * kMs), std::nullopt);  // Blind to cost it would deny this.
  EXPECT_EQ(Wait(cache, kKey, 0, 110 * kMs), std::nullopt);
  EXPECT_EQ(Wait(cache, kKey, 5, 140 * kMs - 1), 1);
  EXPECT_EQ(Wait(cache, kKey, 5, 140 * kMs), std::nullopt);
  EXPECT_EQ(Wait(cache, {1, 3}, 5, 110 * kMs), std::nullopt);
  EXPECT_EQ(Wait(cache, {2, 2}, 5, 110 * kMs), std::nullopt);
}

TEST(DenyCache, KeepsTheDenialThatDeniesMore) {
  DenyCache cache({.slots = 16});
  cache.Put(kKey, 5, 0, 40 * kMs, false);
  cache.Put(kKey, 3, 0, 20 * kMs, false);  // Denies more, for shorter.
  EXPECT_EQ(Wait(cache, kKey, 3, 0), 20 * kMs);
  cache.Put(kKey, 7, 0, 90 * kMs, false);  // Says less of smaller costs: the first stays.
  EXPECT_EQ(Wait(cache, kKey, 3, 0), 20 * kMs);
  cache.Put(kKey, 3, 10 * kMs, 15 * kMs, false);
  EXPECT_EQ(Wait(cache, kKey, 3, 10 * kMs), 15 * kMs);
  cache.Put(kKey, 7, 30 * kMs, 90 * kMs, false);  // The first has run out.
  EXPECT_EQ(Wait(cache, kKey, 3, 30 * kMs), std::nullopt);
  EXPECT_EQ(Wait(cache, kKey, 7, 30 * kMs), 90 * kMs);
}

TEST(DenyCache, IsShortWhereUnitsMayComeBackOutOfTurn) {
  DenyCache cache({.slots = 16});
  cache.Put(kKey, 1, 0, 60'000 * kMs, /*reservations=*/true);
  // Believed for a tenth of a second, and announced as the store said it.
  EXPECT_EQ(Wait(cache, kKey, 1, 100 * kMs - 1), 59'900 * kMs + 1);
  EXPECT_EQ(Wait(cache, kKey, 1, 100 * kMs), std::nullopt);
  cache.Put(kKey, 1, 0, 60'000 * kMs, /*reservations=*/false);  // At most a second otherwise.
  EXPECT_EQ(Wait(cache, kKey, 1, 0), 60'000 * kMs);
  EXPECT_EQ(Wait(cache, kKey, 1, 1000 * kMs), std::nullopt);
  cache.Put({7, 7}, 1, 0, core::kNever, false);
  EXPECT_EQ(Wait(cache, {7, 7}, 1, 999 * kMs), core::kNever);
  EXPECT_EQ(Wait(cache, {7, 7}, 1, 1000 * kMs), std::nullopt);
  EXPECT_EQ(cache.Find({7, 7}, 5, 0)->cost, 1);
}

TEST(DenyCache, ForgetsWhatIsDropped) {
  DenyCache cache({.slots = 16});
  cache.Put(kKey, 1, 0, 40 * kMs, false);
  cache.Put({1, 6}, 1, 0, 40 * kMs, false);
  cache.Drop(kKey);
  EXPECT_EQ(Wait(cache, kKey, 1, 0), std::nullopt);
  EXPECT_EQ(Wait(cache, {1, 6}, 1, 0), 40 * kMs);
  cache.DropAll();
  EXPECT_EQ(Wait(cache, {1, 6}, 1, 0), std::nullopt);
  cache.Put({1, 6}, 1, 0, 30 * kMs, false);
  EXPECT_EQ(Wait(cache, {1, 6}, 1, 0), 30 * kMs);
}

TEST(DenyCache, WhatIsNoDenialIsNotKept) {
  DenyCache cache({.slots = 16});
  cache.Put(kKey, 1, 0, 0, false);
  cache.Put(kKey, 0, 0, 40 * kMs, false);
  EXPECT_EQ(Wait(cache, kKey, 1, 0), std::nullopt);
}

TEST(DenyCache, TheEntryOfTheSetThatEndsFirstGivesWay) {
  DenyCache cache({.slots = 4});
  for (uint64_t i = 0; i < 4; ++i) {
    cache.Put({i, 0}, 1, 0, static_cast<int64_t>(10 + (i + 2) % 4) * kMs, false);
  }
  cache.Put({9, 0}, 1, 0, 50 * kMs, false);  // Takes the place of key 2, which ends at 10 ms.
  EXPECT_EQ(Wait(cache, {2, 0}, 1, 0), std::nullopt);
  EXPECT_EQ(Wait(cache, {3, 0}, 1, 0), 11 * kMs);
  EXPECT_EQ(Wait(cache, {0, 0}, 1, 0), 12 * kMs);
  EXPECT_EQ(Wait(cache, {1, 0}, 1, 0), 13 * kMs);
  EXPECT_EQ(Wait(cache, {9, 0}, 1, 0), 50 * kMs);
}

// Whatever is put in whatever order: an answer is always backed by a denial that was given.
TEST(DenyCache, NeverDeniesWhatNoDenialCovers) {
  std::mt19937_64 random(7);
  DenyCache cache({.slots = 8});
  std::map<uint64_t, std::vector<std::pair<int64_t, int64_t>>> given;  // Cost, until.
  int64_t now_ns = 0, found = 0;
  for (int i = 0; i < 200'000; ++i) {
    now_ns += static_cast<int64_t>(random() % 3);
    const uint64_t key = random() % 12;
    const int64_t cost = 1 + static_cast<int64_t>(random() % 6);
    if (random() % 8 == 0) {
      const int64_t wait_ns = static_cast<int64_t>(random() % 50);
      cache.Put({key, key}, cost, now_ns, wait_ns, false);
      given[key].push_back({cost, now_ns + wait_ns});
      continue;
    }
    const auto wait_ns = Wait(cache, {key, key}, cost, now_ns);
    if (!wait_ns) continue;
    ++found;
    bool covered = false;
    for (const auto& [least, until_ns] : given[key]) {
      covered |= cost >= least && now_ns + *wait_ns <= until_ns;
    }
    ASSERT_TRUE(covered) << "call " << i;
    if (given[key].size() > 200) given[key].erase(given[key].begin(), given[key].begin() + 100);
  }
  EXPECT_GT(found, 10'000);
}

TEST(DenyCache, Case41_ADenialUnderOneRateSaysNothingOfAnother) {
  DenyCache cache({});
  const Key128 key{1, 2};
  cache.Put(key, 1, 0, 1000, false, {.remaining = 0, .reset_after_ns = 0, .rate = 7});
  EXPECT_TRUE(cache.Find(key, 1, 0, 7));
  EXPECT_FALSE(cache.Find(key, 1, 0, 8));
  cache.Put(key, 2, 0, 1000, false, {.remaining = 1, .reset_after_ns = 0, .rate = 8});
  EXPECT_FALSE(cache.Find(key, 2, 0, 7));
  EXPECT_TRUE(cache.Find(key, 2, 0, 8));
  cache.Drop(key);
  EXPECT_FALSE(cache.Find(key, 2, 0, 8));
}

}  // namespace
}  // namespace weir::store::lease
