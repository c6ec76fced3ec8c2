// Upstream connections: choice, reuse, repeats, TLS, time limits.

#include <fstream>

#include "gateway/gateway_world_test.h"
#include "net/event.h"
#include "testing/self_signed.h"

namespace weir::gateway {
namespace {

std::string Policy(std::string_view upstream, std::string_view more = "") {
  return "listen: {gateway: 127.0.0.1:0}\nupstreams: [" + std::string(upstream) +
         "]\nroutes: [{match: {path: /*}, upstream: up}]\n" + std::string(more) +
         "\nlimits: [{name: ip, per: [ip], rate: 1000/hour}]\n";
}
constexpr char kOne[] = R"({name: up, urls: ["http://UPSTREAM0"]})";

TEST(UpstreamTest, Case83f_RepeatsAreChargedOnce) {
  World world(Policy(kOne));
  int connections = 0;
  world.upstream().script = [&](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    if (++connections > 2) {
      co_await self.AnswerOk(peer);
      co_return;
    }
    Message request;
    co_await self.ReadRequest(peer, request);  // Takes the request and closes.
  };
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer answer = co_await client.Ask(Get("/"));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(world.upstream().requests.size(), 3u);
    EXPECT_EQ(answer.Field("x-ratelimit-remaining"), "999");
  }());
}

TEST(UpstreamTest, ACallThatMayHaveBeenDoneIsNotRepeated) {
  World world(Policy(kOne));
  world.upstream().script = [&](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    Message request;
    co_await self.ReadRequest(peer, request);
  };
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer answer = co_await client.Ask(Post("/v1/chat/completions", "{}"));
    EXPECT_EQ(answer.status, 502);
    EXPECT_NE(answer.body.find(R"("code":"upstream_error")"), std::string::npos) << answer.body;
    EXPECT_EQ(answer.Field("x-ratelimit-remaining"), "999");
    EXPECT_EQ(world.upstream().requests.size(), 1u);
    EXPECT_EQ(answer.Count("connection"), 0);
  }());
}

TEST(UpstreamTest, AStaleConnectionIsReplacedUnseen) {
  World world(Policy(kOne));
  world.upstream().script = [&](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    Message request;
    const bool first = co_await self.ReadRequest(peer, request);
    if (!first) co_return;
    co_await peer.Send(self.answer);
    // Closes just when the next request comes, as a server does whose idle time ends then.
    if (self.accepted == 1) {
      co_await peer.More();
      co_return;
    }
    co_await self.AnswerOk(peer);
  };
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer first = co_await client.Ask(Get("/"));
    EXPECT_EQ(first.status, 200);
    const Answer second = co_await client.Ask(Post("/", "{}"));
    EXPECT_EQ(second.status, 200);
    EXPECT_EQ(world.upstream().accepted, 2);
    EXPECT_EQ(world.upstream().requests.back().body, "{}");
  }());
}

TEST(UpstreamTest, AConnectionClosedWhileIdleIsNotUsed) {
  World world(Policy(kOne));
  world.upstream().script = [&](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    Message request;
    co_await self.ReadRequest(peer, request);
    co_await peer.Send(self.answer);
  };
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    for (int i = 0; i < 5; ++i) {
      const Answer answer = co_await client.Ask(Post("/", "{}"));
      EXPECT_EQ(answer.status, 200);
      co_await world.loop().SleepFor(2'000'000);  // The close arrives.
    }
    EXPECT_EQ(world.upstream().accepted, 5);
  }());
}

TEST(UpstreamTest, TheAddressWithFewestCallsGetsTheNext) {
  World world(Policy(R"({name: up, urls: ["http://UPSTREAM0", "http://UPSTREAM1"]})"), 2);
  int waiting = 0;
  net::Event release(world.loop());
  for (size_t i = 0; i < 2; ++i) {
    world.upstream(i).script = [&](ScriptedUpstream& self, Peer& peer) -> Task<void> {
      Message request;
      const bool got = co_await self.ReadRequest(peer, request);
      if (!got) co_return;
      ++waiting;
      while (!release.is_set()) co_await self.loop().SleepFor(1'000'000);
      co_await peer.Send(self.answer);
    };
  }
  world.Run([&]() -> Task<void> {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 8; ++i) {
      clients.push_back(std::make_unique<RawClient>(world));
      co_await clients.back()->Connect();
      co_await clients.back()->Send(Get("/"));
      const bool came = co_await world.Eventually([&] { return waiting == i + 1; });
      EXPECT_TRUE(came);
    }
    EXPECT_EQ(world.upstream(0).requests.size(), 4u);
    EXPECT_EQ(world.upstream(1).requests.size(), 4u);
    release.Set();
    for (auto& client : clients) {
      const Answer answer = co_await client->Read();
      EXPECT_EQ(answer.status, 200);
    }
  }());
}

TEST(UpstreamTest, AnAddressThatRefusesIsAvoided) {
  World world(Policy(R"({name: up, urls: ["http://UPSTREAM0", "http://UPSTREAM1"]})"), 2);
  world.upstream(0).Close();
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    for (int i = 0; i < 20; ++i) {
      const Answer answer = co_await client.Ask(Post("/", "{}"));
      EXPECT_EQ(answer.status, 200);
    }
    EXPECT_EQ(world.upstream(1).requests.size(), 20u);
  }());
}

TEST(UpstreamTest, NoAddressThatAnswersIs502) {
  World world(Policy(kOne));
  world.upstream().Close();
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer answer = co_await client.Ask(Get("/v1/models"));
    EXPECT_EQ(answer.status, 502);
    EXPECT_EQ(answer.Field("content-type"), "application/json");
    EXPECT_EQ(answer.body.find("127.0.0.1"), std::string::npos)
        << answer.body;  // Not the client's business.
  }());
}

