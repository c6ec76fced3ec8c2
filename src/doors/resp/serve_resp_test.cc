#include "doors/resp/serve_resp.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "net/connector.h"
#include "net/listener.h"
#include "testing/loop_fixture.h"
#include "testing/simulated_engine.h"

namespace weir::doors::resp {
namespace {

using weir::testing::LoopFixture;

constexpr int64_t kMs = 1'000'000;
constexpr const char* kOpen = "listen: {resp: 127.0.0.1:0}";
constexpr const char* kGuarded = "listen: {resp: {address: 127.0.0.1:0, token: pw}}";

struct Heard {
  std::string text;
  bool closed = false;
};

// Sends the pieces, each once the one before has had time to be read, and gives all that comes back
// until the server closes or has been silent for `quiet_ns`.
Task<void> Exchange(net::EventLoop& loop, RespDoor& door, RespOptions options,
                    std::vector<std::string> pieces, int64_t pause_ns, int64_t quiet_ns,
                    const net::DrainFlag& drain, Heard& heard) {
  auto listener = net::Listener::Open(
      loop, net::Endpoint::Parse("127.0.0.1:0").value(), [&](std::unique_ptr<net::Stream> stream) {
        loop.Spawn(ServeResp(std::move(stream), door, options, drain));
      });
  auto client =
      (co_await net::Connect(loop, (*listener)->endpoint(), loop.now_ns() + 1000 * kMs)).value();
  char buffer[65536];
  for (const std::string& piece : pieces) {
    co_await client->Write(piece);
    co_await loop.SleepFor(pause_ns);
  }
  for (;;) {
    client->SetReadDeadline(loop.now_ns() + quiet_ns);
    const net::IoResult got = co_await client->Read(buffer);
    heard.closed = got.status == net::IoStatus::kEnd;
    if (!got.ok()) break;
    heard.text.append(buffer, got.bytes);
  }
  client.reset();
  co_await loop.SleepFor(2 * kMs);  // The server sees the end and leaves the loop.
}

Heard Talk(std::vector<std::string> pieces, RespOptions options = {}, const char* yaml = kOpen,
           bool draining = false, int64_t quiet_ns = 100 * kMs, int64_t pause_ns = kMs) {
  LoopFixture fixture;
  SimulatedEngine weir(yaml);
  RespDoor door(*weir.worker, "0.1.0");
  net::DrainFlag drain{draining};
  Heard heard;
  fixture.RunTask(
      Exchange(fixture.loop(), door, options, std::move(pieces), pause_ns, quiet_ns, drain, heard));
  return heard;
}

TEST(ServeRespTest, AnswersPipelinedCommandsInOrder) {
  const Heard heard =
      Talk({"PING\r\n*2\r\n$4\r\nECHO\r\n$1\r\na\r\n\r\nCL.THROTTLE k 0 1 10\r\n"
            "*1\r\n$4\r\nPING\r\n"});
  EXPECT_EQ(heard.text, "+PONG\r\n$1\r\na\r\n*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:10\r\n+PONG\r\n");
  EXPECT_FALSE(heard.closed);
}

TEST(ServeRespTest, ACommandMayComeInPiecesOfAnySize) {
  const std::string commands = "*2\r\n$4\r\nECHO\r\n$5\r\nhe\r\no\r\n*1\r\n$4\r\nPING\r\n";
  for (size_t cut = 1; cut < commands.size(); cut += 3) {
    const Heard heard =
        Talk({commands.substr(0, cut), commands.substr(cut)}, {}, kOpen, false, 20 * kMs);
    EXPECT_EQ(heard.text, "$5\r\nhe\r\no\r\n+PONG\r\n") << "cut at " << cut;
  }
}

TEST(ServeRespTest, WhatBreaksTheProtocolOrItsBoundsIsToldAndClosed) {
  RespOptions options;
  options.limits = {
      .words_max = 8, .word_bytes_max = 64, .command_bytes_max = 100, .inline_bytes_max = 64};
  const std::pair<std::string, std::string> cases[] = {
      {"*1\r\n+PING\r\n", "expected '$'"},
      {"*9\r\n", "invalid multibulk length"},
      {"*x\r\n", "invalid multibulk length"},
      {"*1\r\n$65\r\n", "invalid bulk length"},
      {"*2\r\n$60\r\n" + std::string(60, 'a') + "\r\n$60\r\n", "invalid bulk length"},
      {std::string(70, 'a'), "too big inline request"},
      {"PING 'a\r\n", "unbalanced quotes in request"}};
  for (const auto& [sent, fault] : cases) {
    const Heard heard = Talk({"PING\r\n" + sent}, options);
    EXPECT_EQ(heard.text, "+PONG\r\n-ERR Protocol error: " + fault + "\r\n") << sent;
    EXPECT_TRUE(heard.closed) << sent;
  }
}

TEST(ServeRespTest, OnlySmallCommandsBeforeThePassword) {
  const std::string large = "*2\r\n$4\r\nECHO\r\n$20000\r\n" + std::string(20000, 'a') + "\r\n";
  const Heard before = Talk({large}, {}, kGuarded);
  EXPECT_EQ(before.text, "-ERR Protocol error: invalid bulk length\r\n");
  EXPECT_TRUE(before.closed);
  const Heard many = Talk({"*11\r\n"}, {}, kGuarded);
  EXPECT_EQ(many.text, "-ERR Protocol error: invalid multibulk length\r\n");
  const Heard after = Talk({"AUTH pw\r\n" + large}, {}, kGuarded);
  EXPECT_EQ(after.text, "+OK\r\n$20000\r\n" + std::string(20000, 'a') + "\r\n");
  EXPECT_FALSE(after.closed);
  const Heard reset = Talk({"AUTH pw\r\nRESET\r\n" + large}, {}, kGuarded);
  EXPECT_EQ(reset.text, "+OK\r\n+RESET\r\n-ERR Protocol error: invalid bulk length\r\n");
}

TEST(ServeRespTest, QuitIsAnsweredAndWhatFollowsIsNot) {
  const Heard heard = Talk({"PING\r\nQUIT\r\nPING\r\n"});
  EXPECT_EQ(heard.text, "+PONG\r\n+OK\r\n");
  EXPECT_TRUE(heard.closed);
}

TEST(ServeRespTest, ARequestOfABrowserIsClosedWithoutAWord) {
  const Heard heard = Talk({"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nCL.THROTTLE k 0 1 1\r\n"});
  EXPECT_EQ(heard.text, "");
  EXPECT_TRUE(heard.closed);
}

TEST(ServeRespTest, MoreRepliesThanOneWriteTakes) {
  std::string commands, wanted;
  const std::string word(1000, 'a');
  for (int i = 0; i < 1000; ++i) {
    commands += "ECHO " + word + "\r\n";
    wanted += "$1000\r\n" + word + "\r\n";
  }
  EXPECT_EQ(Talk({commands}).text, wanted);
}

TEST(ServeRespTest, IdleAndSlowConnectionsAreClosed) {
  RespOptions options;
  options.idle_timeout_ns = 50 * kMs;
  const Heard idle = Talk({"PING\r\n"}, options, kOpen, false, 2000 * kMs);
  EXPECT_EQ(idle.text, "+PONG\r\n");
  EXPECT_TRUE(idle.closed);
  options.command_timeout_ns = 50 * kMs;
  const Heard slow = Talk({"PING\r\n*1\r\n$4\r\nPI"}, options, kOpen, false, 2000 * kMs);
  EXPECT_EQ(slow.text, "+PONG\r\n-ERR Protocol error: the command did not arrive in time\r\n");
  EXPECT_TRUE(slow.closed);
}

TEST(ServeRespTest, AQuietConnectionGivesItsMemoryBackAndGoesOn) {
  const Heard heard = Talk({"AUTH pw\r\n", "PING\r\n"}, {}, kGuarded, false, 100 * kMs, 1100 * kMs);
  EXPECT_EQ(heard.text, "+OK\r\n+PONG\r\n");
  EXPECT_FALSE(heard.closed);
}

TEST(ServeRespTest, ADrainClosesAfterTheReplies) {
  const Heard heard = Talk({"PING\r\nPING\r\n"}, {}, kOpen, /*draining=*/true);
  EXPECT_EQ(heard.text, "+PONG\r\n+PONG\r\n");
  EXPECT_TRUE(heard.closed);
}

}  // namespace
}  // namespace weir::doors::resp
