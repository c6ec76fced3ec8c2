// Calls of a connection to the gRPC door, without a socket.
#include "doors/rls/grpc_connection.h"

#include <atomic>
#include <string>

#include "gtest/gtest.h"
#include "testing/http2_client.h"
#include "testing/loop_fixture.h"
#include "testing/simulated_engine.h"

namespace weir::doors::rls {
namespace {

using weir::testing::Http2Client;
using weir::testing::Http2Fields;
using weir::testing::LoopFixture;

constexpr const char* kAsk = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
constexpr int64_t kPatienceNs = 600'000'000;
constexpr const char* kCheck = "/grpc.health.v1.Health/Check";
// A RateLimitRequest of domain d, with one descriptor {user: a}.
const std::string kRequest(
    "\x0a\x01"
    "d\x12\x0b\x0a\x09\x0a\x04"
    "user\x12\x01"
    "a",
    16);

std::string Framed(const std::string& message) {
  return std::string("\0\0\0\0", 4) + static_cast<char>(message.size()) + message;
}

class GrpcConnectionTest : public ::testing::Test {
 protected:
  GrpcConnectionTest() {
    connection_.Start(session_, [] {});
  }

  static Http2Fields Head(const std::string& path) {
    return {{":method", "POST"},         {":scheme", "http"}, {":path", path},
            {":authority", "localhost"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
  }
  static Http2Fields With(Http2Fields head, const std::string& name, const std::string& value) {
    for (auto& [key, old] : head) {
      if (key == name) {
        old = value;
        return head;
      }
    }
    head.emplace_back(name, value);
    return head;
  }
  const Http2Client::Answer& Ask(const Http2Fields& head, const std::string& body) {
    const int32_t id = client_.Request(head, body);
    for (int round = 0; round < 4; ++round) {
      EXPECT_TRUE(session_.Feed(client_.TakeOutput(), 1));
      wire::Buffer out;
      session_.Drain(out, 1 << 20);
      client_.Feed(out.View());
    }
    return client_.answer(id);
  }
  static std::string StatusOf(const Http2Client::Answer& answer) {
    return answer.header(":status") + "/" + answer.header("grpc-status");
  }

  LoopFixture fixture_;
  SimulatedEngine weir_{"limits: [{name: a, domain: d, descriptor: [{key: user}], rate: 2/min}]"};
  std::atomic<bool> ready_{true};
  RateLimitService service_{*weir_.worker, 1};
  net::DrainFlag drain_;
  GrpcConnection connection_{{service_, ready_},
                             {.message_ns = kPatienceNs, .answer_ns = kPatienceNs},
                             fixture_.loop(),
                             drain_};
  http2::ServerSession session_{{}, connection_};
  Http2Client client_;
};

TEST_F(GrpcConnectionTest, ACallIsAnsweredWithAMessageAndTrailers) {
  const auto& answer = Ask(Head(kAsk), Framed(kRequest));
  ASSERT_EQ(answer.heads.size(), 2u);
  EXPECT_EQ(answer.heads[0],
            (Http2Fields{{":status", "200"}, {"content-type", "application/grpc"}}));
  EXPECT_EQ(answer.heads[1], (Http2Fields{{"grpc-status", "0"}}));
  EXPECT_EQ(answer.body.substr(5, 2), "\x08\x01");  // overall_code: OK
  EXPECT_TRUE(answer.closed);
  EXPECT_EQ(answer.error_code, http2::kNoError);
}

TEST_F(GrpcConnectionTest, Case60_OverTheLimitIsAnAnswer) {
  for (int i = 0; i < 2; ++i) Ask(Head(kAsk), Framed(kRequest));
  const auto& answer = Ask(Head(kAsk), Framed(kRequest));
  EXPECT_EQ(StatusOf(answer), "200/0");
  EXPECT_EQ(answer.body.substr(5, 2), "\x08\x02");  // overall_code: OVER_LIMIT
}

TEST_F(GrpcConnectionTest, HealthIsReadinessAndCountsNowhere) {
  EXPECT_EQ(Ask(Head(kCheck), Framed("")).body, Framed("\x08\x01"));
  ready_ = false;
  EXPECT_EQ(Ask(Head(kCheck), Framed("")).body, Framed("\x08\x02"));
  EXPECT_EQ(StatusOf(Ask(Head(kCheck), Framed("\x0a\x01x"))), "200/5");
  EXPECT_EQ(StatusOf(Ask(Head(kCheck), Framed("\xff"))), "200/3");
}

TEST_F(GrpcConnectionTest, WhatIsNoCallOfOursIsRefused) {
  EXPECT_EQ(StatusOf(Ask(Head("/a.B/C"), Framed(kRequest))), "200/12");
  EXPECT_EQ(StatusOf(Ask(With(Head(kAsk), "grpc-encoding", "gzip"), Framed(kRequest))), "200/12");
  EXPECT_EQ(StatusOf(Ask(With(Head(kAsk), "content-type", "application/json"), "{}")), "415/");
  EXPECT_EQ(StatusOf(Ask(With(Head(kAsk), "content-type", "application/grpc-web"), "")), "415/");
  EXPECT_EQ(StatusOf(Ask(With(Head(kAsk), ":method", "PUT"), "")), "405/");
  EXPECT_EQ(StatusOf(Ask(Head(kAsk), "")), "200/3");
  EXPECT_EQ(StatusOf(Ask(Head(kAsk), Framed(kRequest) + Framed(kRequest))), "200/3");
  EXPECT_EQ(StatusOf(Ask(Head(kAsk), std::string("\0\0\x01\0\0", 5))), "200/8");
  EXPECT_EQ(
      StatusOf(Ask(With(Head(kAsk), "content-type", "application/grpc+proto"), Framed(kRequest))),
      "200/0");
}

TEST_F(GrpcConnectionTest, ACallWithoutTimeIsGivenUpUncharged) {
  EXPECT_EQ(StatusOf(Ask(With(Head(kAsk), "grpc-timeout", "0n"), Framed(kRequest))), "200/4");
  EXPECT_EQ(StatusOf(Ask(With(Head(kAsk), "grpc-timeout", "1 s"), Framed(kRequest))), "200/3");
  for (int i = 0; i < 2; ++i) {
    const auto& answer = Ask(With(Head(kAsk), "grpc-timeout", "20m"), Framed(kRequest));
    EXPECT_EQ(answer.body.substr(5, 2), "\x08\x01") << i;
  }
}

TEST_F(GrpcConnectionTest, FaultsAreSaidPercentEncoded) {
  const auto& answer = Ask(Head(kAsk), Framed(std::string("\x12\x02\x0a\x00", 4)));
  EXPECT_EQ(StatusOf(answer), "200/3");
  EXPECT_NE(answer.header("grpc-message").find("domain"), std::string::npos);
}

// What the calls of a connection hold is bounded by its window, however many they are.
TEST_F(GrpcConnectionTest, UnfinishedMessagesHoldNoMoreThanTheWindow) {
  const std::string part("\0\0\0\xd0\0", 5);  // 53,248 bytes are announced.
  size_t sent = 0;
  for (int i = 0; i < 100; ++i) {
    client_.RequestOpen(Head(kAsk), part + std::string(50'000, 'x'));
    const std::string up = client_.TakeOutput();
    sent += up.size();
    ASSERT_TRUE(session_.Feed(up, 1));
    wire::Buffer out;
    session_.Drain(out, 1 << 20);
    client_.Feed(out.View());
  }
  EXPECT_LT(sent, (size_t{1} << 20) + 20'000);
}

TEST_F(GrpcConnectionTest, CallsThatStandStillAreReset) {
  const int32_t without_message = client_.RequestOpen(Head(kAsk), std::string("\0", 1));
  ASSERT_TRUE(session_.Feed(client_.TakeOutput(), 1));
  fixture_.RunTask([](net::EventLoop& loop, const http2::ServerSession& session) -> Task<void> {
    while (session.open_streams() > 0) {
      wire::Buffer out;
      const_cast<http2::ServerSession&>(session).Drain(out, 1 << 20);
      co_await loop.SleepFor(10'000'000);
    }
  }(fixture_.loop(), session_));
  EXPECT_EQ(session_.open_streams(), 0u);
  EXPECT_GT(without_message, 0);
}

TEST_F(GrpcConnectionTest, CallsAreUsedAgain) {
  constexpr int64_t kStepNs = 100'000'000;
  for (int64_t i = 0; i < 1000; ++i) {
    const int32_t id = client_.Request(Head(kAsk), Framed(kRequest));
    ASSERT_TRUE(session_.Feed(client_.TakeOutput(), i * kStepNs));
    if (i % 3 == 0) client_.Reset(id);
    ASSERT_TRUE(session_.Feed(client_.TakeOutput(), i * kStepNs)) << session_.fault();
    wire::Buffer out;
    session_.Drain(out, 1 << 20);
    client_.Feed(out.View());
    ASSERT_TRUE(client_.answer(id).closed) << i;
  }
  EXPECT_EQ(session_.open_streams(), 0u);
}

}  // namespace
}  // namespace weir::doors::rls