TEST(UpstreamTest, NamesAreResolved) {
  World world(Policy(kOne));
  const std::string yaml = Policy(
      "{name: up, urls: [\"http://localhost:" + std::to_string(world.upstream().port()) + "\"]}");
  World named(yaml, 0);
  // Its upstream lives on the other world's loop, so only the look-up and the connection are seen
  // here.
  named.Run([&]() -> Task<void> {
    RawClient client(named);
    co_await client.Connect();
    co_await client.Send(Get("/"));
    const bool connected = co_await named.Eventually([&] {
      return named.engine->metrics().Expose().find(
                 "weir_upstream_connections{upstream=\"up\"} 1") != std::string::npos;
    });
    EXPECT_TRUE(connected) << named.engine->metrics().Expose();
  }());
}

TEST(UpstreamTest, InvalidAnswersAre502) {
  World world(Policy(kOne));
  const std::vector<std::string> answers = {
      "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"};
  world.Run([&]() -> Task<void> {
    for (const std::string& bad : answers) {
      world.upstream().answer = bad;
      RawClient client(world);
      const Answer answer = co_await client.Ask(Post("/", "{}"));
      EXPECT_EQ(answer.status, 502) << bad;
    }
  }());
}

TEST(UpstreamTest, BytesBehindAnAnswerEndTheConnection) {
  World world(Policy(kOne));
  world.upstream().answer =
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: "
      "4\r\n\r\nevil";
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    for (int i = 0; i < 3; ++i) {
      const Answer answer = co_await client.Ask(Get("/"));
      EXPECT_EQ(answer.body, "ok");
    }
    EXPECT_EQ(world.upstream().accepted, 3);
  }());
}

TEST(UpstreamTest, BytesThatNobodyAskedForEndTheConnection) {
  World world(Policy(kOne));
  world.upstream().script = [](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    Message request;
    const bool got = co_await self.ReadRequest(peer, request);
    if (!got) co_return;
    co_await peer.Send(self.answer);
    co_await self.loop().SleepFor(2'000'000);  // The connection is kept by now.
    co_await peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
    co_await peer.More();
  };
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    for (int i = 0; i < 3; ++i) {
      const Answer answer = co_await client.Ask(Get("/"));
      EXPECT_EQ(answer.body, "ok");
      co_await world.loop().SleepFor(20'000'000);  // The upstream's bytes arrive.
    }
    EXPECT_EQ(world.upstream().accepted, 3);
  }());
}

TEST(TimeoutTest, FirstByteAndTotalAre504) {
  World world(Policy(kOne, "timeouts: {first_byte: 100ms}"));
  World total(Policy(kOne, "timeouts: {total: 100ms}"));
  for (World* slow : {&world, &total}) {
    slow->upstream().script = [](ScriptedUpstream& self, Peer& peer) -> Task<void> {
      Message request;
      co_await self.ReadRequest(peer, request);
      co_await peer.More();
    };
    slow->Run([&]() -> Task<void> {
      RawClient client(*slow);
      const int64_t begun_ns = slow->loop().now_ns();
      const Answer answer = co_await client.Ask(Get("/v1/models"));
      EXPECT_EQ(answer.status, 504);
      EXPECT_NE(answer.body.find("upstream_timeout"), std::string::npos) << answer.body;
      const int64_t took_ns = slow->loop().now_ns() - begun_ns;
      EXPECT_GE(took_ns, 100'000'000);
      EXPECT_LT(took_ns, 1'000'000'000);
      EXPECT_EQ(slow->upstream().requests.size(), 1u);  // Not repeated: it may be under way.
    }());
  }
}

TEST(TimeoutTest, TotalEndsAStreamToo) {
  World world(Policy(kOne, "timeouts: {total: 200ms}"));
  world.upstream().script = [](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    Message request;
    co_await self.ReadRequest(peer, request);
    co_await peer.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
    co_await peer.More();
  };
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer answer = co_await client.Ask(Get("/"));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "a");
    EXPECT_FALSE(answer.complete);
  }());
}

TEST(UpstreamTlsTest, VerifiesTheNameAndRefusesStrangers) {
  const testing::SelfSigned certificate;
  auto server = net::TlsContext::Server(
                    {.cert_file = certificate.cert_file(), .key_file = certificate.key_file()})
                    .value();
  const auto policy = [&](std::string_view tls) {
    return Policy("{name: up, urls: [\"https://UPSTREAM0\"]" + std::string(tls) + "}");
  };
  struct Case {
    std::string tls;
    int status;
  };
  for (const Case& one :
       {Case{", tls: {ca: " + certificate.cert_file() + "}", 200},
        Case{", tls: {ca: " + certificate.cert_file() + ", server_name: localhost}", 200},
        Case{", tls: {ca: " + certificate.cert_file() + ", server_name: other.test}", 502},
        Case{"", 502}}) {
    World world(policy(one.tls), 1, server.get());
    world.Run([&]() -> Task<void> {
      RawClient client(world);
      for (int i = 0; i < 3; ++i) {
        const Answer answer = co_await client.Ask(Post("/v1/x", "{}"));
        EXPECT_EQ(answer.status, one.status) << one.tls;
      }
      EXPECT_EQ(world.upstream().requests.size(), one.status == 200 ? 3u : 0u);
      EXPECT_TRUE(one.status != 200 || world.upstream().accepted == 1);
    }());
  }
}

}  // namespace
}  // namespace weir::gateway
