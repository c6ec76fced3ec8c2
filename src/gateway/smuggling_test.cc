// Requests that two readers could frame differently are refused, the connection is closed, and the
// upstream sees nothing.

#include "gateway/gateway_world_test.h"

namespace weir::gateway {
namespace {

constexpr char kOpen[] = R"(
listen: {gateway: 127.0.0.1:0}
upstreams: [{name: up, urls: ["http://UPSTREAM0"]}]
routes: [{match: {path: /*}, upstream: up}]
)";

struct Shape {
  const char* name;
  std::string request;
  int status = 400;
};

std::vector<Shape> Shapes() {
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
  return {
      {"ContentLengthTwice", post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx"},
      {"ContentLengthTwiceEqual", post + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx"},
      {"ContentLengthList", post + "Content-Length: 1, 1\r\n\r\nx"},
      {"ContentLengthSigned", post + "Content-Length: +1\r\n\r\nx"},
      {"LengthAndChunked",
       post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"XChunked", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"},
      {"ChunkedTwice", post + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"},
      {"ChunkedOnHttp10",
       "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"TwoHosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
      {"NoHost", "GET / HTTP/1.1\r\nX: y\r\n\r\n"},
      {"ObsFold", "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n"},
      {"BareLf", "GET / HTTP/1.1\nHost: a\n\n"},
      {"BareLfInField", "GET / HTTP/1.1\r\nHost: a\r\nX: b\nY: c\r\n\r\n"},
      {"SpaceBeforeColon", "GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n"},
      {"BadChunkSize", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n"},
      {"NegativeChunkSize", post + "Transfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n0\r\n\r\n"},
      {"LongChunkExtension", post + "Transfer-Encoding: chunked\r\n\r\n1;" +
                                 std::string(1 << 20, 'x') + "\r\na\r\n0\r\n\r\n"},
  };
}

class SmugglingTest : public ::testing::TestWithParam<Shape> {};

TEST_P(SmugglingTest, Case86_IsRefusedClosedAndNotForwarded) {
  World world(kOpen);
  // An upstream that only takes note of what comes.
  std::string seen;
  world.upstream().script = [&](ScriptedUpstream&, Peer& peer) -> Task<void> {
    for (;;) {
      const net::IoStatus status = co_await peer.More();
      if (status != net::IoStatus::kOk) break;
    }
    seen += peer.in;
  };
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer answer = co_await client.Ask(GetParam().request + Get("/smuggled"));
    EXPECT_EQ(answer.status, GetParam().status) << answer.body;
    EXPECT_EQ(answer.Field("connection"), "close");
    EXPECT_NE(answer.body.find("{"), std::string::npos);
    const bool closed = co_await client.Closed();
    EXPECT_TRUE(closed);
    client.stream.reset();
    const bool gone = co_await world.Eventually([&] { return world.gateway->connections() == 0; });
    EXPECT_TRUE(gone);
  }());
  EXPECT_EQ(seen.find("smuggled"), std::string::npos);
  // Only a fault in what came after the head had gone on leaves a trace: a request cut short.
  if (std::string_view(GetParam().name) != "LongChunkExtension") {
    EXPECT_EQ(world.upstream().accepted, 0);
  }
  EXPECT_TRUE(world.upstream().requests.empty());
  EXPECT_EQ(seen.find("0\r\n\r\n"), std::string::npos) << seen;
}

INSTANTIATE_TEST_SUITE_P(Shapes, SmugglingTest, ::testing::ValuesIn(Shapes()),
                         [](const auto& shape) { return std::string(shape.param.name); });

TEST(BoundsTest, LongHeadsTargetsAndMethodsAreRefused) {
  World world(Replaced(kOpen, "routes:", "bounds: {header: 8KiB, body: 1KiB}\nroutes:"));
  const std::vector<Shape> shapes = {
      {"head", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(9000, 'x') + "\r\n\r\n", 431},
      {"target", "GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n", 414},
      {"method", std::string(33, 'M') + " / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
      {"version", "GET / HTTP/2.7\r\nHost: a\r\n\r\n", 505},
      {"length", Post("/", std::string(2000, 'x')), 413},
      {"chunked",
       "POST /v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n" +
           std::string(2048, 'x') + "\r\n0\r\n\r\n",
       413},
  };
  world.Run([&]() -> Task<void> {
    for (const Shape& shape : shapes) {
      RawClient client(world);
      const Answer answer = co_await client.Ask(shape.request);
      EXPECT_EQ(answer.status, shape.status) << shape.name;
      // What has arrived whole is out of the way, so that connection can stay.
      if (std::string_view(shape.name) != "length") {
        EXPECT_EQ(answer.Field("connection"), "close") << shape.name;
      }
    }
  }());
  EXPECT_TRUE(world.upstream().requests.empty());
}

TEST(BoundsTest, SlowHeadsAndSlowBodiesTimeOutAndIdleConnectionsClose) {
  World world(
      Replaced(kOpen, "routes:", "timeouts: {header: 100ms, idle: 200ms, write: 100ms}\nroutes:"));
  world.Run([&]() -> Task<void> {
    RawClient head(world);
    const Answer late = co_await head.Ask("GET / HTTP/1.1\r\nHo");
    EXPECT_EQ(late.status, 408);
    RawClient body(world);
    const Answer cut =
        co_await body.Ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    EXPECT_EQ(cut.status, 408);
    RawClient idle(world);
    const Answer first = co_await idle.Ask(Get("/"));
    EXPECT_EQ(first.status, 200);
    const bool closed = co_await idle.Closed();
    EXPECT_TRUE(closed);
  }());
}

}  // namespace
}  // namespace weir::gateway
