#include "wire/http2/server_session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "testing/http2_client.h"

namespace weir::http2 {
namespace {

using weir::testing::Http2Client;
using weir::testing::Http2Fields;
using weir::testing::Http2Frame;

constexpr int64_t kSecond = 1'000'000'000;

// Notes what it is told, and answers with what the test has put into `body`.
struct Recorder : ServerStream {
  void OnHeader(std::string_view name, std::string_view value) override {
    (has_head ? trailers : head).emplace_back(name, value);
  }
  void OnHead(bool ends, bool is_too_large) override {
    has_head = true;
    ended = ends;
    too_large = is_too_large;
  }
  void OnData(std::string_view bytes) override { received += bytes; }
  void OnEnd() override { ended = true; }
  void OnClosed(uint32_t code) override {
    EXPECT_FALSE(closed);
    closed = true;
    error_code = code;
  }
  Piece Read(std::span<char> room) override {
    const size_t bytes = std::min(room.size(), body.size());
    std::copy_n(body.data(), bytes, room.data());
    body.erase(0, bytes);
    if (!body.empty()) return {.bytes = bytes, .then = Piece::Then::kMore};
    if (then == Piece::Then::kTrailers) send_trailers();
    return {.bytes = bytes, .then = then};
  }

  Http2Fields head, trailers;
  std::string received;
  bool has_head = false, too_large = false, ended = false, closed = false;
  uint32_t error_code = 99;
  std::string body;
  Piece::Then then = Piece::Then::kEnd;
  std::function<void()> send_trailers;
};

// A client and a server that exchange bytes when told to.
class SessionTest : public ::testing::Test, public Acceptor {
 protected:
  ServerStream* OnStream(int32_t id) override {
    if (refuses_) return nullptr;
    return (streams_[id] = std::make_unique<Recorder>()).get();
  }

  // False: the server wants to end the connection.
  bool Exchange() {
    bool alive = true;
    for (int round = 0; round < 100; ++round) {
      const std::string up = client_->TakeOutput();
      alive = server_->Feed(up, now_ns_) && alive;
      const std::string down = Drain();
      if (up.empty() && down.empty()) return alive;
      client_->Feed(down);
    }
    ADD_FAILURE() << "no end of frames";
    return alive;
  }
  std::string Drain() {
    wire::Buffer out;
    while (server_->Drain(out, 1 << 20)) {
    }
    return std::string(out.View());
  }
  void Start(const SessionLimits& limits, std::optional<uint32_t> client_window = {}) {
    server_ = std::make_unique<ServerSession>(limits, *this);
    client_ = std::make_unique<Http2Client>(client_window);
  }
  Recorder& stream(int32_t id) { return *streams_.at(id); }
  static Http2Fields Get(std::string path = "/") {
    return {{":method", "GET"},
            {":scheme", "http"},
            {":path", std::move(path)},
            {":authority", "localhost"}};
  }
  // A connection that the client's library would not make: the preface, then these frames.
  bool FeedRaw(const std::string& frames) {
    const std::string start = std::string(kClientPreface) + Http2Frame(4, 0, 0, "");
    const bool alive = server_->Feed(start + frames, now_ns_);
    raw_answer_ = Drain();
    return alive;
  }
  bool AnswersWithGoAway(uint32_t code) { return Http2GoAwayCode(raw_answer_) == code; }
  static std::optional<uint32_t> Http2GoAwayCode(std::string_view frames) {
    std::optional<uint32_t> code;
    while (frames.size() >= 9) {
      const auto at = [&](size_t i) {
        return static_cast<uint32_t>(static_cast<uint8_t>(frames[i]));
      };
      const size_t length = at(0) << 16 | at(1) << 8 | at(2);
      if (at(3) == 7 && frames.size() >= 17)
        code = at(13) << 24 | at(14) << 16 | at(15) << 8 | at(16);
      frames.remove_prefix(std::min(frames.size(), 9 + length));
    }
    return code;
  }

