// The client against peers that fail in every way, at every step.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "redis/client_world_test.h"
#include "redis/scripted_server_test.h"

namespace weir::redis {
namespace {

std::string Bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

// HELLO is answered, and ECHO x with x.
std::string Echo(const Words& words, int) {
  if (words[0] == "HELLO") return kHelloReply;
  return words[0] == "ECHO" ? Bulk(words[1]) : "+OK\r\n";
}

ClientOptions Quick(ClientWorld& w, const std::string& url, int connections = 1) {
  ClientOptions options = w.Options(url);
  options.connections = connections;
  options.backoff_min_ns = 1 * kMs;
  options.backoff_max_ns = 8 * kMs;
  return options;
}

struct Ended {
  std::string text;  // Of the call.
  bool ok = false;
  Error error;
  Delivery delivery = Delivery::kNotCarriedOut;
  std::string reply;
};

Task<void> EchoInto(ClientWorld& w, Client& client, std::string text, int64_t timeout_ns,
                    std::vector<Ended>& ended, int& under_way) {
  ++under_way;
  Ended end;
  end.text = text;
  const std::vector<std::string_view> words = {"ECHO", text};
  CallOptions options(w.In(timeout_ns));
  options.delivery = &end.delivery;
  Task<Result<resp::Value>> call = client.Call(words, "", std::move(options));
  Result<resp::Value> reply = co_await std::move(call);
  --under_way;
  end.ok = reply.has_value();
  if (reply) {
    end.reply = reply->text;
  } else {
    end.error = reply.error();
  }
  ended.push_back(std::move(end));
}

TEST(ClientPeer, AllCallsOfOneTickLeaveInOneWrite) {
  ClientWorld world;
  world.Run([](ClientWorld& w) -> Task<void> {
    ScriptedServer server(w.loop(), Echo);
    auto client = w.Connect(Quick(w, server.url(), 2));
    auto warm = co_await w.Say(*client, "ECHO warm");
    EXPECT_EQ(TextOf(warm), "warm");
    co_await w.loop().SleepFor(10 * kMs);
    const int before = server.reads();
    std::vector<Ended> ended;
    int under_way = 0;
    for (int i = 0; i < 500; ++i) {
      w.loop().Spawn(EchoInto(w, *client, std::to_string(i), kSecond, ended, under_way));
    }
    while (under_way > 0) co_await w.loop().SleepFor(kMs);
    EXPECT_EQ(server.reads() - before, 1);
    EXPECT_EQ(server.accepted(), 2);
    for (const Ended& end : ended) EXPECT_EQ(end.reply, end.text);
  });
}

// The first connection ends after every number of bytes of what the server says, handshake
// included. Every call ends; the server sees each at most once; one that it answered is right; and
// those that it never saw have passed on the next connection.
TEST(ClientPeer, ABreakAtEveryByteRepeatsNothing) {
  ClientWorld world;
  world.Run([](ClientWorld& w) -> Task<void> {
    const int64_t hello = static_cast<int64_t>(kHelloReply.size());
    int lost_in_all = 0;
    for (int64_t bytes = 0; bytes <= hello + 24; ++bytes) {
      ScriptedServer server(w.loop(), Echo);
      server.CloseAfter(bytes);
      auto client = w.Connect(Quick(w, server.url()));
      std::vector<Ended> ended;
      int under_way = 0;
      for (int i = 0; i < 4; ++i) {
        const std::string text(1, static_cast<char>('a' + i));
        w.loop().Spawn(EchoInto(w, *client, text, 2 * kSecond, ended, under_way));
      }
      while (under_way > 0) co_await w.loop().SleepFor(kMs / 4);
      EXPECT_EQ(ended.size(), 4u);
      int lost = 0;
      for (const Ended& end : ended) {
        const int seen = server.CountOf(Words{"ECHO", end.text});
        EXPECT_LE(seen, 1) << end.text << " was sent twice, after " << bytes << " bytes";
        if (end.ok) {
          EXPECT_EQ(end.reply, end.text);
          EXPECT_EQ(seen, 1);
        } else {
          ++lost;
          EXPECT_EQ(end.error.code, ErrorCode::kUnavailable) << end.error.message;
          EXPECT_EQ(end.delivery, Delivery::kUnknown);
        }
      }
      // "$1\r\na\r\n" is seven bytes: what had come whole was answered.
      const int64_t answered = bytes < hello ? 4 : (bytes - hello) / 7;
      EXPECT_EQ(4 - lost, answered) << "after " << bytes << " bytes";
      lost_in_all += lost;
      auto after = co_await w.Say(*client, "ECHO after");
      EXPECT_EQ(TextOf(after), "after");
      EXPECT_EQ(server.accepted(), 2);
    }
    EXPECT_GT(lost_in_all, 40);
  });
}

TEST(ClientPeer, APeerThatHangsUpAtOnceMeetsNoStorm) {
  ClientWorld world;
  world.Run([](ClientWorld& w) -> Task<void> {
    // One hangs up before HELLO, one after it, one on every command.
    ScriptedServer early(w.loop(), [](const Words&, int) { return std::string("close"); });
    ScriptedServer late(w.loop(), [](const Words& words, int) {
      return words[0] == "HELLO" ? kHelloReply : std::string("close");
    });
    for (ScriptedServer* server : std::vector<ScriptedServer*>{&early, &late}) {
      ClientOptions options = w.Options(server->url());
      options.connections = 8;
      auto client = w.Connect(options);
      std::vector<Ended> ended;
      int under_way = 0;
      const int64_t until_ns = w.In(kSecond);
      while (w.loop().now_ns() < until_ns) {
        w.loop().Spawn(EchoInto(w, *client, "x", 20 * kMs, ended, under_way));
        co_await w.loop().SleepFor(2 * kMs);
      }
      while (under_way > 0) co_await w.loop().SleepFor(kMs);
      for (const Ended& end : ended) EXPECT_FALSE(end.ok);
      EXPECT_LE(server->most_open(), 8);
      EXPECT_GE(server->accepted(), 4);
    }
    EXPECT_LE(early.accepted(), 14);
    EXPECT_LE(late.accepted(), 8 + 14);
  });
}

TEST(ClientPeer, APeerThatAcceptsAndSaysNothingHoldsOneSocket) {
  ClientWorld world;
  world.Run([](ClientWorld& w) -> Task<void> {
    ScriptedServer server(w.loop(), [](const Words&, int) { return std::string(); });
    ClientOptions options = w.Options(server.url());
    options.connections = 8;
    options.connect_timeout_ns = 100 * kMs;
    auto client = w.Connect(options);
    auto reply = co_await w.Say(*client, "ECHO x", "", 700 * kMs);
    EXPECT_EQ(FaultOf(reply).code, ErrorCode::kDeadlineExceeded);
    EXPECT_NE(FaultOf(reply).message.find("the server accepts and does not answer"),
              std::string::npos)
        << FaultOf(reply).message;
    EXPECT_LE(server.most_open(), 2);  // One, and one whose end has not been read yet.
    EXPECT_LE(server.accepted(), 7);
    EXPECT_GE(server.accepted(), 2);
    EXPECT_LE(client->stats().connections, 1);
  });
}

// Answers one call in two, ever: its silence is noticed though bytes go on coming.
// A server that is always slower than the deadline would never get the text otherwise.
TEST(ClientPeer, Case77_AScriptThatIsMissedTooLateIsSentWithTheNextCall) {
  ClientWorld world;
  world.Run([](ClientWorld& w) -> Task<void> {
    const std::string missed = "-NOSCRIPT No matching script. Please use EVAL.\r\n";
    ScriptedServer server(w.loop(), [&](const Words& words, int) {
      if (words[0] == "HELLO") return kHelloReply;
      if (words[0] == "EVALSHA") return std::string();
      return words[0] == "EVAL" ? std::string(":7\r\n") : missed + Bulk(words[1]);
    });
    auto client = w.Connect(Quick(w, server.url()));
    auto late = co_await w.Add(*client, "k", 1, 30 * kMs);
    EXPECT_EQ(FaultOf(late).code, ErrorCode::kDeadlineExceeded);
    auto echo = co_await w.Say(*client, "ECHO x");  // Behind the answer to the script.
    EXPECT_EQ(TextOf(echo), "x");
    auto again = co_await w.Add(*client, "k", 1);
    EXPECT_EQ(IntegerOf(again), 7);
    EXPECT_EQ(client->stats().script_loads, 1);
    auto unknown = co_await w.Add(*client, "k", 1, 30 * kMs);  // By its hash again.
    EXPECT_EQ(FaultOf(unknown).code, ErrorCode::kDeadlineExceeded);
  });
}

TEST(ClientPeer, AnAnswerThatNeverComesEndsTheConnection) {
  ClientWorld world;
  world.Run([](ClientWorld& w) -> Task<void> {
    ScriptedServer server(w.loop(), [](const Words& words, int connection) {
      if (words[0] == "HELLO") return kHelloReply;
      return connection == 1 ? std::string(">1\r\n+still-here\r\n") : Bulk(words[1]);
    });
    ClientOptions options = Quick(w, server.url());
    options.stall_ns = 60 * kMs;
    auto client = w.Connect(options);
    auto reply = co_await w.Say(*client, "ECHO x", "", 30 * kMs);
    EXPECT_EQ(FaultOf(reply).code, ErrorCode::kDeadlineExceeded);
    const int64_t until_ns = w.In(2 * kSecond);
    while (server.accepted() < 2 && w.loop().now_ns() < until_ns) {
      co_await w.loop().SleepFor(kMs);
    }
    EXPECT_EQ(server.accepted(), 2);
    auto again = co_await w.Say(*client, "ECHO y", "", kSecond);
    EXPECT_EQ(TextOf(again), "y");
    EXPECT_EQ(server.CountOf(Words{"ECHO", "x"}), 1);
  });
}

TEST(ClientPeer, GarbageEndsTheConnectionAndTheCallsOnIt) {
  ClientWorld world;
  world.Run([](ClientWorld& w) -> Task<void> {
    const std::vector<std::string> kinds = {"HTTP/1.1 400 Bad Request\r\n\r\n", "$-7\r\n",
                                            "+a\r\n+b\r\n", "*1000000000\r\n", "\n"};
    for (const std::string& garbage : kinds) {
      ScriptedServer server(w.loop(), [&garbage](const Words& words, int connection) {
        if (words[0] == "HELLO") return kHelloReply;
        return connection == 1 ? garbage : Bulk(words[1]);
      });
      auto client = w.Connect(Quick(w, server.url()));
      auto first = co_await w.Say(*client, "ECHO x");
      if (garbage != kinds[2]) {  // There the first answer is one, and the second answers nothing.
        EXPECT_EQ(FaultOf(first).code, ErrorCode::kUnavailable) << garbage;
      }
      auto second = co_await w.Say(*client, "ECHO y");
      EXPECT_EQ(TextOf(second), "y") << garbage;
      EXPECT_EQ(server.accepted(), 2);
    }
  });
}

TEST(ClientPeer, WhatPassesIsWaitedForUntilTheDeadline) {
  ClientWorld world;
  world.Run([](ClientWorld& w) -> Task<void> {
    const std::vector<std::string> kinds = {"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN"};
    for (const std::string& word : kinds) {
      int refusals = 3;
      ScriptedServer server(w.loop(), [&](const Words& words, int) {
        if (words[0] == "HELLO") return kHelloReply;
        return refusals-- > 0 ? "-" + word + " for now\r\n" : Bulk(words[1]);
      });
      auto client = w.Connect(Quick(w, server.url()));
      auto waited = co_await w.Say(*client, "ECHO x");
      EXPECT_EQ(TextOf(waited), "x") << word;
      EXPECT_EQ(server.CountOf(Words{"ECHO", "x"}), 4);
      refusals = 1'000'000;
      std::vector<Ended> ended;
      int under_way = 0;
      const int64_t began_ns = w.loop().now_ns();
      co_await EchoInto(w, *client, "y", 100 * kMs, ended, under_way);
      EXPECT_EQ(ended[0].error.code, ErrorCode::kUnavailable);
      EXPECT_EQ(ended[0].error.message, server.address() + ": " + word + " for now");
      EXPECT_EQ(ended[0].delivery, Delivery::kNotCarriedOut);
      EXPECT_LE(w.loop().now_ns() - began_ns, 250 * kMs);
      EXPECT_LE(server.CountOf(Words{"ECHO", "y"}), 8);  // With growing gaps.
    }
  });
}

TEST(ClientPeer, AnOldServerIsSpokenToInResp2AndItsErrorsKeepNoSecret) {
  ClientWorld world;
  world.Run([](ClientWorld& w) -> Task<void> {
    ScriptedServer server(w.loop(), [](const Words& words, int) {
      if (words[0] == "HELLO") {
        std::string said = "-ERR unknown command `HELLO`, with args beginning with:";
        for (const std::string& word : words) said += " `" + word + "`";
        return said + "\r\n";
      }
      if (words[0] == "AUTH") {
        return words[1] == "hush" ? std::string("+OK\r\n")
                                  : "-ERR invalid password " + words[1] + "\r\n";
      }
      return Echo(words, 0);
    });
    auto client = w.Connect(Quick(w, "redis://:hush@" + server.address() + "/5"));
    auto reply = co_await w.Say(*client, "ECHO x");
    EXPECT_EQ(TextOf(reply), "x");
    EXPECT_EQ(server.commands().at(0), (Words{"AUTH", "hush"}));
    EXPECT_EQ(server.commands().at(1), (Words{"CLIENT", "SETNAME", "weir"}));
    EXPECT_EQ(server.commands().at(2), (Words{"SELECT", "5"}));
    auto wrong = w.Connect(Quick(w, "redis://:hush1@" + server.address()));
    auto refused = co_await w.Say(*wrong, "ECHO x", "", 50 * kMs);
    EXPECT_FALSE(refused.has_value());
    EXPECT_NE(FaultOf(refused).message.find("AUTH was refused"), std::string::npos)
        << FaultOf(refused).message;
    EXPECT_EQ(FaultOf(refused).message.find("hush"), std::string::npos);
    for (const std::string& notice : w.notices) EXPECT_EQ(notice.find("hush"), std::string::npos);
  });
}

TEST(ClientPeer, APasswordDoesNotFollowARedirectOffThisHostInTheClear) {
  ClientWorld world;
  world.Run([](ClientWorld& w) -> Task<void> {
    ScriptedServer server(w.loop(), [](const Words& words, int) {
      if (words[0] == "HELLO") return kHelloReply;
      // A map that names a host elsewhere (TEST-NET-1, RFC 5737).
      return std::string("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n192.0.2.1\r\n:6379\r\n");
    });
    auto client = w.Connect(Quick(w, "redis+cluster://:hush@" + server.address()));
    auto reply = co_await w.Say(*client, "GET k", "k", 100 * kMs);
    EXPECT_FALSE(reply.has_value());
    EXPECT_NE(client->last_fault().find("192.0.2.1:6379: the password would cross the network"),
              std::string::npos)
        << client->last_fault();
  });
}

TEST(ClientPeer, AClustersNodeTakenForASingleServerSaysSo) {
  ClientWorld world;
  world.Run([](ClientWorld& w) -> Task<void> {
    ScriptedServer server(w.loop(), [](const Words& words, int) {
      return words[0] == "HELLO" ? kHelloReply : std::string("-MOVED 1 127.0.0.1:1\r\n");
    });
    auto client = w.Connect(Quick(w, server.url()));
    auto reply = co_await w.Say(*client, "GET k");
    EXPECT_EQ(FaultOf(reply).message,
              server.address() +
                  ": MOVED 1 127.0.0.1:1; the server is part of a Cluster, which needs "
                  "redis+cluster://");
    EXPECT_EQ(server.commands().size(), 1u);
  });
}

TEST(ClientPeer, NodesThatNameEachOtherForEverAreLeftInTime) {
  ClientWorld world;
  world.Run([](ClientWorld& w) -> Task<void> {
    int ports[2] = {0, 0};
    const auto answer = [&ports](const Words& words, int other) {
      if (words[0] == "HELLO") return kHelloReply;
      const std::string port = std::to_string(ports[other]);
      if (words[0] == "CLUSTER") {
        return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + port + "\r\n";
      }
      return "-MOVED 12706 127.0.0.1:" + port + "\r\n";
    };
    ScriptedServer one(w.loop(), [&](const Words& words, int) { return answer(words, 1); });
    ScriptedServer two(w.loop(), [&](const Words& words, int) { return answer(words, 0); });
    ports[0] = one.port();
    ports[1] = two.port();
    auto client = w.Connect(Quick(w, "redis+cluster://" + one.address()));
    auto reply = co_await w.Say(*client, "GET k", "k", 2 * kSecond);
    EXPECT_EQ(FaultOf(reply).code, ErrorCode::kUnavailable);
    EXPECT_NE(FaultOf(reply).message.find("MOVED 12706"), std::string::npos);
    EXPECT_LE(one.CountOf(Words{"GET", "k"}) + two.CountOf(Words{"GET", "k"}), 17);
    EXPECT_LE(one.CountOf(Words{"CLUSTER", "SLOTS"}) + two.CountOf(Words{"CLUSTER", "SLOTS"}), 25);
  });
}

// The Sentinel's connection ends after every number of bytes: the master is found all the same,
// and a switch that is told is followed.
TEST(ClientPeer, ASentinelThatBreaksAtEveryByteIsAskedAgain) {
  ClientWorld world;
  world.Run([](ClientWorld& w) -> Task<void> {
    const auto master = [](const Words& words, int) {
      return words[0] == "ROLE" ? std::string("*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n")
                                : Echo(words, 0);
    };
    ScriptedServer first(w.loop(), master);
    ScriptedServer second(w.loop(), master);
    const std::string port = std::to_string(first.port());
    const std::string named = "*2\r\n$9\r\n127.0.0.1\r\n" + Bulk(port);
    const std::string subscribed = ">3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n";
    const std::string switched =
        ">3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n" +
        Bulk("m 127.0.0.1 " + port + " 127.0.0.1 " + std::to_string(second.port()));
    int named_left = INT_MAX;  // How often the first is named before the switch is told.
    const auto sentinel = [&](const Words& words, int) {
      if (words[0] == "HELLO") return kHelloReply;
      if (words[0] == "SUBSCRIBE") return subscribed;
      if (words[1] == "SENTINELS") return std::string("*0\r\n");
      return --named_left > 0 ? named : named + switched;
    };
    const int64_t whole =
        static_cast<int64_t>(kHelloReply.size() + 2 * named.size() + 4 + subscribed.size());
    for (int64_t bytes = 0; bytes < whole; bytes += 3) {
      ScriptedServer watcher(w.loop(), sentinel);
      watcher.CloseAfter(bytes);
      auto client = w.Connect(Quick(w, "redis+sentinel://" + watcher.address() + "/m"));
      auto reply = co_await w.Say(*client, "ECHO x");
      EXPECT_EQ(TextOf(reply), "x") << bytes;
      EXPECT_LE(watcher.accepted(), 2);
    }
    EXPECT_EQ(second.accepted(), 0);
    named_left = 2;
    ScriptedServer watcher(w.loop(), sentinel);
    auto client = w.Connect(Quick(w, "redis+sentinel://" + watcher.address() + "/m"));
    auto before = co_await w.Say(*client, "ECHO x");
    EXPECT_EQ(TextOf(before), "x");
    while (client->stats().topology_changes < 2) co_await w.loop().SleepFor(kMs);
    auto after = co_await w.Say(*client, "ECHO after");
    EXPECT_EQ(TextOf(after), "after");
    EXPECT_EQ(second.CountOf(Words{"ECHO", "after"}), 1);
  });
}

TEST(ClientPeer, AServerThatIsNoMasterIsNotUsedUnderSentinel) {
  ClientWorld world;
  world.Run([](ClientWorld& w) -> Task<void> {
    const auto with_role = [](const std::string& role) {
      return [role](const Words& words, int) {
        return words[0] == "ROLE" ? "*1\r\n" + Bulk(role) : Echo(words, 0);
      };
    };
    ScriptedServer stale(w.loop(), with_role("slave"));
    ScriptedServer fresh(w.loop(), with_role("master"));
    int questions = 0;
    const auto sentinel = [&](const Words& words, int) {
      if (words[0] == "HELLO") return kHelloReply;
      if (words[0] == "SUBSCRIBE") {
        return std::string(">3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n");
      }
      if (words[1] == "SENTINELS") return std::string("*0\r\n");
      const int port = ++questions <= 2 ? stale.port() : fresh.port();
      return "*2\r\n$9\r\n127.0.0.1\r\n" + Bulk(std::to_string(port));
    };
    ScriptedServer watcher(w.loop(), sentinel);
    auto client = w.Connect(Quick(w, "redis+sentinel://" + watcher.address() + "/m"));
    auto reply = co_await w.Say(*client, "ECHO x");
    EXPECT_EQ(TextOf(reply), "x");
    EXPECT_EQ(stale.CountOf(Words{"ECHO", "x"}), 0);
    EXPECT_EQ(fresh.CountOf(Words{"ECHO", "x"}), 1);
  });
}

}  // namespace
}  // namespace weir::redis
