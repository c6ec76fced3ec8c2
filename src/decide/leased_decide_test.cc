// Leased limits through workers over real servers: bounds, round trips, what is given back when.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "decide/engine.h"
#include "net/resolver.h"
#include "shared_store/redis_store.h"
#include "testing/loop_fixture.h"
#include "testing/redis_server.h"
#include "testing/simulated_engine.h"

namespace weir::decide {
namespace {

using testing::RedisServer;

constexpr int64_t kMs = 1'000'000;

struct Answer {
  bool allowed = false;
  Source source = Source::kMemory;
  int64_t remaining = 0;  // Of the first limit.
  int64_t retry_after_ns = 0;
  std::optional<ReservationId> reservation;
};

// Nodes on one loop, each with a book and connections of its own.
class LeasedDecide : public ::testing::TestWithParam<const char*> {
 public:
  struct Node {
    std::unique_ptr<shared_store::RedisStore> store;
    std::unique_ptr<Worker> worker;
  };

  LeasedDecide() : server_({.program = GetParam()}) {}
  ~LeasedDecide() override {
    for (Node& node : nodes_) node.store->Disconnect();
    loop_.reset();  // And the tasks that wait, before what they use.
  }

  void Start(const std::string& limits, size_t nodes, int64_t timeout_ns = 2'000 * kMs) {
    engine_ =
        Engine::Create(
            {.policy = Load(limits), .clock = &loop_->clock(), .shards = nodes, .shared = true})
            .value();
    for (size_t i = 0; i < nodes; ++i) {
      shared_store::RedisStoreOptions options;
      options.loop = &loop_->loop();
      options.resolver = &resolver_;
      options.memory = &engine_->local_store();
      options.node = &state_;
      options.metrics = &engine_->metrics();
      options.shard = i;
      options.client = redis::ParseUrl(server_.url()).value();
      options.timeout_ns = timeout_ns;
      Node& node = nodes_.emplace_back();
      node.store = std::make_unique<shared_store::RedisStore>(std::move(options));
      node.worker = std::make_unique<Worker>(*engine_, i, node.store.get());
    }
  }
  static std::shared_ptr<const policy::Policy> Load(const std::string& limits) {
    return LoadPolicy(
        "store: {kind: redis, url: 'redis://127.0.0.1'}\n"
        "identity: {secret: 0123456789abcdef}\n"
        "limits: [" +
        limits + "]");
  }
  void Run(Task<void> task) { loop_->RunTask(std::move(task), 60'000 * kMs); }

  core::Now Now() { return engine_->NowAt(loop().now_ns(), loop().wall_ns()); }
  net::EventLoop& loop() { return loop_->loop(); }
  // Lets what came up be sent, and answered if it takes no longer.
  auto Pause(int64_t ns = 1 * kMs) { return loop().SleepFor(ns); }

  Task<Answer> Decide(size_t node, int64_t cost = 1, DecideOptions options = {}) {
    Worker& worker = *nodes_[node].worker;
    policy::Attributes call;
    call.Set(worker.policy().attributes().Find("client").value(), "alice");
    call.Set(worker.policy().attributes().Find("ip").value(), "192.0.2.1");
    const Costs costs = Costs::Requests(cost);
    const DecisionPtr decision = worker.Begin(call, costs, options);
    const auto finished = worker.FinishNow(*decision, Now());
    const Verdict* verdict = nullptr;
    if (finished) {
      verdict = **finished;
    } else {
      const Result<const Verdict*> later = co_await worker.Finish(*decision, Now());
      verdict = *later;
    }
    Answer answer;
    answer.allowed = verdict->allowed;
    answer.source = verdict->source;
    answer.retry_after_ns = verdict->retry_after_ns;
    answer.reservation = verdict->reservation;
    if (!verdict->limits.empty()) answer.remaining = verdict->limits[0].remaining;
    co_return answer;
  }
  // Calls that pass, of so many.
  Task<int> Admitted(size_t node, int calls) {
    int admitted = 0;
    for (int i = 0; i < calls; ++i) {
      const Answer answer = co_await Decide(node);
      admitted += answer.allowed;
    }
    co_return admitted;
  }
  // Calls until one is paid from a lease; how many passed.
  Task<int> WarmUp(size_t node) {
    int admitted = 0;
    for (int i = 0; i < 500; ++i) {
      const Answer answer = co_await Decide(node);
      admitted += answer.allowed;
      if (answer.source == Source::kLease) co_return admitted;
      co_await Pause();
    }
    ADD_FAILURE() << "no lease came";
    co_return admitted;
  }
  Task<int64_t> Remaining(size_t node) {
    DecideOptions options;
    options.peek = true;
    const Answer answer = co_await Decide(node, 0, options);
    co_return answer.remaining;
  }
  // Waits until `node` sees so much left.
  Task<void> ExpectRemaining(size_t node, int64_t expected) {
    int64_t remaining = -1;
    for (int i = 0; i < 500 && remaining != expected; ++i) {
      remaining = co_await Remaining(node);
      co_await Pause(10 * kMs);
    }
    EXPECT_EQ(remaining, expected);
  }
  int64_t CallsOfServer() const {
    const std::string stats = server_.Info("commandstats", "cmdstat_evalsha");
    const size_t at = stats.find("calls=");
    return at == std::string::npos ? 0 : std::atoll(stats.c_str() + at + 6);
  }

  RedisServer server_;
  net::Resolver resolver_;
  shared_store::NodeState state_;
  std::unique_ptr<testing::LoopFixture> loop_ = std::make_unique<testing::LoopFixture>();
  std::unique_ptr<Engine> engine_;
  std::vector<Node> nodes_;
};

constexpr const char* kBucket = "{name: a, per: [client], rate: 1000/day, consistency: leased}";
constexpr const char* kWindow =
    "{name: a, per: [client], rate: 1000/day, algorithm: fixed_window, consistency: leased}";

TEST_P(LeasedDecide, AHotKeyTakesFewRoundTripsAndNoneWaits) {
  Start("{name: a, per: [client], rate: 1000000/s, consistency: leased}", 4);
  Run([](LeasedDecide& test) -> Task<void> {
    for (size_t node = 0; node < 4; ++node) co_await test.WarmUp(node);
    const int64_t before = test.CallsOfServer();
    int from_lease = 0;
    for (int i = 0; i < 10'000; ++i) {
      const Answer answer = co_await test.Decide(static_cast<size_t>(i % 4));
      EXPECT_TRUE(answer.allowed);
      from_lease += answer.source == Source::kLease;
      if (i % 50 == 0) co_await test.Pause();
    }
    EXPECT_LE(test.CallsOfServer() - before, 200);
    EXPECT_GE(from_lease, 9'800);
  }(*this));
}

TEST_P(LeasedDecide, Case81_FourNodesAdmitExactlyAWindow) {
  Start(kWindow, 4);
  Run([](LeasedDecide& test) -> Task<void> {
    int admitted = 0;
    for (int round = 0; round < 100; ++round) {
      for (size_t node = 0; node < 4; ++node) admitted += co_await test.Admitted(node, 20);
      co_await test.Pause(2 * kMs);
    }
    EXPECT_EQ(admitted, 1000);
  }(*this));
}

TEST_P(LeasedDecide, ABucketIsNeverOverAdmittedAndHalfOfItIsReachedAtOnce) {
  Start(kBucket, 4);
  Run([](LeasedDecide& test) -> Task<void> {
    int admitted = 0;
    for (int round = 0; round < 100; ++round) {
      for (size_t node = 0; node < 4; ++node) admitted += co_await test.Admitted(node, 20);
      co_await test.Pause(2 * kMs);
    }
    EXPECT_LE(admitted, 1000);
    EXPECT_GE(admitted, 500);
  }(*this));
}

TEST_P(LeasedDecide, AFewCallsAreDecidedByTheStore) {
  Start(kBucket, 1);
  Run([](LeasedDecide& test) -> Task<void> {
    for (int64_t i = 1; i <= 3; ++i) {
      const Answer answer = co_await test.Decide(0);
      EXPECT_EQ(answer.source, Source::kRedis);
      EXPECT_EQ(answer.remaining, 1000 - i);
    }
    const Answer large = co_await test.Decide(0, 1001);
    EXPECT_FALSE(large.allowed);
    EXPECT_EQ(large.retry_after_ns, core::kNever);
  }(*this));
}

TEST_P(LeasedDecide, WhatIsHeldComesBackWhenTheNodeLeaves) {
  Start(kWindow, 2);
  Run([](LeasedDecide& test) -> Task<void> {
    const int spent = co_await test.WarmUp(0);
    co_await test.nodes_[0].store->GiveBackLeases();
    const int64_t left = co_await test.Remaining(1);
    EXPECT_EQ(left, 1000 - spent);
    // It goes on deciding, by the store.
    const Answer late = co_await test.Decide(0);
    EXPECT_TRUE(late.allowed);
    EXPECT_EQ(late.source, Source::kRedis);
  }(*this));
}

TEST_P(LeasedDecide, AnIdleLeaseComesBackByItself) {
  Start(kWindow, 2);
  Run([](LeasedDecide& test) -> Task<void> {
    const int spent = co_await test.WarmUp(0);
    co_await test.ExpectRemaining(1, 1000 - spent);
  }(*this));
}

TEST_P(LeasedDecide, Case32_ADeniedCallLeavesTheLeaseAsItWas) {
  Start(std::string(kWindow) +
            ", {name: few, per: [ip], rate: 30/day, algorithm: fixed_window, on_failure: closed}",
        2);
  Run([](LeasedDecide& test) -> Task<void> {
    int admitted = 0;
    for (int round = 0; round < 40; ++round) {
      admitted += co_await test.Admitted(0, 3);
      co_await test.Pause(2 * kMs);
    }
    EXPECT_EQ(admitted, 30);
    // No denial of a smaller cost says how long these have to wait, so the store is asked each
    // time.
    for (int64_t cost = 2; cost < 32; ++cost) {
      const Answer denied = co_await test.Decide(0, cost);
      EXPECT_FALSE(denied.allowed);
      EXPECT_EQ(denied.source, Source::kRedis);
    }
    co_await test.nodes_[0].store->GiveBackLeases();
    // A payment that is taken back after the lease was renewed is lost, so never more is left.
    const int64_t left = co_await test.Remaining(1);
    EXPECT_LE(left, 970);
    EXPECT_GE(left, 870);
  }(*this));
}

TEST_P(LeasedDecide, Case85_ReservationsAreSettledOnTheStore) {
  Start(kBucket, 2);
  Run([](LeasedDecide& test) -> Task<void> {
    co_await test.WarmUp(0);
    co_await test.nodes_[0].store->GiveBackLeases();
    const int64_t before = co_await test.Remaining(1);
    DecideOptions options;
    options.reserve_ttl_ns = 60'000 * kMs;
    Worker& worker = *test.nodes_[0].worker;
    const Answer held = co_await test.Decide(0, 100, options);
    EXPECT_EQ(held.source, Source::kRedis);
    EXPECT_EQ(co_await test.Remaining(1), before - 100);
    const Costs forty = Costs::Requests(40);
    co_await worker.SettleShared(*held.reservation, forty, test.Now());
    EXPECT_EQ(co_await test.Remaining(1), before - 40);
    const Answer overrun = co_await test.Decide(0, 10, options);
    const Costs sixty = Costs::Requests(60);
    co_await worker.SettleShared(*overrun.reservation, sixty, test.Now());
    EXPECT_EQ(co_await test.Remaining(1), before - 100);
    const Answer released = co_await test.Decide(0, 50, options);
    co_await worker.ReleaseShared(*released.reservation, test.Now());
    co_await worker.ReleaseShared(*released.reservation, test.Now());
    EXPECT_EQ(co_await test.Remaining(1), before - 100);
  }(*this));
}

TEST_P(LeasedDecide, AResetForgetsTheCounterAndTheLease) {
  Start(kBucket, 1);
  Run([](LeasedDecide& test) -> Task<void> {
    co_await test.WarmUp(0);
    Worker& worker = *test.nodes_[0].worker;
    policy::Attributes call;
    call.Set(policy::kClientAttribute, "alice");
    const Result<void> reset = co_await worker.ResetShared("a", call, test.Now());
    EXPECT_TRUE(reset.has_value());
    EXPECT_EQ(co_await test.Remaining(0), 1000);
    const std::vector<LimitState> states = co_await worker.StateShared(call, test.Now());
    EXPECT_EQ(states[0].step.remaining, 1000);
  }(*this));
}

TEST_P(LeasedDecide, Case42_AReloadGivesLeasesBackAndCarriesWhatWasUsed) {
  Start(kWindow, 2);
  Run([](LeasedDecide& test) -> Task<void> {
    const int spent = co_await test.WarmUp(0);
    std::string twice(kWindow);
    twice.replace(twice.find("1000"), 4, "2000");
    EXPECT_TRUE(test.engine_->Reload(Load(twice)).has_value());
    test.nodes_[0].worker->policy();
    test.nodes_[1].worker->policy();
    co_await test.Pause(100 * kMs);  // Long before an idle lease would come back by itself.
    const int64_t left = co_await test.Remaining(1);
    EXPECT_EQ(left, 2000 - spent);
    int admitted = spent;
    for (int round = 0; round < 150; ++round) {
      for (size_t node = 0; node < 2; ++node) admitted += co_await test.Admitted(node, 20);
      co_await test.Pause(2 * kMs);
    }
    EXPECT_EQ(admitted, 2000);
  }(*this));
}

TEST_P(LeasedDecide, Case80_WithoutTheStoreLeasesAreSpentFirst) {
  Start("{name: a, per: [client], rate: 100000/s, consistency: leased, on_failure: closed}", 1,
        50 * kMs);
  Run([](LeasedDecide& test) -> Task<void> {
    co_await test.WarmUp(0);
    for (int i = 0; i < 200; ++i) co_await test.Decide(0);
    co_await test.Pause(20 * kMs);
    test.server_.Kill();
    const Answer first = co_await test.Decide(0);
    EXPECT_EQ(first.source, Source::kLease);
    Answer last = first;
    for (int i = 0; i < 100'000 && last.source == Source::kLease; ++i)
      last = co_await test.Decide(0);
    EXPECT_EQ(last.source, Source::kFallback);
    EXPECT_FALSE(last.allowed);
  }(*this));
}

TEST_P(LeasedDecide, Case80_ADecisionThatComesTooLateIsPutBack) {
  Start(std::string(kWindow).insert(1, "on_failure: closed, "), 1, 500 * kMs);
  Run([](LeasedDecide& test) -> Task<void> {
    EXPECT_EQ(co_await test.Admitted(0, 2), 2);
    test.server_.Freeze();
    const Answer late = co_await test.Decide(0, 100);
    EXPECT_EQ(late.source, Source::kFallback);
    EXPECT_FALSE(late.allowed);
    test.server_.Thaw();
    co_await test.ExpectRemaining(0, 998);
  }(*this));
}

TEST_P(LeasedDecide, Case74_AKeyOfItsOwnThatExpires) {
  Start(kBucket, 1);
  Run([](LeasedDecide& test) -> Task<void> {
    co_await test.WarmUp(0);
    const resp::Value keys = test.server_.Console().Call({"KEYS", "*"});
    EXPECT_EQ(keys.items.size(), 1u);
    for (const resp::Value& key : keys.items) {
      EXPECT_TRUE(key.text.ends_with(":l")) << key.text;
      EXPECT_GT(test.server_.Console().Call({"PTTL", key.text}).integer, 0);
    }
  }(*this));
}

INSTANTIATE_TEST_SUITE_P(Servers, LeasedDecide, ::testing::Values("redis-server", "valkey-server"),
                         [](const auto& it) {
                           const std::string program = it.param;
                           return program.substr(0, program.find('-'));
                         });

}  // namespace
}  // namespace weir::decide
