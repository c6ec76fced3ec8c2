// The client against one real server of either kind.
#include "redis/client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "redis/client_world_test.h"
#include "testing/redis_server.h"
#include "testing/self_signed.h"

namespace weir::redis {
namespace {

using weir::testing::RedisConsole;
using weir::testing::RedisServer;

class Servers : public ::testing::TestWithParam<std::string> {
 protected:
  RedisServer::Options With(std::vector<std::string> arguments) {
    return {.program = GetParam(), .arguments = std::move(arguments)};
  }
};

INSTANTIATE_TEST_SUITE_P(Both, Servers, ::testing::Values("redis-server", "valkey-server"),
                         [](const auto& one) { return one.param.substr(0, one.param.find('-')); });

TEST_P(Servers, AnswersScriptsAndCommands) {
  RedisServer server(With({}));
  ClientWorld world;
  world.Run<RedisServer>(
      [](ClientWorld& w, RedisServer& s) -> Task<void> {
        auto client = w.Connect(s.url() + "/3");
        auto one = co_await w.Add(*client, "k", 5);
        EXPECT_EQ(IntegerOf(one), 5);
        auto two = co_await w.Add(*client, "k", -2);
        EXPECT_EQ(IntegerOf(two), 3);
        EXPECT_EQ(client->stats().script_loads, 1u);
        auto got = co_await w.Say(*client, "GET k");
        EXPECT_EQ(TextOf(got), "3");
        auto missing = co_await w.Say(*client, "GET none");
        EXPECT_TRUE(missing && missing->IsNull());
        auto name = co_await w.Say(*client, "CLIENT GETNAME");
        EXPECT_EQ(TextOf(name), "weir");
        EXPECT_EQ(client->GroupOf("{a}b"), 0);
        RedisConsole console = s.Console();
        console.Call({"SELECT", "3"});
        EXPECT_EQ(console.Call({"GET", "k"}).text, "3");
      },
      server);
}

TEST_P(Servers, ErrorsComeByKind) {
  RedisServer server(With({}));
  ClientWorld world;
  world.Run<RedisServer>(
      [](ClientWorld& w, RedisServer& s) -> Task<void> {
        auto client = w.Connect(s.url());
        auto wrong = co_await w.Say(*client, "NOSUCHCOMMAND");
        EXPECT_EQ(FaultOf(wrong).code, ErrorCode::kInternal);
        EXPECT_TRUE(FaultOf(wrong).message.starts_with("127.0.0.1:" + s.port_text() +
                                                       ": ERR unknown command"))
            << FaultOf(wrong).message;
        Delivery delivery = Delivery::kNotCarriedOut;
        const Script broken("redis.call('SET', KEYS[1], 1) return nosuchthing()");
        const std::string_view keys[] = {"half"};
        CallOptions options(w.In(kSecond));
        options.delivery = &delivery;
        auto failed =
            co_await client->RunScript(broken.sha1, broken.text, keys, {}, std::move(options));
        EXPECT_EQ(FaultOf(failed).code, ErrorCode::kInternal);
        EXPECT_EQ(delivery, Delivery::kUnknown);  // It wrote before it failed.
        s.Console().Call({"CONFIG", "SET", "maxmemory", "1"});
        CallOptions full(w.In(kSecond));
        full.delivery = &delivery;
        const std::string_view args[] = {"1"};
        auto oom =
            co_await client->RunScript(w.add().sha1, w.add().text, keys, args, std::move(full));
        EXPECT_EQ(FaultOf(oom).code, ErrorCode::kUnavailable);
        EXPECT_NE(FaultOf(oom).message.find("OOM"), std::string::npos) << FaultOf(oom).message;
        EXPECT_EQ(delivery, Delivery::kNotCarriedOut);
      },
      server);
}

TEST_P(Servers, UnixSocketsAndPasswords) {
  RedisServer server(
      With({"--requirepass", "hush", "--user", "weir", "on", ">hush2", "~*", "+@all"}));
  ClientWorld world;
  world.Run<RedisServer>(
      [](ClientWorld& w, RedisServer& s) -> Task<void> {
        const std::vector<std::string> urls = {"unix://:hush@" + s.unix_path() + "?db=1",
                                               "unix://weir:hush2@" + s.unix_path(),
                                               "redis://default:hush@127.0.0.1:" + s.port_text()};
        for (const std::string& url : urls) {
          auto client = w.Connect(url);
          auto reply = co_await w.Add(*client, "k", 1);
          EXPECT_TRUE(reply.has_value()) << FaultOf(reply).message;
        }
        const std::vector<std::string> users = {"", ":hush1", "weir:hush1", "nobody:hush2"};
        for (const std::string& user : users) {
          auto client = w.Connect("redis://" + user + (user.empty() ? "" : "@") +
                                  "127.0.0.1:" + s.port_text());
          auto reply = co_await w.Add(*client, "k", 1, 300 * kMs);
          EXPECT_FALSE(reply.has_value());
          if (reply) continue;
          EXPECT_NE(FaultOf(reply).message.find(user.empty() ? "NOAUTH" : "WRONGPASS"),
                    std::string::npos)
              << FaultOf(reply).message;
          EXPECT_EQ(client->last_fault().find("hush"), std::string::npos);
        }
        for (const std::string& notice : w.notices) {
          EXPECT_EQ(notice.find("hush"), std::string::npos) << notice;
        }
      },
      server);
}

TEST_P(Servers, TenThousandCallsInAPipeline) {
  RedisServer server(With({}));
  ClientWorld world;
  world.Run<RedisServer>(
      [](ClientWorld& w, RedisServer& s) -> Task<void> {
        auto client = w.Connect(s.unix_url());
        auto warm = co_await w.Add(*client, "warm", 1);
        EXPECT_TRUE(warm.has_value());
        Tally tally;
        constexpr int kCalls = 10'000;
        for (int i = 0; i < kCalls; ++i) {
          w.loop().Spawn(AddInto(w, *client, "k", 10 * kSecond, tally));
        }
        EXPECT_EQ(client->stats().calls_waiting, static_cast<size_t>(kCalls));
        co_await Join(w, tally);
        EXPECT_EQ(tally.ok, kCalls) << First(tally.errors);
        const std::set<int64_t> sums(tally.sums.begin(), tally.sums.end());
        EXPECT_EQ(sums.size(), static_cast<size_t>(kCalls));  // Each reply went to one call.
        EXPECT_EQ(*sums.rbegin(), kCalls);
        EXPECT_EQ(client->stats().connections, 2);
        // A few writes carried them all.
        EXPECT_LT(std::stoll(s.Info("stats", "total_reads_processed")), 400);
      },
      server);
}

// A limit of ten, four calls, SCRIPT FLUSH, seven calls: six more pass, and no call fails.
TEST_P(Servers, Case77_AScriptThatWasFlushedIsSentAgain) {
  RedisServer server(With({}));
  ClientWorld world;
  world.Run<RedisServer>(
      [](ClientWorld& w, RedisServer& s) -> Task<void> {
        auto client = w.Connect(s.url());
        const Script limit(
            "local n = tonumber(redis.call('GET', KEYS[1]) or '0') "
            "if n >= 10 then return 0 end redis.call('SET', KEYS[1], n + 1) return 1");
        const std::string_view keys[] = {"limit"};
        std::vector<int64_t> passed;
        for (int i = 0; i < 11; ++i) {
          if (i == 4) s.Console().Call({"SCRIPT", "FLUSH"});
          auto reply = co_await client->RunScript(limit.sha1, limit.text, keys, {}, w.In(kSecond));
          EXPECT_TRUE(reply.has_value());
          passed.push_back(reply ? reply->integer : -1);
        }
        EXPECT_EQ(passed, (std::vector<int64_t>{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}));
        EXPECT_EQ(client->stats().script_loads, 2u);
        // Many calls that miss the script together do not all send its text.
        s.Console().Call({"SCRIPT", "FLUSH"});
        Tally tally;
        for (int i = 0; i < 200; ++i) w.loop().Spawn(AddInto(w, *client, "k", kSecond, tally));
        co_await Join(w, tally);
        EXPECT_EQ(tally.ok, 200) << First(tally.errors);
        EXPECT_LE(client->stats().script_loads, 12u);
      },
      server);
}

TEST_P(Servers, DeadlinesHoldWhileTheServerSleeps) {
  RedisServer server(With({}));
  ClientWorld world;
  world.Run<RedisServer>(
      [](ClientWorld& w, RedisServer& s) -> Task<void> {
        ClientOptions one = w.Options(s.url());
        one.connections = 1;
        auto client = w.Connect(one);
        auto warm = co_await w.Add(*client, "k", 1);
        EXPECT_EQ(IntegerOf(warm), 1);
        RedisConsole sleeper = s.Console();
        sleeper.Send({"DEBUG", "SLEEP", "0.4"});
        co_await w.loop().SleepFor(20 * kMs);
        const int64_t began_ns = w.loop().now_ns();
        Delivery delivery = Delivery::kNotCarriedOut;
        int64_t late = 0;
        const std::string_view keys[] = {"k"};
        const std::string_view args[] = {"1"};
        CallOptions options(w.In(50 * kMs));
        options.delivery = &delivery;
        options.on_late = [&](resp::Value reply) { late = reply.integer; };
        auto reply =
            co_await client->RunScript(w.add().sha1, w.add().text, keys, args, std::move(options));
        const int64_t took_ns = w.loop().now_ns() - began_ns;
        EXPECT_EQ(FaultOf(reply).code, ErrorCode::kDeadlineExceeded);
        EXPECT_EQ(delivery, Delivery::kUnknown);
        EXPECT_GE(took_ns, 50 * kMs);
        EXPECT_LT(took_ns, 200 * kMs);
        // What the server does after all is told, so that it can be undone.
        auto next = co_await w.Add(*client, "k", 1);
        EXPECT_EQ(IntegerOf(next), 3);
        EXPECT_EQ(late, 2);
        EXPECT_EQ(client->stats().late_replies, 1u);
        EXPECT_EQ(client->stats().connects, 1u) << "a slow server is no dead one";
      },
      server);
}

// CLIENT PAUSE for a second and a half: every call ends at its deadline, sockets stay within the
// bound, and calls pass again right after.
TEST_P(Servers, APausedServerCostsDeadlinesAndNoConnections) {
  RedisServer server(With({}));
  ClientWorld world;
  world.Run<RedisServer>(
      [](ClientWorld& w, RedisServer& s) -> Task<void> {
        ClientOptions options = w.Options(s.url());
        options.connections = 8;
        auto client = w.Connect(options);
        auto warm = co_await w.Add(*client, "k", 1);
        EXPECT_TRUE(warm.has_value());
        s.Console().Call({"CLIENT", "PAUSE", "1500", "ALL"});
        const int64_t paused_ns = w.loop().now_ns();
        Tally tally;
        int most_sockets = 0;
        while (w.loop().now_ns() < paused_ns + 1400 * kMs) {
          w.loop().Spawn(AddInto(w, *client, "k", 50 * kMs, tally));
          co_await w.loop().SleepFor(2 * kMs);
          most_sockets = std::max(most_sockets, client->stats().connections);
          EXPECT_LE(client->stats().calls_waiting, 64u);
        }
        co_await Join(w, tally);
        EXPECT_EQ(tally.ok, 0);
        EXPECT_LE(most_sockets, 8);
        co_await w.loop().SleepUntil(paused_ns + 1500 * kMs);
        auto again = co_await w.Add(*client, "k", 1, kSecond);
        EXPECT_TRUE(again.has_value()) << FaultOf(again).message;
        EXPECT_LT(w.loop().now_ns(), paused_ns + 2300 * kMs);
      },
      server);
}

// kill -9 under load and a restart: calls fail by kind meanwhile, attempts come one at a time with
// growing gaps, and calls pass within a second of the server's return.
TEST_P(Servers, AKilledServerIsFoundAgainWhenItReturns) {
  RedisServer server(With({}));
  ClientWorld world;
  world.Run<RedisServer>(
      [](ClientWorld& w, RedisServer& s) -> Task<void> {
        auto client = w.Connect(s.url());
        auto warm = co_await w.Add(*client, "k", 1);
        EXPECT_TRUE(warm.has_value());
        s.Kill();
        const int64_t killed_ns = w.loop().now_ns();
        const uint64_t attempts = client->stats().connects;
        Tally tally;
        while (w.loop().now_ns() < killed_ns + kSecond) {
          w.loop().Spawn(AddInto(w, *client, "k", 20 * kMs, tally));
          EXPECT_LE(client->stats().connections, 2);
          co_await w.loop().SleepFor(kMs);
        }
        co_await Join(w, tally);
        EXPECT_EQ(tally.ok, 0);
        EXPECT_EQ(tally.Count(ErrorCode::kUnavailable) + tally.Count(ErrorCode::kDeadlineExceeded),
                  static_cast<int>(tally.errors.size()));
        EXPECT_LE(client->stats().connects - attempts, 14u) << "a storm";
        EXPECT_GE(client->stats().connects - attempts, 4u);
        EXPECT_NE(client->last_fault().find("Connection refused"), std::string::npos)
            << client->last_fault();
        EXPECT_LE(w.notices.size(), 4u);  // What changed, not each attempt.
        s.Start();
        const int64_t back_ns = w.loop().clock().MonotonicNs();
        // A call that waits for the connection passes on it.
        auto again = co_await w.Add(*client, "k", 1, 2 * kSecond);
        EXPECT_EQ(IntegerOf(again), 1);  // Its data went with it.
        EXPECT_LT(w.loop().now_ns() - back_ns, kSecond);
      },
      server);
}

// Every connection killed again and again under load: no call is carried out twice, what was
// answered counts, and none but the ones under way fail.
TEST_P(Servers, KilledConnectionsNeitherRepeatNorLoseCalls) {
  RedisServer server(With({}));
  ClientWorld world;
  world.Run<RedisServer>(
      [](ClientWorld& w, RedisServer& s) -> Task<void> {
        auto client = w.Connect(s.url());
        RedisConsole console = s.Console();
        Tally tally;
        int calls = 0;
        for (int round = 0; round < 20; ++round) {
          for (int i = 0; i < 50; ++i, ++calls) {
            w.loop().Spawn(AddInto(w, *client, "k", 5 * kSecond, tally));
          }
          co_await w.loop().TickEnd();
          console.Send({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
          console.Read();
          co_await w.loop().SleepFor(10 * kMs);
        }
        co_await Join(w, tally);
        const int64_t counted = std::stoll(console.Call({"GET", "k"}).text);
        const int lost = tally.Count(ErrorCode::kUnavailable);
        EXPECT_EQ(tally.ok + lost, calls) << First(tally.errors);
        EXPECT_GE(counted, tally.ok);
        EXPECT_LE(counted, tally.ok + lost) << "a call was carried out twice";
        const std::set<int64_t> sums(tally.sums.begin(), tally.sums.end());
        EXPECT_EQ(sums.size(), tally.sums.size());
        EXPECT_GT(tally.ok, calls / 4);
        EXPECT_LE(client->stats().connections, 2);
      },
      server);
}

// A frozen process still has its kernel accept connections: only its silence tells.
TEST_P(Servers, AFrozenServerIsNoticedAndReplaced) {
  RedisServer server(With({}));
  ClientWorld world;
  world.Run<RedisServer>(
      [](ClientWorld& w, RedisServer& s) -> Task<void> {
        ClientOptions options = w.Options(s.url());
        options.connections = 1;
        options.stall_ns = 100 * kMs;
        options.connect_timeout_ns = 200 * kMs;
        auto client = w.Connect(options);
        auto warm = co_await w.Add(*client, "k", 1);
        EXPECT_TRUE(warm.has_value());
        s.Freeze();
        auto lost = co_await w.Add(*client, "k", 1, 30 * kMs);
        EXPECT_EQ(FaultOf(lost).code, ErrorCode::kDeadlineExceeded);
        const std::string noticed = "127.0.0.1:" + s.port_text() + ": the server stopped answering";
        const int64_t until_ns = w.In(2 * kSecond);
        while (std::ranges::count(w.notices, noticed) == 0 && w.loop().now_ns() < until_ns) {
          co_await w.loop().SleepFor(kMs);
        }
        EXPECT_EQ(std::ranges::count(w.notices, noticed), 1);
        EXPECT_EQ(client->stats().connections_ready, 0);
        s.Thaw();
        auto again = co_await w.Add(*client, "k", 1, 2 * kSecond);
        EXPECT_TRUE(again.has_value()) << FaultOf(again).message;
      },
      server);
}

// A standalone master that becomes a replica refuses writes, and takes them again when it is made
// master again: no connection stays behind. (Sentinel has tests of its own.)
TEST_P(Servers, Case78_ADemotedMasterIsNotForEver) {
  RedisServer server(With({}));
  ClientWorld world;
  world.Run<RedisServer>(
      [](ClientWorld& w, RedisServer& s) -> Task<void> {
        auto client = w.Connect(s.url());
        auto warm = co_await w.Add(*client, "k", 1);
        EXPECT_TRUE(warm.has_value());
        RedisConsole console = s.Console();
        console.Call({"REPLICAOF", "127.0.0.1", "1"});
        for (int i = 0; i < 3; ++i) {
          auto refused = co_await w.Add(*client, "k", 1, kSecond);
          EXPECT_EQ(FaultOf(refused).code, ErrorCode::kUnavailable);
          EXPECT_NE(FaultOf(refused).message.find("READONLY"), std::string::npos)
              << FaultOf(refused).message;
        }
        console.Call({"REPLICAOF", "NO", "ONE"});
        auto again = co_await w.Add(*client, "k", 1, kSecond);
        EXPECT_EQ(IntegerOf(again), 2);
        EXPECT_GT(client->stats().connects, 2u);
      },
      server);
}

TEST_P(Servers, TlsWithAClientCertificate) {
  weir::testing::SelfSigned identity;
  const int port = weir::testing::FreePort();
  RedisServer server(
      With({"--tls-port", std::to_string(port), "--tls-cert-file", identity.cert_file(),
            "--tls-key-file", identity.key_file(), "--tls-ca-cert-file", identity.cert_file(),
            "--tls-auth-clients", "yes", "--requirepass", "hush"}));
  ClientWorld world;
  struct Scene {
    weir::testing::SelfSigned& identity;
    std::string url;
  } scene{identity, "rediss://:hush@localhost:" + std::to_string(port)};
  world.Run<Scene>(
      [](ClientWorld& w, Scene& s) -> Task<void> {
        ClientOptions good = w.Options(s.url);
        good.tls.ca_file = s.identity.cert_file();
        good.tls.cert_file = s.identity.cert_file();
        good.tls.key_file = s.identity.key_file();
        auto client = w.Connect(good);
        auto reply = co_await w.Add(*client, "k", 1);
        EXPECT_TRUE(reply.has_value()) << FaultOf(reply).message;
        Tally tally;
        for (int i = 0; i < 2000; ++i) w.loop().Spawn(AddInto(w, *client, "t", 5 * kSecond, tally));
        co_await Join(w, tally);
        EXPECT_EQ(tally.ok, 2000) << First(tally.errors);

        ClientOptions doubting = good;  // The system's certificates do not vouch for it.
        doubting.tls.ca_file = "";
        ClientOptions nameless = good;
        nameless.tls.server_name = "example.com";
        ClientOptions anonymous = good;
        anonymous.tls.cert_file = anonymous.tls.key_file = "";
        ClientOptions fileless = good;
        fileless.tls.ca_file = "/no/such/ca.pem";
        const std::vector<ClientOptions> all = {doubting, nameless, anonymous, fileless};
        for (const ClientOptions& bad : all) {
          auto refused = w.Connect(bad);
          auto fault = co_await w.Add(*refused, "k", 1, 200 * kMs);
          EXPECT_FALSE(fault.has_value());
          EXPECT_EQ(refused->stats().connections_ready, 0) << refused->last_fault();
        }
        ClientOptions named = good;  // Connect by address, verify by name.
        named.addresses[0].host = "127.0.0.1";
        named.tls.server_name = "localhost";
        auto by_name = w.Connect(named);
        auto named_reply = co_await w.Add(*by_name, "k", 1);
        EXPECT_TRUE(named_reply.has_value()) << FaultOf(named_reply).message;
      },
      scene);
}

TEST(Client, QueuesAreBounded) {
  RedisServer server;
  ClientWorld world;
  world.Run<RedisServer>(
      [](ClientWorld& w, RedisServer& s) -> Task<void> {
        ClientOptions options = w.Options(s.url());
        options.queue_calls_max = 10;
        auto client = w.Connect(options);
        Tally tally;
        for (int i = 0; i < 15; ++i) w.loop().Spawn(AddInto(w, *client, "k", kSecond, tally));
        EXPECT_EQ(tally.Count(ErrorCode::kResourceExhausted), 5);
        co_await Join(w, tally);
        EXPECT_EQ(tally.ok, 10);
        options = w.Options(s.url());
        options.queue_bytes_max = 5000;
        auto small = w.Connect(options);
        auto large = co_await w.Say(*small, "SET k " + std::string(6000, 'x'));
        EXPECT_EQ(FaultOf(large).code, ErrorCode::kResourceExhausted);
        auto fits = co_await w.Say(*small, "SET k " + std::string(4000, 'x'));
        EXPECT_TRUE(fits.has_value());
      },
      server);
}

TEST(Client, ClosingItEndsItsCalls) {
  RedisServer server;
  ClientWorld world;
  world.Run<RedisServer>(
      [](ClientWorld& w, RedisServer& s) -> Task<void> {
        auto client = w.Connect(s.url());
        auto warm = co_await w.Add(*client, "k", 1);
        EXPECT_TRUE(warm.has_value());
        s.Freeze();
        Tally tally;
        for (int i = 0; i < 5; ++i) w.loop().Spawn(AddInto(w, *client, "k", 5 * kSecond, tally));
        co_await w.loop().SleepFor(20 * kMs);
        for (int i = 0; i < 5; ++i) w.loop().Spawn(AddInto(w, *client, "k", 5 * kSecond, tally));
        client.reset();
        co_await w.loop().SleepFor(5 * kMs);
        EXPECT_EQ(tally.Count(ErrorCode::kCancelled), 10);
        s.Thaw();
        // And all that ran for it ends.
        const int64_t until_ns = w.In(2 * kSecond);
        while (w.loop().live_tasks() > 1 && w.loop().now_ns() < until_ns) {
          co_await w.loop().SleepFor(kMs);
        }
        EXPECT_EQ(w.loop().live_tasks(), 1);
      },
      server);
}

}  // namespace
}  // namespace weir::redis
