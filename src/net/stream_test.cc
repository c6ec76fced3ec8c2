#include "net/stream.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "net/connector.h"
#include "net/event.h"
#include "net/listener.h"
#include "net/resolver.h"
#include "net/tls.h"
#include "testing/loop_fixture.h"
#include "testing/self_signed.h"

namespace weir::net {
namespace {

using weir::testing::LoopFixture;

constexpr int64_t kMs = 1'000'000;

// Both ends of one loopback connection.
struct Pair {
  std::unique_ptr<Stream> client;
  std::unique_ptr<Stream> server;
};

Task<Pair> MakePair(EventLoop& loop, std::string address = "127.0.0.1:0") {
  Pair pair;
  Event accepted(loop);
  auto listener =
      Listener::Open(loop, Endpoint::Parse(address).value(), [&](std::unique_ptr<Stream> stream) {
        pair.server = std::move(stream);
        accepted.Set();
      });
  EXPECT_TRUE(listener.has_value());
  auto client = co_await Connect(loop, (*listener)->endpoint(), loop.now_ns() + 1000 * kMs);
  EXPECT_TRUE(client.has_value());
  pair.client = std::move(*client);
  co_await accepted.WaitUntil(loop.now_ns() + 1000 * kMs);
  co_return pair;
}

// Reads until `size` bytes are there or the stream ends.
Task<std::string> ReadExactly(Stream& stream, size_t size) {
  std::string text;
  char buffer[65536];
  while (text.size() < size) {
    const IoResult got =
        co_await stream.Read({buffer, std::min(sizeof buffer, size - text.size())});
    if (!got.ok()) break;
    text.append(buffer, got.bytes);
  }
  co_return text;
}

TEST(Stream, CarriesBytesBothWays) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    Pair pair = co_await MakePair(loop);
    const IoResult sent = co_await pair.client->Write("one ", "two ", "three");
    EXPECT_EQ(sent.bytes, 13u);
    const std::string heard = co_await ReadExactly(*pair.server, 13);
    EXPECT_EQ(heard, "one two three");
    co_await pair.server->Write("four");
    const std::string answer = co_await ReadExactly(*pair.client, 4);
    EXPECT_EQ(answer, "four");
  };
  fixture.RunTask(scenario(fixture.loop()));
}

TEST(Stream, ReadsTheEndAfterTheLastBytes) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    Pair pair = co_await MakePair(loop);
    co_await pair.client->Write("last");
    pair.client->ShutdownWrite();
    char buffer[64];  // Longer than what comes: the short read must not hide the end behind it.
    const IoResult first = co_await pair.server->Read(buffer);
    EXPECT_EQ(std::string_view(buffer, first.bytes), "last");
    const IoResult second = co_await pair.server->Read(buffer);
    EXPECT_EQ(second.status, IoStatus::kEnd);
  };
  fixture.RunTask(scenario(fixture.loop()));
}

Task<void> WriteAll(Stream& stream, std::string_view text, Event& done) {
  const IoResult sent = co_await stream.Write(text);
  EXPECT_EQ(sent.bytes, text.size());
  done.Set();
}

TEST(Stream, WritesMoreThanTheKernelTakesAtOnce) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    Pair pair = co_await MakePair(loop);
    std::string text(20 << 20, 'x');
    for (size_t i = 0; i < text.size(); i += 4096) text[i] = static_cast<char>('a' + i / 4096 % 26);
    Event done(loop);
    loop.Spawn(WriteAll(*pair.client, text, done));
    EXPECT_FALSE(done.is_set());  // Nobody has read yet.
    const std::string heard = co_await ReadExactly(*pair.server, text.size());
    EXPECT_TRUE(heard == text);
    const bool finished = co_await done.WaitUntil(loop.now_ns() + 1000 * kMs);
    EXPECT_TRUE(finished);
  };
  fixture.RunTask(scenario(fixture.loop()));
}

TEST(Stream, ReadDeadlinePasses) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    Pair pair = co_await MakePair(loop);
    pair.server->SetReadDeadline(loop.now_ns() + 30 * kMs);
    char byte[1];
    const IoResult got = co_await pair.server->Read(byte);
    EXPECT_EQ(got.status, IoStatus::kTimedOut);
    pair.server->SetReadDeadline(kNoDeadline);
    co_await pair.client->Write("x");
    const IoResult again = co_await pair.server->Read(byte);
    EXPECT_EQ(again.bytes, 1u);
  };
  fixture.RunTask(scenario(fixture.loop()));
}

