#include "shared_store/node_count.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>

#include "net/resolver.h"
#include "redis/client.h"
#include "testing/loop_fixture.h"
#include "testing/redis_server.h"

namespace weir::shared_store {
namespace {

constexpr int64_t kBeatNs = 100'000'000;
constexpr int64_t kPollNs = 1'000'000;

// A node as its store sees it.
struct Node {
  Node(net::EventLoop& loop, net::Resolver& resolver, const std::string& url, uint64_t id,
       int64_t beat_ns)
      : client(redis::Client::Create(loop, resolver, redis::ParseUrl(url).value())) {
    state.id = id;
    counter = std::make_unique<NodeCounter>(NodeCounter::Options{
        .loop = &loop, .client = client.get(), .node = &state, .beat_ns = beat_ns});
    counter->Start();
  }
  int64_t count() const { return state.nodes.load(); }

  NodeState state;
  std::unique_ptr<redis::Client> client;
  std::unique_ptr<NodeCounter> counter;
};

class NodeCounterTest : public ::testing::TestWithParam<const char*> {
 protected:
  NodeCounterTest() : server_({.program = GetParam()}), console_(server_.Console()) {}

  net::EventLoop& loop() { return fixture_.loop(); }
  std::unique_ptr<Node> StartNode(uint64_t id, int64_t beat_ns = kBeatNs) {
    return std::make_unique<Node>(loop(), resolver_, server_.url(), id, beat_ns);
  }
  // A heartbeat of nodes that the test speaks for.
  void Announce(std::initializer_list<uint64_t> ids) {
    const resp::Value time = console_.Call({"TIME"});
    std::string us = time.items[1].text;
    us.insert(0, 6 - us.size(), '0');
    for (const uint64_t id : ids)
      console_.Call({"ZADD", "weir:1:nodes", time.items[0].text + us, std::to_string(id)});
  }
  void Forget(std::initializer_list<uint64_t> ids) {
    for (const uint64_t id : ids) console_.Call({"ZREM", "weir:1:nodes", std::to_string(id)});
  }
  bool IsListed(uint64_t id) {
    return console_.Call({"ZSCORE", "weir:1:nodes", std::to_string(id)}).type != resp::Type::kNull;
  }
  // How many heartbeats the store has answered.
  int64_t Beats() {
    const std::string calls = server_.Info("commandstats", "cmdstat_zcard");  // calls=7,usec=…
    return calls.empty() ? 0 : std::stoll(calls.substr(calls.find('=') + 1));
  }
  template <typename Holds>
  Task<void> Until(Holds holds) {
    while (!holds()) co_await loop().SleepFor(kPollNs);
  }

  net::Resolver resolver_;
  testing::RedisServer server_;
  testing::RedisConsole console_;
  testing::LoopFixture fixture_;
};

INSTANTIATE_TEST_SUITE_P(
    Servers, NodeCounterTest, ::testing::Values("redis-server", "valkey-server"),
    [](const auto& info) {
      return std::string(info.param).substr(0, std::string(info.param).find('-'));
    });

TEST_P(NodeCounterTest, NodesCountEachOther) {
  auto first = StartNode(1), second = StartNode(2);
  const auto scenario = [&]() -> Task<void> {
    co_await Until([&] { return first->count() == 2 && second->count() == 2; });
  };
  fixture_.RunTask(scenario());
}

TEST_P(NodeCounterTest, NodesThatStartTogetherSoonKnowOfEachOther) {
  constexpr int64_t kLongBeatNs = 8'000'000'000;
  auto first = StartNode(1, kLongBeatNs), second = StartNode(2, kLongBeatNs);
  const int64_t began_ns = loop().now_ns();
  const auto scenario = [&]() -> Task<void> {
    co_await Until([&] { return first->count() == 2 && second->count() == 2; });
    EXPECT_LT(loop().now_ns() - began_ns, kLongBeatNs / 2);
  };
  fixture_.RunTask(scenario());
}

TEST_P(NodeCounterTest, ANodeThatWasSilentForFourHeartbeatsIsForgotten) {
  Announce({7});
  auto node = StartNode(1);
  const auto scenario = [&]() -> Task<void> {
    co_await Until([&] { return node->count() == 2; });
    co_await Until([&] { return !IsListed(7); });
    EXPECT_EQ(node->count(), 2);  // The answers before it still count.
    co_await Until([&] { return node->count() == 1; });
  };
  fixture_.RunTask(scenario());
}

TEST_P(NodeCounterTest, OneHeartbeatThatIsLostRaisesNobodysShare) {
  Announce({7, 8});
  auto node = StartNode(1);
  const auto scenario = [&]() -> Task<void> {
    co_await Until([&] { return node->count() == 3; });
    Forget({7, 8});
    for (const int64_t until = Beats() + 2; Beats() < until;) {
      EXPECT_EQ(node->count(), 3);
      co_await loop().SleepFor(kPollNs);
    }
    Announce({7, 8});  // Back within four answers.
    for (const int64_t until = Beats() + 4; Beats() < until;) {
      Announce({7, 8});
      EXPECT_EQ(node->count(), 3);
      co_await loop().SleepFor(kPollNs);
    }
  };
  fixture_.RunTask(scenario());
}

TEST_P(NodeCounterTest, FourLowAnswersAreBelieved) {
  Announce({7, 8});
  auto node = StartNode(1);
  const auto scenario = [&]() -> Task<void> {
    co_await Until([&] { return node->count() == 3; });
    Forget({7, 8});
    const int64_t before = Beats();
    co_await Until([&] { return node->count() == 1; });
    EXPECT_GE(Beats() - before, 4);
  };
  fixture_.RunTask(scenario());
}

TEST_P(NodeCounterTest, ANodeThatLeavesIsGoneAndStaysAway) {
  auto node = StartNode(1);
  const auto scenario = [&]() -> Task<void> {
    co_await Until([&] { return IsListed(1); });
    node->counter->Leave();
    co_await Until([&] { return !IsListed(1); });
    const int64_t beats = Beats();
    co_await loop().SleepFor(3 * kBeatNs);
    EXPECT_EQ(Beats(), beats);
    EXPECT_FALSE(IsListed(1));
  };
  fixture_.RunTask(scenario());
}

TEST_P(NodeCounterTest, TheLastCountStandsWhileTheStoreIsAway) {
  Announce({7});
  auto node = StartNode(1);
  const auto scenario = [&]() -> Task<void> {
    co_await Until([&] { return node->count() == 2; });
    server_.Kill();
    co_await loop().SleepFor(6 * kBeatNs);
    EXPECT_EQ(node->count(), 2);
  };
  fixture_.RunTask(scenario());
}

}  // namespace
}  // namespace weir::shared_store
