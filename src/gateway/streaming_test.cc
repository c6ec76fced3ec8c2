// Streams and tunnels: events pass at once, memory stays bounded, slots come back however a stream
// ends.

#include <fstream>
#include <sstream>

#include "gateway/gateway_world_test.h"
#include "net/event.h"

namespace weir::gateway {
namespace {

std::string Policy(std::string_view limits, std::string_view more = "") {
  return std::string(R"(
listen: {gateway: 127.0.0.1:0}
upstreams: [{name: up, urls: ["http://UPSTREAM0"]}]
routes: [{match: {path: /*}, upstream: up}]
)") + std::string(more) +
         "\nlimits:\n" + std::string(limits);
}

constexpr char kStreamHead[] =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string Chunk(std::string_view text) {
  wire::Buffer out;
  http1::ChunkedWriter::AppendChunk(out, text);
  return std::string(out.View());
}

// Sanitizers keep freed memory and shadow it: resident bytes say nothing then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsMeasurable = false;
#else
constexpr bool kMemoryIsMeasurable = true;
#endif

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
}

TEST(StreamingTest, Case84d_EachEventPassesAtOnce) {
  World world(Policy("  - {name: ip, per: [ip], rate: 100/min}\n"));
  net::Event next(world.loop());
  world.upstream().script = [&](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    Message request;
    const bool got = co_await self.ReadRequest(peer, request);
    if (!got) co_return;
    co_await peer.Send(kStreamHead);
    for (int i = 0; i < 20; ++i) {
      co_await next.Wait();
      next.Reset();
      co_await peer.Send(Chunk("data: " + std::to_string(i) + "\n\n"));
    }
    co_await peer.Send("0\r\n\r\n");
  };
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    co_await client.Connect();
    co_await client.Send(Post("/v1/chat/completions", "{}"));
    const bool begun =
        co_await client.ReadUntil("\r\n\r\n");  // The head does not wait for the first event.
    EXPECT_TRUE(begun);
    EXPECT_NE(client.in.find("X-RateLimit-Remaining: 99"), std::string::npos) << client.in;
    int64_t slowest_ns = 0;
    for (int i = 0; i < 20; ++i) {
      const int64_t sent_ns = world.loop().clock().MonotonicNs();
      next.Set();  // Not before the one before it has arrived: nothing may be held back.
      const bool came = co_await client.ReadUntil("data: " + std::to_string(i) + "\n\n");
      EXPECT_TRUE(came);
      slowest_ns = std::max(slowest_ns, world.loop().clock().MonotonicNs() - sent_ns);
    }
    EXPECT_LT(slowest_ns, 100'000'000);
    const bool ended = co_await client.ReadUntil("0\r\n\r\n");
    EXPECT_TRUE(ended);
  }());
}

TEST(StreamingTest, Case84d_AnEndlessLineTakesNoMemory) {
  World world(Policy("  - {name: ip, per: [ip], rate: 100/min}\n"));
  constexpr int kPieces = 1600;  // of 64 KiB: 100 MiB without a newline
  world.upstream().script = [&](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    Message request;
    const bool got = co_await self.ReadRequest(peer, request);
    if (!got) co_return;
    co_await peer.Send(kStreamHead);
    const std::string piece = Chunk(std::string(65536, 'x'));
    for (int i = 0; i < kPieces; ++i) {
      const bool sent = co_await peer.Send(piece);
      if (!sent) co_return;
    }
    co_await peer.Send("0\r\n\r\n");
  };
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    co_await client.Connect();
    const int64_t before = ResidentBytes();
    co_await client.Send(Get("/"));
    int64_t received = 0;
    int64_t most = 0;
    std::string tail;
    for (;;) {
      const net::IoStatus status = co_await client.More();
      if (status != net::IoStatus::kOk) break;
      received += static_cast<int64_t>(client.in.size());
      most = std::max(most, ResidentBytes());
      tail =
          (tail + client.in)
              .substr(tail.size() + client.in.size() > 5 ? tail.size() + client.in.size() - 5 : 0);
      client.in.clear();
      if (tail == "0\r\n\r\n") break;
    }
    EXPECT_GT(received, int64_t{kPieces} * 65536);
    EXPECT_TRUE(!kMemoryIsMeasurable || most - before < 8 << 20) << most - before;
  }());
}

TEST(StreamingTest, Case84b_AbortedStreamsFreeTheirSlot) {
  World world(Policy("  - {name: slots, per: [ip], parallel: 1}\n"));
  world.upstream().script = [&](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    Message request;
    const bool got = co_await self.ReadRequest(peer, request);
    if (!got) co_return;
    co_await peer.Send(std::string(kStreamHead) + Chunk("data: 1\n\n"));
    for (;;) {  // Never ends by itself.
      const net::IoStatus status = co_await peer.More();
      if (status != net::IoStatus::kOk) co_return;
    }
  };
  world.Run([&]() -> Task<void> {
    for (int i = 0; i < 50; ++i) {
      RawClient client(world);
      co_await client.Connect();
      co_await client.Send(Get("/"));
      const bool begun = co_await client.ReadUntil("data: 1");
      EXPECT_TRUE(begun) << i << ": " << client.in;
      if (i == 0) {
        RawClient second(world);
        const Answer denied = co_await second.Ask(Get("/"));
        EXPECT_EQ(denied.status, 429);
      }
      client.stream.reset();  // In the midst of the stream.
      const bool over = co_await world.Eventually([&] { return world.gateway->calls() == 0; });
      EXPECT_TRUE(over);
    }
  }());
  EXPECT_EQ(world.upstream().requests.size(), 50u);
  EXPECT_NE(world.engine->metrics().Expose().find("weir_streams 0"), std::string::npos);
}

TEST(StreamingTest, Case81_ParallelCallsNeverExceedTheirNumber) {
  World world(Policy("  - {name: slots, per: [ip], parallel: 10}\n"));
  int in_flight = 0;
  int most = 0;
  bool released = false;
  world.upstream().script = [&](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    Message request;
    const bool got = co_await self.ReadRequest(peer, request);
    if (!got) co_return;
    most = std::max(most, ++in_flight);
    while (!released) co_await self.loop().SleepFor(1'000'000);
    --in_flight;
    co_await peer.Send(self.answer);
  };
  world.Run([&]() -> Task<void> {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 100; ++i) {
      clients.push_back(std::make_unique<RawClient>(world));
      co_await clients.back()->Connect();
    }
    for (auto& client : clients) co_await client->Send(Post("/v1/chat/completions", "{}"));
    const bool full =
        co_await world.Eventually([&] { return in_flight == 10 && world.gateway->calls() == 10; });
    EXPECT_TRUE(full) << in_flight;
    released = true;
    int allowed = 0, denied = 0;
    for (auto& client : clients) {
      const Answer answer = co_await client->Read();
      allowed += answer.status == 200;
      denied += answer.status == 429;
    }
    EXPECT_EQ(allowed, 10);
    EXPECT_EQ(denied, 90);
    EXPECT_EQ(most, 10);
  }());
}

TEST(StreamingTest, SlotsComeBackAfterEveryKindOfEnd) {
  World world(
      Policy("  - {name: slots, per: [ip], parallel: 1}\n", "timeouts: {first_byte: 100ms}"));
  int call = 0;
  world.upstream().script = [&](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    Message request;
    for (;;) {
      const bool got = co_await self.ReadRequest(peer, request);
      if (!got) co_return;
      switch (call++ % 4) {
        case 0:
          co_await peer.Send("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
          break;
        case 1:
          co_return;  // Closes without an answer.
        case 2:
          co_await peer.ReadUntil("never");  // Silence: times out.
          co_return;
        default:
          co_await peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
          co_return;  // Cut short.
      }
    }
  };
  const std::vector<int> expected = {500, 502, 504, 200};
  world.Run([&]() -> Task<void> {
    for (int i = 0; i < 12; ++i) {
      RawClient client(world);
      const Answer answer = co_await client.Ask(Post("/", "{}"));
      EXPECT_EQ(answer.status, expected[static_cast<size_t>(i % 4)]) << i;
      EXPECT_EQ(answer.complete, i % 4 != 3) << i;
    }
  }());
}

TEST(StreamingTest, AClientThatLeavesWhileTheUpstreamThinksCancelsTheCall) {
  World world(Policy("  - {name: ip, per: [ip], rate: 100/min}\n"));
  bool upstream_saw_end = false;
  world.upstream().script = [&](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    Message request;
    const bool got = co_await self.ReadRequest(peer, request);
    if (!got) co_return;
    const net::IoStatus status = co_await peer.More();
    upstream_saw_end = status == net::IoStatus::kEnd || status == net::IoStatus::kBroken;
  };
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    co_await client.Connect();
    co_await client.Send(Get("/slow"));
    const bool asked =
        co_await world.Eventually([&] { return !world.upstream().requests.empty(); });
    EXPECT_TRUE(asked);
    client.stream.reset();
    const bool ended = co_await world.Eventually(
        [&] { return upstream_saw_end && world.gateway->connections() == 0; });
    EXPECT_TRUE(ended);
  }());
}

TEST(StreamingTest, AnEarlyAnswerEndsTheUpload) {
  World world(Policy("  - {name: ip, per: [ip], rate: 100/min}\n"));
  world.upstream().script = [&](ScriptedUpstream&, Peer& peer) -> Task<void> {
    co_await peer.ReadUntil("\r\n\r\n");
    co_await peer.Send(
        "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
    co_await net::CloseGently(*peer.stream);
  };
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    co_await client.Connect();
    co_await client.Send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" +
                         std::string(1000, 'x'));
    const Answer answer = co_await client.Read();
    EXPECT_EQ(answer.status, 413);
    EXPECT_EQ(answer.body, "big");
    EXPECT_EQ(answer.Field("connection"), "close");
    const bool closed = co_await client.Closed();
    EXPECT_TRUE(closed);
  }());
}

std::string UpgradeRequest(std::string_view protocol = "websocket") {
  return "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: " +
         std::string(protocol) +
         "\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
}

Task<void> EchoAfterUpgrade(ScriptedUpstream& self, Peer& peer) {
  Message request;
  const bool got = co_await self.ReadRequest(peer, request);
  if (!got) co_return;
  if (request.Count("upgrade") == 0) {
    co_await peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain");
    co_return;
  }
  co_await peer.Send(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhi:");
  for (;;) {
    if (!peer.in.empty()) {
      co_await peer.Send(std::exchange(peer.in, {}));
    }
    const net::IoStatus status = co_await peer.More();
    if (status != net::IoStatus::kOk) break;
  }
  peer.stream->ShutdownWrite();
}

TEST(TunnelTest, Case84e_UpgradesAreLimitedAndEcho) {
  World world(Policy("  - {name: ip, per: [ip], rate: 3/hour}\n"));
  world.upstream().script = EchoAfterUpgrade;
  world.Run([&]() -> Task<void> {
    int passed = 0, denied = 0;
    for (int i = 0; i < 10; ++i) {
      RawClient client(world);
      co_await client.Connect();
      co_await client.Send(UpgradeRequest() +
                           "early");  // Bytes right behind the request belong to the tunnel.
      co_await client.ReadUntil("\r\n\r\n");
      if (client.in.starts_with("HTTP/1.1 429")) {
        ++denied;
        continue;
      }
      EXPECT_TRUE(client.in.starts_with("HTTP/1.1 101")) << client.in;
      EXPECT_NE(client.in.find("Upgrade: websocket\r\n"), std::string::npos) << client.in;
      ++passed;
      const bool early = co_await client.ReadUntil("hi:early");
      EXPECT_TRUE(early) << client.in;
      client.in.clear();
      const std::string long_message(200'000, 'm');
      co_await client.Send(long_message + "|end");
      const bool echoed = co_await client.ReadUntil("|end");
      EXPECT_TRUE(echoed);
      EXPECT_EQ(client.in.size(), long_message.size() + 4);
      client.in.clear();
      client.stream->ShutdownWrite();
      const bool closed = co_await client.Closed();
      EXPECT_TRUE(closed);
    }
    EXPECT_EQ(passed, 3);
    EXPECT_EQ(denied, 7);
    const bool over = co_await world.Eventually([&] { return world.gateway->calls() == 0; });
    EXPECT_TRUE(over);
  }());
}

TEST(TunnelTest, HttpItselfIsNoProtocolToSwitchTo) {
  World world(Policy("  - {name: ip, per: [ip], rate: 100/hour}\n"));
  world.upstream().script = EchoAfterUpgrade;
  const std::vector<std::string> protocols = {"h2c", "HTTP/2.0", "websocket, h2c", "TLS/1.0"};
  world.Run([&]() -> Task<void> {
    for (const std::string& protocol : protocols) {
      RawClient client(world);
      const Answer answer = co_await client.Ask(UpgradeRequest(protocol));
      EXPECT_EQ(answer.status, 200) << protocol;
      EXPECT_EQ(answer.body, "plain");
    }
  }());
}

TEST(TunnelTest, SilentTunnelsEndAfterTheIdleTime) {
  World world(Policy("  - {name: ip, per: [ip], rate: 100/hour}\n", "timeouts: {idle: 150ms}"));
  world.upstream().script = EchoAfterUpgrade;
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    co_await client.Connect();
    co_await client.Send(UpgradeRequest());
    co_await client.ReadUntil("hi:");
    client.in.clear();
    const bool closed = co_await client.Closed();
    EXPECT_TRUE(closed);
  }());
}

TEST(MemoryTest, IdleConnectionsAndOpenStreamsAreSmall) {
  if (!kMemoryIsMeasurable) GTEST_SKIP() << "sanitizers hold memory of their own";
  World world(Policy("  - {name: ip, per: [ip], rate: 100000/min}\n"));
  world.upstream().script = [&](ScriptedUpstream& self, Peer& peer) -> Task<void> {
    Message request;
    peer.read_bytes = 512;
    const bool got = co_await self.ReadRequest(peer, request);
    if (!got) co_return;
    if (request.head.starts_with("GET /stream")) {
      co_await peer.Send(std::string(kStreamHead) + Chunk("data: 1\n\n"));
    } else {
      co_await peer.Send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
    co_await peer.More();
  };
  world.Run([&]() -> Task<void> {
    constexpr int kConnections = 300;
    for (int kind = 0; kind < 2; ++kind) {
      const bool streams = kind == 1;
      const int64_t before = ResidentBytes();
      std::vector<std::unique_ptr<RawClient>> clients;
      for (int i = 0; i < kConnections; ++i) {
        clients.push_back(std::make_unique<RawClient>(world));
        clients.back()->read_bytes = 512;
        co_await clients.back()->Connect();
        co_await clients.back()->Send(Get(streams ? "/stream" : "/"));
        co_await clients.back()->ReadUntil(streams ? "data: 1" : "ok");
      }
      // This side of each connection is in the figure too: an upper bound.
      const int64_t each = (ResidentBytes() - before) / kConnections;
      RecordProperty(streams ? "bytes_per_stream" : "bytes_per_idle_connection",
                     static_cast<int>(each));
      EXPECT_LT(each, streams ? 64 << 10 : 24 << 10);
    }
  }());
}

}  // namespace
}  // namespace weir::gateway