TEST(Stream, WriteTimeoutPassesWhenNobodyReads) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    Pair pair = co_await MakePair(loop);
    pair.client->SetWriteTimeout(30 * kMs);
    const std::string text(32 << 20, 'x');
    const IoResult sent = co_await pair.client->Write(text);
    EXPECT_EQ(sent.status, IoStatus::kTimedOut);
    EXPECT_LT(sent.bytes, text.size());
  };
  fixture.RunTask(scenario(fixture.loop()));
}

Task<void> CancelSoon(Stream& stream, EventLoop& loop) {
  co_await loop.SleepFor(5 * kMs);
  stream.Cancel();
}

TEST(Stream, CancelEndsWhatWaits) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    Pair pair = co_await MakePair(loop);
    loop.Spawn(CancelSoon(*pair.server, loop));
    char byte[1];
    const IoResult got = co_await pair.server->Read(byte);
    EXPECT_EQ(got.status, IoStatus::kCancelled);
    const IoResult sent = co_await pair.server->Write("x");
    EXPECT_EQ(sent.status, IoStatus::kCancelled);
  };
  fixture.RunTask(scenario(fixture.loop()));
}

TEST(Stream, TellsOfAHangupWhileNobodyReads) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    Pair pair = co_await MakePair(loop);
    EXPECT_TRUE(pair.server->IsQuiet());
    Event hung_up(loop);
    pair.server->OnHangup([&] { hung_up.Set(); });
    pair.client.reset();
    const bool told = co_await hung_up.WaitUntil(loop.now_ns() + 2000 * kMs);
    EXPECT_TRUE(told);
    EXPECT_FALSE(pair.server->IsQuiet());
  };
  fixture.RunTask(scenario(fixture.loop()));
}

// Two streams have bytes in one tick: whoever is resumed by the first knows of the second.
TEST(Stream, IsNotQuietWithBytesOfTheSameTick) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    Pair first = co_await MakePair(loop);
    Pair second = co_await MakePair(loop);
    char buffer[64];  // Larger than what comes: a short read has drained the socket.
    for (Pair* pair : {&first, &second}) {
      co_await pair->client->Write("answer");
      const IoResult got = co_await pair->server->Read(buffer);
      EXPECT_EQ(got.bytes, 6u);
      EXPECT_TRUE(pair->server->IsQuiet());
    }
    co_await first.client->Write("more");
    co_await second.client->Write("late");
    for (Pair* pair : {&first, &second}) {
      Pair* const other = pair == &first ? &second : &first;
      const IoResult got = co_await pair->server->Read(buffer);
      EXPECT_EQ(got.bytes, 4u);
      EXPECT_TRUE(pair->server->IsQuiet());
      EXPECT_EQ(other->server->IsQuiet(), other == &first);
    }
  };
  fixture.RunTask(scenario(fixture.loop()));
}

TEST(Stream, UnixSocketsWork) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    const std::string address = "unix:/tmp/weir-stream-test-" + std::to_string(getpid()) + ".sock";
    Pair pair = co_await MakePair(loop, address);
    co_await pair.client->Write("over a unix socket");
    const std::string heard = co_await ReadExactly(*pair.server, 18);
    EXPECT_EQ(heard, "over a unix socket");
    EXPECT_NE(access(address.substr(5).c_str(), F_OK), 0) << "the listener left its file behind";
  };
  fixture.RunTask(scenario(fixture.loop()));
}

TEST(Listener, OneAddressIsForOneServerButForAllOfItsLoops) {
  LoopFixture fixture;
  const auto ignore = [](std::unique_ptr<Stream>) {};
  auto first =
      Listener::Open(fixture.loop(), Endpoint::Parse("127.0.0.1:0").value(), ignore).value();
  auto shared = first->Share(fixture.loop(), ignore);
  EXPECT_TRUE(shared.has_value());
  auto second = Listener::Open(fixture.loop(), first->endpoint(), ignore);
  ASSERT_FALSE(second.has_value());
  EXPECT_TRUE(second.error().message.starts_with(first->endpoint().ToString() +
                                                 ": Address already in use; "))
      << second.error().message;
}

TEST(Connect, SaysWhenThePeerRefuses) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    auto listener = Listener::Open(loop, Endpoint::Parse("127.0.0.1:0").value(),
                                   [](std::unique_ptr<Stream>) {});
    const Endpoint gone = (*listener)->endpoint();
    (*listener)->Close();
    auto stream = co_await Connect(loop, gone, loop.now_ns() + 1000 * kMs);
    EXPECT_FALSE(stream.has_value());
    if (!stream) {
      EXPECT_EQ(stream.error().code, ErrorCode::kUnavailable);
      EXPECT_EQ(stream.error().message, "connect to " + gone.ToString() + ": Connection refused");
    }
  };
  fixture.RunTask(scenario(fixture.loop()));
}

