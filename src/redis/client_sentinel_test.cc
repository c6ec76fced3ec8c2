// The client against a master with a replica under three Sentinels.
#include <gtest/gtest.h>

#include <string>

#include "redis/client_world_test.h"
#include "testing/redis_sentinels.h"

namespace weir::redis {
namespace {

using weir::testing::RedisSentinels;

// What 100 calls a second meet when the master changes.
struct Outage {
  int64_t since_ns = 0;
  int64_t first_ok_ns = 0;  // At another master.
  int failed = 0;
  int failed_after = 0;  // After the first success.
  uint64_t masters_before = 0;
};

Task<void> Probe(ClientWorld& w, Client& client, Outage& outage, int& under_way) {
  ++under_way;
  Result<resp::Value> reply = co_await w.Add(client, "k", 1, 50 * kMs);
  --under_way;
  if (!reply) {
    ++outage.failed;
    if (outage.first_ok_ns > 0) ++outage.failed_after;
    const bool by_kind = FaultOf(reply).code == ErrorCode::kUnavailable ||
                         FaultOf(reply).code == ErrorCode::kDeadlineExceeded;
    EXPECT_TRUE(by_kind) << FaultOf(reply).message;
  } else if (client.stats().topology_changes > outage.masters_before && outage.first_ok_ns == 0) {
    outage.first_ok_ns = w.loop().now_ns();
  }
}

Task<Outage> Watch(ClientWorld& w, Client& client, int64_t since_ns) {
  Outage outage{.since_ns = since_ns, .masters_before = client.stats().topology_changes};
  int under_way = 0;
  while (w.loop().now_ns() < since_ns + 10 * kSecond) {
    const bool over = outage.first_ok_ns > 0 && w.loop().now_ns() > outage.first_ok_ns + 300 * kMs;
    if (over) break;
    w.loop().Spawn(Probe(w, client, outage, under_way));
    co_await w.loop().SleepFor(10 * kMs);
    EXPECT_LE(client.stats().connections, 4);  // Two for the old master, two for the new one.
  }
  while (under_way > 0) co_await w.loop().SleepFor(kMs);
  co_return outage;
}

// A failover on purpose under 100 calls a second, then the new master shut down: calls pass again
// within five seconds each time, and stay so.
TEST(SentinelClient, Case78_FollowsTheMasterWithoutARestart) {
  RedisSentinels sentinels;
  ClientWorld world;
  world.Run<RedisSentinels>(
      [](ClientWorld& w, RedisSentinels& s) -> Task<void> {
        auto client = w.Connect(s.url());
        auto warm = co_await w.Add(*client, "k", 1);
        EXPECT_TRUE(warm.has_value()) << FaultOf(warm).message;
        EXPECT_EQ(client->stats().topology_changes, 1u);
        s.FailOver();
        const Outage first = co_await Watch(w, *client, w.loop().now_ns());
        EXPECT_GT(first.first_ok_ns, 0) << client->last_fault();
        EXPECT_LT(first.first_ok_ns - first.since_ns, 5 * kSecond);
        EXPECT_EQ(first.failed_after, 0) << "a connection to the old master stayed";
        EXPECT_EQ(client->stats().topology_changes, 2u);
        EXPECT_EQ(s.server(1).Info("replication", "role"), "master");

        // The Sentinels would get round to it in ten seconds.
        s.server(0).Console().Call({"REPLICAOF", "127.0.0.1", s.server(1).port_text()});
        while (s.server(0).Info("replication", "master_link_status") != "up") {
          co_await w.loop().SleepFor(20 * kMs);
        }
        s.server(1).Kill(SIGTERM);
        const Outage second = co_await Watch(w, *client, w.loop().clock().MonotonicNs());
        EXPECT_GT(second.first_ok_ns, 0) << client->last_fault();
        EXPECT_LT(second.first_ok_ns - second.since_ns, 5 * kSecond);
        EXPECT_EQ(second.failed_after, 0);
        EXPECT_EQ(s.server(0).Info("replication", "role"), "master");
      },
      sentinels, 60 * kSecond);
}

TEST(SentinelClient, OneSentinelIsEnoughAndTheOthersAreLearnt) {
  RedisSentinels sentinels("valkey-server");
  ClientWorld world;
  world.Run<RedisSentinels>(
      [](ClientWorld& w, RedisSentinels& s) -> Task<void> {
        const std::string one = "127.0.0.1:" + s.sentinel(2).port_text();
        auto client = w.Connect("redis+sentinel://127.0.0.1:1," + one + "/mymaster/2");
        auto reply = co_await w.Add(*client, "k", 1);
        EXPECT_TRUE(reply.has_value()) << FaultOf(reply).message;
        // The one that was named goes; a failover that the others make is found.
        s.sentinel(2).Kill();
        s.server(0).Kill();
        const Outage outage = co_await Watch(w, *client, w.loop().now_ns());
        EXPECT_GT(outage.first_ok_ns, 0) << client->last_fault();

        auto unknown =
            w.Connect("redis+sentinel://127.0.0.1:" + s.sentinel(0).port_text() + "/nosuchmaster");
        auto fault = co_await w.Add(*unknown, "k", 1, 300 * kMs);
        EXPECT_EQ(FaultOf(fault).code, ErrorCode::kDeadlineExceeded);
        EXPECT_NE(FaultOf(fault).message.find("knows no master of the name nosuchmaster"),
                  std::string::npos)
            << FaultOf(fault).message;
      },
      sentinels, 60 * kSecond);
}

}  // namespace
}  // namespace weir::redis
