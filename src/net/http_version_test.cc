#include "net/http_version.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "net/connector.h"
#include "net/event.h"
#include "net/listener.h"
#include "testing/loop_fixture.h"
#include "wire/http2/server_session.h"

namespace weir::net {
namespace {

using weir::testing::LoopFixture;

constexpr int64_t kMs = 1'000'000;

Task<void> SendInPieces(Stream& stream, std::vector<std::string> pieces, bool ends) {
  for (const std::string& piece : pieces) {
    co_await stream.Write(piece);
    co_await stream.loop().SleepFor(3 * kMs);
  }
  if (ends) stream.ShutdownWrite();
}

// What a connection that sends the pieces speaks, and what can still be read of it then.
struct Detected {
  HttpVersion version = HttpVersion::kNone;
  std::string left;
};

Detected Detect(std::vector<std::string> pieces, bool ends = false) {
  LoopFixture fixture;
  Detected detected;
  auto scenario = [&](EventLoop& loop) -> Task<void> {
    std::unique_ptr<Stream> server;
    Event accepted(loop);
    auto listener = Listener::Open(loop, Endpoint::Parse("127.0.0.1:0").value(), [&](auto stream) {
      server = std::move(stream);
      accepted.Set();
    });
    auto client = co_await Connect(loop, (*listener)->endpoint(), loop.now_ns() + 1000 * kMs);
    co_await accepted.Wait();
    loop.Spawn(SendInPieces(**client, pieces, ends));
    detected.version = co_await DetectHttpVersion(*server, 300 * kMs, 100 * kMs);
    if (detected.version != HttpVersion::kNone) {
      char room[64];
      const IoResult got = co_await server->Read(room);
      detected.left.assign(room, got.bytes);
    }
    co_await loop.SleepFor(20 * kMs);  // The sender ends.
  };
  fixture.RunTask(scenario(fixture.loop()));
  return detected;
}

TEST(HttpVersion, ThePrefaceIsHttp2) {
  const Detected detected = Detect({std::string(http2::kClientPreface)});
  EXPECT_EQ(detected.version, HttpVersion::kTwo);
  EXPECT_EQ(detected.left, http2::kClientPreface);  // Nothing was taken.
}

TEST(HttpVersion, ThePrefaceMayComeByteByByte) {
  const Detected detected = Detect({"P", "R", "I", " ", "*"});
  EXPECT_EQ(detected.version, HttpVersion::kTwo);
}

TEST(HttpVersion, AllElseIsHttp1) {
  EXPECT_EQ(Detect({"GET / HTTP/1.1\r\n"}).version, HttpVersion::kOne);
  EXPECT_EQ(Detect({"P", "OST / HTTP/1.1\r\n"}).version, HttpVersion::kOne);
  EXPECT_EQ(Detect({"PRI", "NT / HTTP/1.1\r\n"}).version, HttpVersion::kOne);
  const Detected cut = Detect({"PR"}, /*ends=*/true);
  EXPECT_EQ(cut.version, HttpVersion::kOne);
  EXPECT_EQ(cut.left, "PR");
}

TEST(HttpVersion, NothingInTimeIsNothing) {
  EXPECT_EQ(Detect({}).version, HttpVersion::kNone);
  EXPECT_EQ(Detect({"PRI"}).version, HttpVersion::kNone);
}

}  // namespace
}  // namespace weir::net