  std::map<int32_t, std::unique_ptr<Recorder>> streams_;
  std::unique_ptr<ServerSession> server_ = std::make_unique<ServerSession>(SessionLimits{}, *this);
  std::unique_ptr<Http2Client> client_ = std::make_unique<Http2Client>();
  std::string raw_answer_;
  int64_t now_ns_ = kSecond;
  bool refuses_ = false;
};

TEST_F(SessionTest, ARequestIsAnsweredWithABodyAndTrailers) {
  const int32_t id = client_->Request(Get("/a?b"));
  ASSERT_TRUE(Exchange());
  Recorder& request = stream(id);
  EXPECT_EQ(request.head, Get("/a?b"));
  EXPECT_TRUE(request.ended);
  request.body = "hello";
  request.then = Piece::Then::kTrailers;
  request.send_trailers = [&] {
    const Header trailers[] = {{"grpc-status", "0", true}};
    server_->SendTrailers(id, trailers);
  };
  const std::string one = "1";
  const Header head[] = {{":status", "200", true}, {"x-one", one}};
  server_->Respond(id, head, Body::kFollows);
  ASSERT_TRUE(Exchange());
  const Http2Client::Answer& answer = client_->answer(id);
  ASSERT_EQ(answer.heads.size(), 2u);
  EXPECT_EQ(answer.heads[0], (Http2Fields{{":status", "200"}, {"x-one", "1"}}));
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.heads[1], (Http2Fields{{"grpc-status", "0"}}));
  EXPECT_TRUE(answer.closed);
  EXPECT_TRUE(request.closed);
  EXPECT_EQ(request.error_code, kNoError);
  EXPECT_EQ(server_->open_streams(), 0u);
}

TEST_F(SessionTest, ABodyThatComesLaterIsAskedForAgain) {
  const int32_t id = client_->Request(Get());
  ASSERT_TRUE(Exchange());
  stream(id).then = Piece::Then::kLater;
  const Header head[] = {{":status", "200", true}};
  server_->Respond(id, head, Body::kFollows);
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(client_->answer(id).header(":status"), "200");
  EXPECT_EQ(client_->answer(id).body, "");
  stream(id).body = "one";
  server_->Resume(id);
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(client_->answer(id).body, "one");
  EXPECT_FALSE(client_->answer(id).closed);
  stream(id).then = Piece::Then::kEnd;
  server_->Resume(id);
  ASSERT_TRUE(Exchange());
  EXPECT_TRUE(client_->answer(id).closed);
}

TEST_F(SessionTest, AnAnswerCutShortIsReset) {
  const int32_t id = client_->Request(Get());
  ASSERT_TRUE(Exchange());
  stream(id).then = Piece::Then::kAbort;
  const Header head[] = {{":status", "200", true}};
  server_->Respond(id, head, Body::kFollows);
  ASSERT_TRUE(Exchange());
  EXPECT_TRUE(client_->answer(id).closed);
  EXPECT_EQ(client_->answer(id).error_code, kInternalError);
  EXPECT_TRUE(stream(id).closed);
}

// The peer sends no more than the window until the server has passed it on.
TEST_F(SessionTest, ABodyWaitsForItsReader) {
  Start({.stream_window_bytes = 64 * 1024});
  const int32_t id = client_->Request(
      {{":method", "POST"}, {":scheme", "http"}, {":path", "/"}, {":authority", "localhost"}},
      std::string(300'000, 'x'));
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(stream(id).received.size(), 65536u);
  server_->Consume(id, 40'000);
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(stream(id).received.size(), 105'536u);
  while (!stream(id).ended) {
    server_->Consume(id, 64 * 1024);
    ASSERT_TRUE(Exchange());
  }
  EXPECT_EQ(stream(id).received.size(), 300'000u);
}

// What streams left unread when they were closed does not shrink the connection's window.
TEST_F(SessionTest, UnreadBodiesOfClosedStreamsGiveTheirWindowBack) {
  Start({.stream_window_bytes = 64 * 1024, .connection_window_bytes = 128 * 1024});
  for (int i = 0; i < 10; ++i) {
    const int32_t id = client_->Request(
        {{":method", "POST"}, {":scheme", "http"}, {":path", "/"}, {":authority", "localhost"}},
        std::string(300'000, 'x'));
    ASSERT_TRUE(Exchange());
    ASSERT_EQ(stream(id).received.size(), 65536u) << i;
    client_->Reset(id);
    ASSERT_TRUE(Exchange());
    EXPECT_TRUE(stream(id).closed);
    EXPECT_EQ(stream(id).error_code, kCancel);
  }
}

TEST_F(SessionTest, AnAnswerBeforeTheWholeRequestStopsTheRest) {
  Start({.stream_window_bytes = 64 * 1024});
  const int32_t id = client_->Request(
      {{":method", "POST"}, {":scheme", "http"}, {":path", "/"}, {":authority", "localhost"}},
      std::string(300'000, 'x'));
  ASSERT_TRUE(Exchange());
  const Header head[] = {{":status", "413", true}};
  server_->Respond(id, head, Body::kNone);
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(client_->answer(id).header(":status"), "413");
  EXPECT_TRUE(client_->answer(id).closed);
  EXPECT_EQ(client_->answer(id).error_code, kNoError);
  EXPECT_TRUE(stream(id).closed);
}

TEST_F(SessionTest, AnswersWaitForTheClientsWindow) {
  Start({}, 1000);
  const int32_t id = client_->Request(Get());
  ASSERT_TRUE(Exchange());
  stream(id).body = std::string(5000, 'y');
  const Header head[] = {{":status", "200", true}};
  server_->Respond(id, head, Body::kFollows);
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(client_->answer(id).body.size(), 1000u);
  EXPECT_EQ(stream(id).body.size(), 4000u);
  client_->Consume(id, 1000);
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(client_->answer(id).body.size(), 2000u);
}

TEST_F(SessionTest, FieldsBeyondTheLimitAreLeftOutAndSaid) {
  Start({.header_list_bytes_max = 4096});
  Http2Fields fields = Get();
  for (int i = 0; i < 50; ++i) fields.emplace_back("x-" + std::to_string(i), std::string(200, 'v'));
  const int32_t id = client_->Request(fields);
  ASSERT_TRUE(Exchange());
  EXPECT_TRUE(stream(id).has_head);
  EXPECT_TRUE(stream(id).too_large);
  EXPECT_LT(stream(id).head.size(), 25u);
  const int32_t next = client_->Request(Get());
  ASSERT_TRUE(Exchange());
  EXPECT_FALSE(stream(next).too_large);
}

TEST_F(SessionTest, StreamsBeyondTheLimitWaitOrAreRefused) {
  Start({.concurrent_streams_max = 2});
  for (int i = 0; i < 3; ++i) client_->Request(Get());
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(streams_.size(), 2u);  // The client's library keeps the third back.
  EXPECT_EQ(client_->server_setting(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS), 2u);
}

TEST_F(SessionTest, ARefusedStreamMayBeRepeated) {
  refuses_ = true;
  const int32_t id = client_->Request(Get());
  ASSERT_TRUE(Exchange());
  EXPECT_EQ(client_->answer(id).error_code, kRefusedStream);
  refuses_ = false;
  const int32_t again = client_->Request(Get());
  ASSERT_TRUE(Exchange());
  EXPECT_TRUE(stream(again).ended);
}

TEST_F(SessionTest, AShutdownTakesWhatIsOnItsWay) {
  const int32_t first = client_->Request(Get());
  ASSERT_TRUE(Exchange());
  const int32_t second = client_->Request(Get());
  const std::string on_its_way = client_->TakeOutput();
  server_->ShutdownNotice();
  client_->Feed(Drain());
  EXPECT_EQ(client_->goaway(), kNoError);
  EXPECT_EQ(client_->goaway_last_stream(), INT32_MAX);
  ASSERT_TRUE(server_->Feed(on_its_way, now_ns_));
  server_->GoAway();
  client_->Feed(Drain());
  EXPECT_EQ(client_->goaway_last_stream(), second);
  EXPECT_FALSE(server_->finished());
  const Header head[] = {{":status", "204", true}};
  server_->Respond(first, head, Body::kNone);
  server_->Respond(second, head, Body::kNone);
  Exchange();
  EXPECT_EQ(client_->answer(second).header(":status"), "204");
  EXPECT_TRUE(server_->finished());
}

// Attacks: each is answered with a GOAWAY, after bounded work.

// CVE-2023-44487.
TEST_F(SessionTest, ARapidResetEndsTheConnection) {
  bool alive = true;
  int sent = 0;
  for (; alive && sent < 10'000; ++sent) {
    const int32_t id = client_->Request(Get());
    alive = server_->Feed(client_->TakeOutput(), now_ns_);
    client_->Reset(id);
    alive = alive && server_->Feed(client_->TakeOutput(), now_ns_) && !server_->finished();
    const std::string out = Drain();
    if (alive) client_->Feed(out);
    if (!alive || Http2GoAwayCode(out).has_value()) break;
  }
  EXPECT_LT(sent, 3000);
  EXPECT_EQ(server_->fault(), "too many frames that carry nothing");
  server_.reset();
  EXPECT_TRUE(std::ranges::all_of(streams_, [](const auto& each) { return each.second->closed; }));
}

// CVE-2025-8671: frames that make the server reset its streams, here a window opened too far.
TEST_F(SessionTest, MakingTheServerResetStreamsEndsTheConnection) {
  const std::string get = "\x82\x86\x84\x41\x09localhost";  // HPACK of Get().
  ASSERT_TRUE(FeedRaw(""));
  uint32_t rounds = 0;
  for (; rounds < 5000; ++rounds) {
    const uint32_t id = 2 * rounds + 1;
    const std::string frames =
        Http2Frame(1, 0x5, id, get) + Http2Frame(8, 0, id, "\x7f\xff\xff\xff");
    const bool alive = server_->Feed(frames, now_ns_);
    Drain();
    if (!alive || server_->finished()) break;
  }
  // Each costs two of the budget: the frame, and the reset that it makes.
  EXPECT_GE(rounds, 990u);
  EXPECT_LE(rounds, 1010u);
}

// A client that cancels one call in two for as long as it likes is none.
TEST_F(SessionTest, CancellingCallsIsNoAttack) {
  for (int i = 0; i < 5000; ++i) {
    const int32_t cancelled = client_->Request(Get());
    const int32_t answered = client_->Request(Get());
    ASSERT_TRUE(server_->Feed(client_->TakeOutput(), now_ns_)) << i << server_->fault();
    client_->Reset(cancelled);
    const Header head[] = {{":status", "204", true}};
    server_->Respond(answered, head, Body::kNone);
    ASSERT_TRUE(Exchange()) << i << server_->fault();
    ASSERT_FALSE(client_->goaway().has_value()) << i;
    now_ns_ += kSecond / 20;
  }
}

TEST_F(SessionTest, FloodsOfIdleFramesEndTheConnection) {
  const std::pair<const char*, std::string> floods[] = {
      {"ping", Http2Frame(6, 0, 0, "12345678")},
      {"settings", Http2Frame(4, 0, 0, "")},
      {"priority", Http2Frame(2, 0, 5, std::string("\0\0\0\0\x10", 5))},
      {"window update", Http2Frame(8, 0, 0, std::string("\0\0\0\x01", 4))},
  };
  for (const auto& [name, frame] : floods) {
    Start({});
    std::string flood;
    for (int i = 0; i < 20'000; ++i) flood += frame;
    EXPECT_FALSE(FeedRaw(flood)) << name;
    EXPECT_TRUE(AnswersWithGoAway(kEnhanceYourCalm)) << name;
  }
}

TEST_F(SessionTest, EmptyDataFramesEndTheConnection) {
  const int32_t id = client_->Request(
      {{":method", "POST"}, {":scheme", "http"}, {":path", "/"}, {":authority", "localhost"}},
      std::string("x"));
  // The head alone: what follows it is made by hand.
  std::string head = client_->TakeOutput();
  head.resize(head.size() - 10);  // DATA with one byte.
  ASSERT_TRUE(server_->Feed(head, now_ns_));
  std::string flood;
  for (int i = 0; i < 5000; ++i) flood += Http2Frame(0, 0, static_cast<uint32_t>(id), "");
  EXPECT_FALSE(server_->Feed(flood, now_ns_));
  EXPECT_EQ(Http2GoAwayCode(Drain()), kEnhanceYourCalm);
}

TEST_F(SessionTest, PingsNowAndThenAreNoFlood) {
  ASSERT_TRUE(FeedRaw(""));
  for (int i = 0; i < 50'000; ++i) {
    ASSERT_TRUE(server_->Feed(Http2Frame(6, 0, 0, "12345678"), now_ns_)) << i;
    Drain();
    now_ns_ += kSecond / 10;
  }
}

// A head that never ends.
TEST_F(SessionTest, AContinuationFloodEndsTheConnection) {
  const std::string get = "\x82\x86\x84\x41\x09localhost";  // HPACK of Get().
  std::string flood = Http2Frame(1, 0x1, 1, get);
  for (int i = 0; i < 20'000; ++i) flood += Http2Frame(9, 0, 1, std::string("\x40\x01x\x01y", 5));
  (void)FeedRaw(flood);
  EXPECT_TRUE(Http2GoAwayCode(raw_answer_).has_value() || server_->finished());
  EXPECT_FALSE(server_->Feed(Http2Frame(6, 0, 0, "12345678"), now_ns_) && !server_->finished());
}

TEST_F(SessionTest, WhatIsNoHttp2EndsTheConnection) {
  EXPECT_FALSE(server_->Feed("GET / HTTP/1.1\r\nHost: x\r\n\r\n", now_ns_));
  EXPECT_NE(server_->fault(), "");
}

}  // namespace
}  // namespace weir::http2
