// The client against a Cluster of three masters with a replica each.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "redis/client_world_test.h"
#include "redis/key_slot.h"
#include "testing/redis_cluster.h"

namespace weir::redis {
namespace {

using weir::testing::RedisCluster;
using weir::testing::RedisConsole;

// One Cluster for the whole file: making one takes seconds. Tests leave the slots as they were, and
// the one that kills a master comes last.
class ClusterClient : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { cluster_ = new RedisCluster; }
  static void TearDownTestSuite() {
    delete cluster_;
    cluster_ = nullptr;
  }
  static RedisCluster* cluster_;
  ClientWorld world_;
};

RedisCluster* ClusterClient::cluster_ = nullptr;

std::string Tagged(int user, const std::string& layer) {
  return "weir:1:{" + std::to_string(user) + "}:" + layer;
}

TEST_F(ClusterClient, EachKeyGoesToItsNode) {
  world_.Run<RedisCluster>(
      [](ClientWorld& w, RedisCluster& c) -> Task<void> {
        auto client = w.Connect(c.url());
        Tally tally;
        for (int i = 0; i < 300; ++i) {
          w.loop().Spawn(AddInto(w, *client, "spread" + std::to_string(i), 5 * kSecond, tally));
        }
        co_await Join(w, tally);
        EXPECT_EQ(tally.ok, 300) << First(tally.errors);
        EXPECT_EQ(client->stats().redirects, 0u);
        EXPECT_EQ(client->stats().nodes, 3);
        EXPECT_LE(client->stats().connections, 6);
        EXPECT_EQ(client->GroupOf("{user1000}.following"), KeySlot("user1000"));
        auto anywhere = co_await w.Say(*client, "PING");
        EXPECT_EQ(TextOf(anywhere), "PONG");
        const std::string_view keys[] = {"a", "b"};
        auto crossed =
            co_await client->RunScript(w.add().sha1, w.add().text, keys, {}, w.In(kSecond));
        EXPECT_EQ(FaultOf(crossed).code, ErrorCode::kInvalidArgument);
        EXPECT_NE(FaultOf(crossed).message.find("CROSSSLOT"), std::string::npos);
      },
      *cluster_);
}

TEST_F(ClusterClient, AnyNodeIsADoorAndDeadOnesAreSkipped) {
  world_.Run<RedisCluster>(
      [](ClientWorld& w, RedisCluster& c) -> Task<void> {
        // A replica, and a host where nobody listens.
        auto client =
            w.Connect("redis+cluster://127.0.0.1:1,127.0.0.1:" + c.replica(1).port_text());
        auto reply = co_await w.Add(*client, "door", 1);
        EXPECT_TRUE(reply.has_value()) << FaultOf(reply).message;
        co_await w.loop().SleepFor(50 * kMs);
        EXPECT_EQ(client->stats().nodes, 3);  // The doors are closed again.
        auto none = w.Connect("redis+cluster://127.0.0.1:1");
        auto fault = co_await w.Add(*none, "door", 1, 200 * kMs);
        EXPECT_EQ(FaultOf(fault).code, ErrorCode::kDeadlineExceeded);
        EXPECT_NE(FaultOf(fault).message.find("Connection refused"), std::string::npos)
            << FaultOf(fault).message;
        EXPECT_LT(none->stats().connects, 20u);
      },
      *cluster_);
}

// A slot half way between two masters: ASK for keys that have moved or are new, TRYAGAIN for keys
// of which some have, until the move is over.
TEST_F(ClusterClient, ASlotThatIsBeingMovedIsFollowed) {
  world_.Run<RedisCluster>(
      [](ClientWorld& w, RedisCluster& c) -> Task<void> {
        auto client = w.Connect(c.url());
        const int slot = KeySlot("{move}");
        const int from = RedisCluster::OwnerOf(slot);
        const int to = (from + 1) % RedisCluster::kMasters;
        const std::vector<std::string> keys = {"{move}1", "{move}2", "{move}3", "{move}4"};
        for (const std::string& key : keys) {
          auto warm = co_await w.Add(*client, key, 1);
          EXPECT_TRUE(warm.has_value());
        }
        c.BeginMove(slot, from, to);
        EXPECT_EQ(c.MoveKeys(slot, from, to, 2), 2);
        for (const std::string& key : keys) {
          auto moved = co_await w.Add(*client, key, 1);
          EXPECT_EQ(IntegerOf(moved), 2);
        }
        auto fresh = co_await w.Add(*client, "{move}new", 7);
        EXPECT_EQ(IntegerOf(fresh), 7);
        EXPECT_GE(client->stats().redirects, 3u);
        // Two keys at once, one on each side: no answer before the move is over.
        const Script both("return redis.call('INCR', KEYS[1]) + redis.call('INCR', KEYS[2])");
        std::vector<std::string_view> all(keys.begin(), keys.end());
        auto torn = co_await client->RunScript(both.sha1, both.text, all, {}, w.In(100 * kMs));
        EXPECT_EQ(FaultOf(torn).code, ErrorCode::kUnavailable);
        EXPECT_NE(FaultOf(torn).message.find("TRYAGAIN"), std::string::npos)
            << FaultOf(torn).message;
        while (c.MoveKeys(slot, from, to, 100) > 0) {
        }
        auto whole = co_await client->RunScript(both.sha1, both.text, all, {}, w.In(kSecond));
        EXPECT_EQ(IntegerOf(whole), 6);
        c.FinishMove(slot, from, to);
        const uint64_t before = client->stats().redirects;
        for (int i = 0; i < 3; ++i) {
          auto after = co_await w.Add(*client, "{move}1", 1);
          EXPECT_EQ(IntegerOf(after), 4 + i);
        }
        EXPECT_LE(client->stats().redirects - before, 1u);  // MOVED, once.
        c.MoveSlot(slot, to, from);
        auto back = co_await w.Add(*client, "{move}1", 1);
        EXPECT_EQ(IntegerOf(back), 7);
      },
      *cluster_);
}

struct Reshard {
  RedisCluster& cluster;
  std::vector<int> passed;
  std::vector<int> denied;
  std::vector<Error> errors;
  int under_way = 0;
};

// All four layers of a user's limits in one script, all or nothing.
const Script& FourLayers() {
  static const Script script(
      "for i, key in ipairs(KEYS) do "
      "  if tonumber(redis.call('GET', key) or '0') >= 5 then return 0 end "
      "end "
      "for i, key in ipairs(KEYS) do redis.call('INCR', key) end "
      "return 1");
  return script;
}

Task<void> CheckUser(ClientWorld& w, Client& client, Reshard& scene, int user) {
  ++scene.under_way;
  const std::vector<std::string> keys = {Tagged(user, "address"), Tagged(user, "client"),
                                         Tagged(user, "endpoint"), Tagged(user, "model")};
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  auto reply =
      co_await client.RunScript(FourLayers().sha1, FourLayers().text, views, {}, w.In(5 * kSecond));
  --scene.under_way;
  if (!reply) {
    scene.errors.push_back(reply.error());
  } else {
    ++(reply->integer == 1 ? scene.passed : scene.denied)[static_cast<size_t>(user)];
  }
}

// A thousand users with four layers and a limit of five, six calls each, while slots move: five
// pass and one is denied for each, and nothing of MOVED, ASK or CROSSSLOT is seen outside.
TEST_F(ClusterClient, Case79_SlotsMoveUnderLoadAndEveryUserGetsHisLimit) {
  constexpr int kUsers = 1000;
  Reshard scene{*cluster_, std::vector<int>(kUsers), std::vector<int>(kUsers), {}, 0};
  world_.Run<Reshard>(
      [](ClientWorld& w, Reshard& s) -> Task<void> {
        auto client = w.Connect(s.cluster.url());
        std::vector<int> slots;  // Of some of the users.
        for (int user = 0; user < 24; ++user) {
          slots.push_back(KeySlot(Tagged(user, "client")));
        }
        size_t moved = 0;
        for (int round = 0; round < 6; ++round) {
          for (int user = 0; user < kUsers; ++user) {
            w.loop().Spawn(CheckUser(w, *client, s, user));
            if (user % 40 != 0) continue;
            co_await w.loop().SleepFor(kMs / 2);
            if (moved >= 2 * slots.size()) continue;
            // All of them away, then all of them home again.
            const bool away = moved < slots.size();
            const int slot = slots[moved % slots.size()];
            const int home = RedisCluster::OwnerOf(slot);
            const int guest = (home + 1) % RedisCluster::kMasters;
            s.cluster.BeginMove(slot, away ? home : guest, away ? guest : home);
            co_await w.loop().SleepFor(kMs / 2);
            while (s.cluster.MoveKeys(slot, away ? home : guest, away ? guest : home, 1) > 0) {
              co_await w.loop().SleepFor(kMs / 4);
            }
            s.cluster.FinishMove(slot, away ? home : guest, away ? guest : home);
            ++moved;
          }
        }
        while (s.under_way > 0) co_await w.loop().SleepFor(kMs);
        EXPECT_EQ(moved, 2 * slots.size());
        EXPECT_EQ(s.errors.size(), 0u) << First(s.errors);
        EXPECT_GT(client->stats().redirects, 0u);
        for (int user = 0; user < kUsers; ++user) {
          const size_t at = static_cast<size_t>(user);
          EXPECT_EQ(s.passed[at], 5) << "user " << user;
          EXPECT_EQ(s.denied[at], 1) << "user " << user;
        }
        EXPECT_LE(client->stats().connections, 6);
      },
      scene);
}

// The master of a slot dies: calls for it fail or wait, those for others pass, and its replica's
// promotion is found without help.
TEST_F(ClusterClient, ZReplicasArePromoted) {
  world_.Run<RedisCluster>(
      [](ClientWorld& w, RedisCluster& c) -> Task<void> {
        auto client = w.Connect(c.url());
        std::string lost;
        std::string other;
        for (int i = 0; lost.empty() || other.empty(); ++i) {
          const std::string key = "fail" + std::to_string(i);
          (RedisCluster::OwnerOf(KeySlot(key)) == 2 ? lost : other) = key;
        }
        auto before = co_await w.Add(*client, lost, 41);
        EXPECT_EQ(IntegerOf(before), 41);
        auto sound = co_await w.Add(*client, other, 1);
        EXPECT_TRUE(sound.has_value());
        c.KillMaster(2);
        const int64_t killed_ns = w.loop().now_ns();
        // In a moment the Cluster as a whole stops; until then the other masters serve.
        auto still = co_await w.Add(*client, other, 1, 500 * kMs);
        EXPECT_TRUE(still.has_value()) << FaultOf(still).message;
        Tally tally;
        while (tally.ok == 0 && w.loop().now_ns() < killed_ns + 10 * kSecond) {
          w.loop().Spawn(AddInto(w, *client, lost, 50 * kMs, tally));
          co_await w.loop().SleepFor(10 * kMs);
          EXPECT_LE(client->stats().connections, 8);
        }
        co_await Join(w, tally);
        EXPECT_GT(tally.ok, 0) << First(tally.errors);
        EXPECT_EQ(tally.sums.empty() ? 0 : tally.sums.front(), 42);
        for (const Error& error : tally.errors) {
          EXPECT_TRUE(error.code == ErrorCode::kUnavailable ||
                      error.code == ErrorCode::kDeadlineExceeded)
              << error.message;
        }
      },
      *cluster_);
}

// Valkey speaks the same.
TEST(ValkeyCluster, AnswersAndMovesSlots) {
  RedisCluster cluster("valkey-server");
  ClientWorld world;
  world.Run<RedisCluster>(
      [](ClientWorld& w, RedisCluster& c) -> Task<void> {
        auto client = w.Connect(c.url());
        auto one = co_await w.Add(*client, "k", 1);
        EXPECT_EQ(IntegerOf(one), 1);
        const int slot = KeySlot("k");
        const int from = RedisCluster::OwnerOf(slot);
        c.MoveSlot(slot, from, (from + 1) % RedisCluster::kMasters);
        auto two = co_await w.Add(*client, "k", 1);
        EXPECT_EQ(IntegerOf(two), 2);
        EXPECT_EQ(client->stats().redirects, 1u);
      },
      cluster);
}

}  // namespace
}  // namespace weir::redis
