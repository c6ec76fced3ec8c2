// What the gateway does to a call that it forwards: heads, bodies of every framing, order,
// connections.

#include "gateway/gateway_world_test.h"

namespace weir::gateway {
namespace {

using http1::Method;

constexpr char kOpen[] = R"(
listen: {gateway: 127.0.0.1:0}
upstreams: [{name: up, urls: ["http://UPSTREAM0"]}]
routes: [{match: {path: /*}, upstream: up}]
limits: [{name: per-ip, per: [ip], rate: 100000/min}]
)";

TEST(ProxyTest, ForwardsACallAndItsAnswer) {
  World world(kOpen);
  world.upstream().answer =
      "HTTP/1.1 201 Made\r\nX-Own: yes\r\nConnection: x-hop\r\nX-Hop: no\r\nServer: "
      "s\r\nContent-Length: 5\r\n\r\nhello";
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer answer = co_await client.Ask(
        Get("/a//b/../c?q=1&r=%2f", "X-Mine: 1\r\nConnection: x-drop\r\nX-Drop: 1\r\n"));
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(answer.body, "hello");
    EXPECT_EQ(answer.Field("x-own"), "yes");
    EXPECT_EQ(answer.Field("server"), "s");
    EXPECT_EQ(answer.Count("x-hop"), 0);
    EXPECT_EQ(answer.Count("connection"), 0);
    EXPECT_EQ(answer.Count("date"), 1);
    EXPECT_EQ(answer.Field("x-request-id").size(), 32u);
    EXPECT_EQ(answer.Field("x-ratelimit-limit"), "100000");
    const Message& sent = world.upstream().requests.at(0);
    EXPECT_TRUE(sent.head.starts_with("GET /a/c?q=1&r=%2f HTTP/1.1\r\n")) << sent.head;
    EXPECT_EQ(sent.Field("host"), "127.0.0.1:" + std::to_string(world.upstream().port()));
    EXPECT_EQ(sent.Field("x-mine"), "1");
    EXPECT_EQ(sent.Count("x-drop"), 0);
    EXPECT_EQ(sent.Count("connection"), 0);
    EXPECT_EQ(sent.Field("x-forwarded-for"), "127.0.0.1");
    EXPECT_EQ(sent.Field("x-forwarded-proto"), "http");
    EXPECT_EQ(sent.Field("x-forwarded-host"), "gw.test");
    EXPECT_EQ(sent.Field("x-request-id"), answer.Field("x-request-id"));
  }());
}

TEST(ProxyTest, KeepsTheClientsIdsAndShowsTheUpstreamsBesideThem) {
  World world(kOpen);
  world.upstream().answer = "HTTP/1.1 200 OK\r\nx-request-id: req_up\r\nContent-Length: 0\r\n\r\n";
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const std::string trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const Answer answer =
        co_await client.Ask(Get("/", "x-request-id: mine-7\r\ntraceparent: " + trace + "\r\n"));
    EXPECT_EQ(answer.Field("x-request-id"), "mine-7");
    EXPECT_EQ(answer.Field("x-upstream-request-id"), "req_up");
    EXPECT_EQ(world.upstream().requests.at(0).Field("x-request-id"), "mine-7");
    EXPECT_EQ(world.upstream().requests.at(0).Field("traceparent"), trace);
    const Answer again =
        co_await client.Ask(Get("/", "x-request-id: " + std::string(129, 'a') + "\r\n"));
    EXPECT_EQ(again.Field("x-request-id").size(), 32u);  // Too long to be taken over.
  }());
}

TEST(ProxyTest, ReusesBothConnectionsForSequentialCalls) {
  World world(kOpen);
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    for (int i = 0; i < 20; ++i) {
      const std::string request = i % 2 == 0 ? Get("/x") : Post("/x", R"({"a":1})");
      const Answer answer = co_await client.Ask(request);
      EXPECT_EQ(answer.status, 200);
      EXPECT_EQ(answer.body, "ok");
    }
    EXPECT_EQ(world.upstream().accepted, 1);
    EXPECT_EQ(world.upstream().requests.size(), 20u);
    EXPECT_EQ(world.upstream().requests.at(1).body, R"({"a":1})");
  }());
}

TEST(ProxyTest, AnswersPipelinedRequestsInOrder) {
  World world(kOpen);
  world.upstream().script = [](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    Message request;
    for (;;) {
      const bool got = co_await self.ReadRequest(peer, request);
      if (!got) co_return;
      const std::string path = request.head.substr(request.head.find(' ') + 1, 2);
      co_await peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + path);
    }
  };
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer first = co_await client.Ask(Get("/1") + Post("/2", "{}") + Get("/3") + Get("/4"));
    EXPECT_EQ(first.body, "/1");
    for (int i = 2; i <= 4; ++i) {
      const Answer next = co_await client.Read();
      EXPECT_EQ(next.body, "/" + std::to_string(i));
    }
    EXPECT_EQ(world.upstream().requests.at(1).body, "{}");
  }());
}

TEST(ProxyTest, PassesChunkedBodiesWithTrailersBothWays) {
  World world(kOpen);
  world.upstream().answer =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: "
      "X-End\r\n\r\n3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\nX-End: yes\r\nRateLimit: "
      "\"a\";r=1\r\n\r\n";
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer answer = co_await client.Ask(
        "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
        "chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\nX-Sum: 42\r\n\r\n" +
        Get("/d"));
    EXPECT_TRUE(answer.complete);
    EXPECT_EQ(answer.body, "abcdefg");
    EXPECT_EQ(answer.Field("transfer-encoding"), "chunked");
    EXPECT_EQ(answer.trailers,
              (std::vector<std::pair<std::string, std::string>>{{"X-End", "yes"}}));
    const Message& sent = world.upstream().requests.at(0);
    EXPECT_EQ(sent.body, "hello!");
    EXPECT_EQ(sent.Field("transfer-encoding"), "chunked");
    EXPECT_EQ(sent.trailers, (std::vector<std::pair<std::string, std::string>>{{"X-Sum", "42"}}));
    const Answer next =
        co_await client.Read();  // What followed the chunked body is the next request.
    EXPECT_EQ(next.body, "abcdefg");
  }());
}

TEST(ProxyTest, HeadNoContentAndNotModifiedHaveNoBody) {
  World world(kOpen);
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    world.upstream().answer = "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n";
    const Answer head = co_await client.Ask("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", Method::kHead);
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.Field("content-length"), "1234");
    world.upstream().answer = "HTTP/1.1 204 No Content\r\n\r\n";
    const Answer empty = co_await client.Ask(Get("/"));
    EXPECT_EQ(empty.status, 204);
    EXPECT_EQ(empty.Count("content-length"), 0);
    EXPECT_EQ(empty.Count("transfer-encoding"), 0);
    world.upstream().answer = "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n";
    const Answer same = co_await client.Ask(Get("/"));
    EXPECT_EQ(same.status, 304);
    EXPECT_EQ(same.Field("etag"), "\"x\"");
    EXPECT_EQ(world.upstream().accepted, 1);
  }());
}

TEST(ProxyTest, AnswersContinueOnlyOnceTheCallIsAllowed) {
  World world(Replaced(kOpen, "rate: 100000/min", "rate: 1/min"));
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    co_await client.Connect();
    const std::string head =
        "POST /u HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    co_await client.Send(head);
    const bool told = co_await client.ReadUntil("\r\n\r\n");
    EXPECT_TRUE(told);
    EXPECT_EQ(client.in, "HTTP/1.1 100 Continue\r\n\r\n");
    client.in.clear();
    EXPECT_EQ(world.upstream().accepted, 1);  // There is somewhere to send the body.
    const Answer answer = co_await client.Ask("body");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(world.upstream().requests.at(0).body, "body");
    EXPECT_EQ(world.upstream().requests.at(0).Count("expect"), 0);
    const Answer denied = co_await client.Ask(head);
    EXPECT_EQ(denied.status, 429);  // At once, without the body.
    EXPECT_EQ(denied.Field("connection"), "close");
    const bool closed = co_await client.Closed();
    EXPECT_TRUE(closed);
  }());
}

TEST(ProxyTest, OldClientsGetAnswersTheyCanRead) {
  World world(kOpen);
  world.upstream().answer =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer answer = co_await client.Ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(answer.Count("transfer-encoding"), 0);
    EXPECT_EQ(answer.Field("connection"), "close");
    EXPECT_EQ(answer.body, "abcde");
    EXPECT_TRUE(answer.complete);
    world.upstream().answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    RawClient keeping(world);
    for (int i = 0; i < 2; ++i) {
      const Answer kept = co_await keeping.Ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
      EXPECT_EQ(kept.Field("connection"), "keep-alive");
    }
  }());
}

TEST(ProxyTest, PassesInterimAnswersOn) {
  World world(kOpen);
  world.upstream().answer =
      "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nX-RateLimit-Limit: 9\r\n\r\n"
      "HTTP/1.1 100 Continue\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer hints = co_await client.Ask(Get("/"));
    EXPECT_EQ(hints.status, 103);
    EXPECT_EQ(hints.Field("link"), "</a.css>");
    EXPECT_EQ(hints.Count("x-ratelimit-limit"), 0);  // It speaks of the upstream's account.
    const Answer answer = co_await client.Read();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "ok");
  }());
}

TEST(ProxyTest, CarriesAMebibyteBothWays) {
  World world(kOpen);
  std::string body(1 << 20, 0);
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>('a' + i * 7919 % 26);
  for (const bool chunked : {false, true}) {
    world.upstream().answer =
        chunked ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n" + body +
                      "\r\n0\r\n\r\n"
                : "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n" + body;
    const std::string request =
        chunked ? "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n" +
                      body + "\r\n0\r\n\r\n"
                : Post("/b", body);
    world.Run([&]() -> Task<void> {
      RawClient client(world);
      for (int i = 0; i < 2; ++i) {
        const Answer answer = co_await client.Ask(request);
        EXPECT_EQ(answer.status, 200);
        EXPECT_TRUE(answer.complete);
        EXPECT_TRUE(answer.body == body);
        EXPECT_TRUE(world.upstream().requests.back().body == body);
      }
    }());
  }
  EXPECT_EQ(world.upstream().accepted, 1);  // Whole answers leave the connections fit for more.
}

TEST(ProxyTest, ASlowReaderSlowsTheUpstreamDown) {
  World world(kOpen);
  size_t sent_bytes = 0;
  world.upstream().script = [&](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    Message request;
    const bool got = co_await self.ReadRequest(peer, request);
    if (!got) co_return;
    co_await peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n");
    const std::string piece(1 << 16, 'x');
    for (int i = 0; i < 1024; ++i) {
      const bool sent = co_await peer.Send(piece);
      if (!sent) co_return;
      sent_bytes += piece.size();
    }
  };
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    co_await client.Connect();
    co_await client.Send(Get("/"));
    co_await client.ReadUntil("\r\n\r\n");
    co_await world.loop().SleepFor(300'000'000);  // Reads nothing meanwhile.
    // What the kernel's buffers of two connections hold, and one read of ours.
    EXPECT_LT(sent_bytes, 16u << 20);
    client.in.erase(0, client.in.find("\r\n\r\n") + 4);
    Message rest;
    co_await client.ReadBody(rest, http1::BodyKind::kLength, 67108864);
    EXPECT_TRUE(rest.complete);
    EXPECT_EQ(rest.body.size(), 67108864u);
  }());
}

TEST(ProxyTest, RewritesThePrefixAndReplacesTheCredential) {
  World world(R"(
listen: {gateway: 127.0.0.1:0}
upstreams: [{name: ai, urls: ["http://UPSTREAM0/base"], headers: {authorization: "Bearer upstream-key", x-extra: "1"}}]
routes: [{match: {path: /v1/*}, upstream: ai, rewrite: {prefix: /openai/v1}}]
)");
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer answer = co_await client.Ask(Get(
        "/v1/models?x=1",
        "Authorization: Bearer mine\r\nx-api-key: mine\r\napi-key: mine\r\nX-Extra: mine\r\n"
        "X_Extra: mine\r\nX_Api_Key: mine\r\nX_Forwarded_For: mine\r\nTransfer_Encoding: mine\r\n"
        "X_Other: yours\r\n"));
    EXPECT_EQ(answer.status, 200);
    const Message& sent = world.upstream().requests.at(0);
    EXPECT_TRUE(sent.head.starts_with("GET /base/openai/v1/models?x=1 HTTP/1.1\r\n")) << sent.head;
    EXPECT_EQ(sent.Field("authorization"), "Bearer upstream-key");
    EXPECT_EQ(sent.Field("x-extra"), "1");
    EXPECT_EQ(sent.Count("x-extra"), 1);
    EXPECT_EQ(sent.head.find("mine"), std::string::npos);
    EXPECT_EQ(sent.Field("x_other"), "yours");
    const Answer none = co_await client.Ask(Get("/other"));
    EXPECT_EQ(none.status, 404);
    EXPECT_EQ(none.Field("content-type"), "application/problem+json");
  }());
}

// A limit on the path or the method counts what the upstream serves: no field names another one,
// not even a field from a trusted proxy, which may only have passed it on.
TEST(ProxyTest, Case86_NoFieldNamesAnotherTarget) {
  for (const std::string proxies : {"[]", "[127.0.0.1/32]"}) {
    World world("listen: {gateway: 127.0.0.1:0}\nidentity: {trusted_proxies: " + proxies + R"(}
upstreams: [{name: up, urls: ["http://UPSTREAM0"]}]
routes: [{match: {path: /*}, upstream: up}]
limits: [{name: chat, per: [ip], rate: 1/hour, match: {path: /v1/chat}}]
)");
    world.Run([&]() -> Task<void> {
      RawClient client(world);
      const Answer answer =
          co_await client.Ask(Get("/free",
                                  "X-Original-URL: /v1/chat\r\nx-rewrite-url: /v1/chat\r\n"
                                  "X_Original_Url: /v1/chat\r\nX_REWRITE-URL: /v1/chat\r\n"
                                  "X-HTTP-Method-Override: DELETE\r\nx-http-method: DELETE\r\n"
                                  "X-Method-Override: DELETE\r\nX_Method_Override: DELETE\r\n"
                                  "X-Original-Urls: kept\r\n"));
      EXPECT_EQ(answer.status, 200);
      const Message& sent = world.upstream().requests.at(0);
      EXPECT_EQ(sent.head.find("/v1/chat"), std::string::npos) << sent.head;
      EXPECT_EQ(sent.head.find("DELETE"), std::string::npos) << sent.head;
      EXPECT_EQ(sent.Field("x-original-urls"), "kept");
    }());
  }
}

TEST(ProxyTest, RefusesWhatItMustNotForward) {
  World world(kOpen);
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer trace = co_await client.Ask("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(trace.status, 405);
    const Answer above = co_await client.Ask(Get("/a/../../b"));
    EXPECT_EQ(above.status, 400);
    RawClient tunneler(world);
    const Answer connect = co_await tunneler.Ask("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n");
    EXPECT_EQ(connect.status, 405);
    EXPECT_EQ(world.upstream().accepted, 0);
  }());
}

TEST(ProxyTest, Case84f_DrainingConnectionsCloseAfterTheirAnswer) {
  World world(kOpen);
  world.Run([&]() -> Task<void> {
    RawClient busy(world), idle(world);
    const Answer before = co_await busy.Ask(Get("/"));
    EXPECT_EQ(before.Count("connection"), 0);
    const Answer other = co_await idle.Ask(Get("/"));
    EXPECT_EQ(other.status, 200);
    world.drain.draining = true;
    const Answer last = co_await busy.Ask(Get("/"));
    EXPECT_EQ(last.status, 200);
    EXPECT_EQ(last.Field("connection"), "close");
    const bool busy_closed = co_await busy.Closed();
    EXPECT_TRUE(busy_closed);
    world.gateway->CloseIdle();
    const bool idle_closed = co_await idle.Closed();
    EXPECT_TRUE(idle_closed);
    busy.stream.reset();
    const bool gone = co_await world.Eventually([&] { return world.gateway->connections() == 0; });
    EXPECT_TRUE(gone);
  }());
}

TEST(ProxyTest, WritesOneLogLinePerCallWithoutSecrets) {
  std::string lines;
  std::mutex mutex;
  LogOptions options;
  options.sink = [&](std::string_view line) {
    const std::lock_guard lock(mutex);
    lines += std::string(line) + "\n";
  };
  auto logger = Logger::Create(std::move(options)).value();
  World world(kOpen, 1, nullptr, logger.get());
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer answer = co_await client.Ask(
        Get("/p?secret=1", "Authorization: Bearer sk-hidden\r\nx-request-id: id-1\r\n"));
    EXPECT_EQ(answer.status, 200);
  }());
  logger->Flush();
  const std::lock_guard lock(mutex);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
  for (const char* part : {R"("request_id":"id-1")", R"("client":"key:)", R"("limit":"per-ip")",
                           R"("outcome":"allowed")", R"("source":"memory")", R"("status":200)",
                           R"("upstream":"up")", R"("path":"/p")"}) {
    EXPECT_NE(lines.find(part), std::string::npos) << part << " in " << lines;
  }
  EXPECT_EQ(lines.find("sk-hidden"), std::string::npos);
  EXPECT_EQ(lines.find("secret"), std::string::npos);
}

TEST(ProxyTest, ACallThatNobodyWasIdentifiedForHasNoClientInTheLog) {
  std::string lines;
  std::mutex mutex;
  LogOptions options;
  options.sink = [&](std::string_view line) {
    const std::lock_guard lock(mutex);
    lines += std::string(line) + "\n";
  };
  auto logger = Logger::Create(std::move(options)).value();
  World world(kOpen, 1, nullptr, logger.get());
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer named = co_await client.Ask(Get("/p", "Authorization: Bearer sk-hidden\r\n"));
    EXPECT_EQ(named.status, 200);
    const Answer traced = co_await client.Ask("TRACE /q HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(traced.status, 405);
    const Answer small = co_await client.Ask("post /q HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(small.status, 501);  // Not a POST that the limits on POST do not see.
  }());
  logger->Flush();
  const std::lock_guard lock(mutex);
  const size_t second = lines.find('\n') + 1;
  EXPECT_NE(lines.substr(0, second).find(R"("client":"key:)"), std::string::npos) << lines;
  EXPECT_NE(lines.find(R"("path":"/q")", second), std::string::npos) << lines;
  EXPECT_EQ(lines.find(R"("client")", second), std::string::npos) << lines;
}

}  // namespace
}  // namespace weir::gateway
