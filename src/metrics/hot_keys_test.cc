#include "metrics/hot_keys.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

namespace weir::metrics {
namespace {

base::Key128 KeyOf(uint64_t n) { return base::KeyHasher(7).Begin().Add(n).Finish(); }

TEST(HotKeys, TopSumsTheShards) {
  HotKeys hot({.shards = 2});
  for (int i = 0; i < 3; ++i) hot.OnClient(0, KeyOf(1), "key:one", true, /*allowed=*/false);
  for (int i = 0; i < 4; ++i) hot.OnClient(1, KeyOf(1), "key:one", true, /*allowed=*/false);
  for (int i = 0; i < 5; ++i) hot.OnClient(1, KeyOf(2), "bob", false, /*allowed=*/false);
  hot.OnClient(0, KeyOf(3), "key:three", true, /*allowed=*/true);

  const std::vector<TopClient> denied = hot.Top(HotKeys::By::kDenied, 20);
  ASSERT_EQ(denied.size(), 2u);
  EXPECT_EQ(denied[0].client, "key:one");
  EXPECT_TRUE(denied[0].hashed);
  EXPECT_EQ(denied[0].count, 7u);
  EXPECT_EQ(denied[0].error, 0u);
  EXPECT_EQ(denied[1].client, "bob");
  EXPECT_FALSE(denied[1].hashed);
  EXPECT_EQ(denied[1].count, 5u);
  ASSERT_EQ(hot.Top(HotKeys::By::kDenied, 1).size(), 1u);
  ASSERT_EQ(hot.Top(HotKeys::By::kAllowed, 20).size(), 1u);
  EXPECT_EQ(hot.Top(HotKeys::By::kAllowed, 20)[0].client, "key:three");
}

TEST(HotKeys, AClientThatOneShardForgotKeepsItsBound) {
  HotKeys hot({.shards = 2, .clients = 2});
  hot.OnClient(0, KeyOf(1), "a", true, true);  // Pushed out below; its true count is 1 + 10.
  for (int i = 0; i < 4; ++i) hot.OnClient(0, KeyOf(2), "b", true, true);
  for (int i = 0; i < 3; ++i) hot.OnClient(0, KeyOf(3), "c", true, true);
  for (int i = 0; i < 10; ++i) hot.OnClient(1, KeyOf(1), "a", true, true);
  const std::vector<TopClient> top = hot.Top(HotKeys::By::kAllowed, 20);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].client, "a");
  EXPECT_EQ(top[0].count, 14u);  // 10, and at most the 4 of shard 0's least tracked client.
  EXPECT_EQ(top[0].error, 4u);
}

TEST(HotKeys, RatiosShowTheLatestAnswerPerLimitAndClient) {
  HotKeys hot({.shards = 2});
  hot.OnLimit(0, 5, KeyOf(1), "key:one", true, 30, 40);
  hot.OnLimit(0, 5, KeyOf(1), "key:one", true, 10, 40);
  hot.OnLimit(1, 5, KeyOf(1), "key:one", true, 40, 40);  // Fewer calls on this shard.
  hot.OnLimit(0, 6, KeyOf(1), "key:one", true, -3, 40);
  const std::vector<LimitRatio> ratios = hot.Ratios(100);
  ASSERT_EQ(ratios.size(), 2u);
  EXPECT_EQ(ratios[0].limit, 5u);
  EXPECT_EQ(ratios[0].calls, 3u);
  EXPECT_EQ(ratios[0].remaining_ratio, 0.25);
  EXPECT_EQ(ratios[1].limit, 6u);
  EXPECT_EQ(ratios[1].remaining_ratio, 0);
}

TEST(HotKeys, LongNamesAreCut) {
  HotKeys hot({.shards = 1});
  hot.OnClient(0, KeyOf(1), std::string(1000, 'x'), false, true);
  EXPECT_EQ(hot.Top(HotKeys::By::kAllowed, 1)[0].client, std::string(62, 'x'));
}

TEST(HotKeys, AScrapeMayRunBesideTheLoops) {
  HotKeys hot({.shards = 2, .clients = 8});
  std::atomic<bool> done = false;
  std::thread scraper([&] {
    while (!done) {
      for (const TopClient& top : hot.Top(HotKeys::By::kAllowed, 5))
        ASSERT_GE(top.count, top.error);
      ASSERT_LE(hot.Ratios(3).size(), 3u);
    }
  });
  std::thread loops[2];
  for (size_t shard = 0; shard < 2; ++shard) {
    loops[shard] = std::thread([&hot, shard] {
      for (uint64_t i = 0; i < 20'000; ++i) {
        hot.OnClient(shard, KeyOf(i % 100), "c", true, true);
        hot.OnLimit(shard, 1, KeyOf(i % 100), "c", true, 1, 2);
      }
    });
  }
  for (std::thread& loop : loops) loop.join();
  done = true;
  scraper.join();
  uint64_t guaranteed = 0;
  for (const TopClient& top : hot.Top(HotKeys::By::kAllowed, 100))
    guaranteed += top.count - top.error;
  EXPECT_LE(guaranteed, 40'000u);
}

}  // namespace
}  // namespace weir::metrics