TEST(Resolver, FindsLocalhostAndRefusesNonsense) {
  LoopFixture fixture;
  Resolver resolver;
  auto scenario = [](EventLoop& loop, Resolver& names) -> Task<void> {
    auto found = co_await names.Resolve(loop, "localhost", 80);
    EXPECT_EQ(found.value().front().port(), 80);
    auto literal = co_await names.Resolve(loop, "::1", 81);
    EXPECT_EQ(literal.value().front().ToString(), "[::1]:81");
    auto absent = co_await names.Resolve(loop, "no-such-host.invalid", 80);
    EXPECT_FALSE(absent.has_value());
  };
  fixture.RunTask(scenario(fixture.loop(), resolver));
}

Task<void> ServeTls(Stream& stream, const TlsContext& context, EventLoop& loop, Event& done) {
  auto started = co_await stream.StartTlsServer(context, loop.now_ns() + 2000 * kMs);
  if (started) {
    const std::string heard = co_await ReadExactly(stream, 1 << 20);
    co_await stream.Write(heard);
    stream.ShutdownWrite();
  }
  done.Set();
}

Task<void> TlsScenario(EventLoop& loop, const TlsContext& server_context,
                       const TlsContext& client_context, std::string name, bool should_work) {
  Pair pair = co_await MakePair(loop);
  Event done(loop);
  loop.Spawn(ServeTls(*pair.server, server_context, loop, done));
  auto started =
      co_await pair.client->StartTlsClient(client_context, name, loop.now_ns() + 2000 * kMs);
  EXPECT_EQ(started.has_value(), should_work) << (started ? "" : started.error().message);
  if (started) {
    EXPECT_EQ(pair.client->alpn(), "http/1.1");
    const std::string text(1 << 20, 'y');
    Event written(loop);
    loop.Spawn(WriteAll(*pair.client, text, written));
    const std::string echoed = co_await ReadExactly(*pair.client, text.size());
    EXPECT_TRUE(echoed == text);
    char byte[1];
    const IoResult end = co_await pair.client->Read(byte);
    EXPECT_EQ(end.status, IoStatus::kEnd);
  } else {
    pair.client->Cancel();
    pair.client.reset();
  }
  co_await done.WaitUntil(loop.now_ns() + 3000 * kMs);
}

TEST(Tls, CarriesBytesAndVerifiesNames) {
  LoopFixture fixture;
  weir::testing::SelfSigned identity;
  auto server = TlsContext::Server(
      {.cert_file = identity.cert_file(), .key_file = identity.key_file(), .alpn = {"http/1.1"}});
  auto trusting = TlsContext::Client({.ca_file = identity.cert_file(), .alpn = {"h2", "http/1.1"}});
  auto doubting = TlsContext::Client({});
  ASSERT_TRUE(server && trusting && doubting);
  fixture.RunTask(TlsScenario(fixture.loop(), **server, **trusting, "localhost", true));
  fixture.RunTask(TlsScenario(fixture.loop(), **server, **trusting, "127.0.0.1", true));
  fixture.RunTask(TlsScenario(fixture.loop(), **server, **trusting, "example.com", false));
  fixture.RunTask(TlsScenario(fixture.loop(), **server, **doubting, "localhost", false));
}

TEST(Tls, NamesTheFileThatCannotBeUsed) {
  auto context =
      TlsContext::Server({.cert_file = "/no/such/cert.pem", .key_file = "/no/such/key.pem"});
  ASSERT_FALSE(context.has_value());
  EXPECT_EQ(context.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(context.error().message.starts_with("certificate /no/such/cert.pem: "))
      << context.error().message;
}

TEST(Endpoint, ParsesAndPrints) {
  for (const std::string text :
       {"127.0.0.1:8080", "[::1]:0", "unix:/run/weir.sock", "0.0.0.0:65535"}) {
    auto endpoint = Endpoint::Parse(text);
    ASSERT_TRUE(endpoint.has_value()) << text;
    EXPECT_EQ(endpoint->ToString(), text);
  }
  EXPECT_EQ(Endpoint::Parse("localhost:1")->ToString(), "127.0.0.1:1");
  for (const std::string text : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "256.0.0.1:1",
                                 "unix:", "[::1:80", "a:b"}) {
    EXPECT_FALSE(Endpoint::Parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace weir::net
