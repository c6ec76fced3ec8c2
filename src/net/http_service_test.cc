#include "net/http_service.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "net/connector.h"
#include "net/event.h"
#include "net/listener.h"
#include "testing/loop_fixture.h"

namespace weir::net {
namespace {

using weir::testing::LoopFixture;

constexpr int64_t kMs = 1'000'000;

// Answers with what it was asked: "GET /a|body".
class Mirror final : public HttpService {
 public:
  void Answer(const HttpRequest& request, http1::ResponseWriter& answer) override {
    ++answered;
    answer.Begin(200);
    answer.Body(std::string(request.head.method) + " " + std::string(request.head.target) + "|" +
                std::string(request.body));
  }
  int answered = 0;
};

// The same after a while.
class LateMirror final : public HttpService {
 public:
  explicit LateMirror(EventLoop& loop) : loop_(loop) {}
  bool waits() const override { return true; }
  void Answer(const HttpRequest& request, http1::ResponseWriter& answer) override {
    mirror_.Answer(request, answer);
  }
  Task<void> AnswerLater(const HttpRequest& request, http1::ResponseWriter& answer) override {
    co_await loop_.SleepFor(2 * kMs);
    Answer(request, answer);
  }

 private:
  EventLoop& loop_;
  Mirror mirror_;
};

std::string Ok(std::string_view body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

// Sends the pieces, each once the one before has had time to be read, and gives all that comes back
// until the server closes or has been silent for `quiet_ns`.
Task<void> Exchange(EventLoop& loop, HttpServiceOptions options, std::vector<std::string> pieces,
                    int64_t quiet_ns, const DrainFlag& drain, std::string& heard, bool& closed,
                    Mirror& service) {
  auto listener = Listener::Open(
      loop, Endpoint::Parse("127.0.0.1:0").value(), [&](std::unique_ptr<Stream> stream) {
        loop.Spawn(ServeHttp(std::move(stream), service, options, drain));
      });
  auto client =
      (co_await Connect(loop, (*listener)->endpoint(), loop.now_ns() + 1000 * kMs)).value();
  char buffer[65536];
  for (const std::string& piece : pieces) {
    co_await client->Write(piece);
    co_await loop.SleepFor(kMs);
  }
  for (;;) {
    client->SetReadDeadline(loop.now_ns() + quiet_ns);
    const IoResult got = co_await client->Read(buffer);
    closed = got.status == IoStatus::kEnd;
    if (!got.ok()) break;
    heard.append(buffer, got.bytes);
  }
  client.reset();
  co_await loop.SleepFor(2 * kMs);  // The server sees the end and leaves the loop.
}

struct Heard {
  std::string text;
  bool closed = false;
  int answered = 0;
};

Heard Talk(std::vector<std::string> pieces, HttpServiceOptions options = {}, bool draining = false,
           int64_t quiet_ns = 100 * kMs) {
  LoopFixture fixture;
  Mirror service;
  DrainFlag drain{draining};
  Heard heard;
  fixture.RunTask(Exchange(fixture.loop(), options, std::move(pieces), quiet_ns, drain, heard.text,
                           heard.closed, service));
  heard.answered = service.answered;
  return heard;
}

TEST(HttpService, KeepsTheConnectionAndAnswersInOrder) {
  const Heard heard = Talk({"GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n",
                            "POST /3 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"});
  EXPECT_EQ(heard.text, Ok("GET /1|") + Ok("GET /2|") + Ok("POST /3|hi"));
  EXPECT_FALSE(heard.closed);
}

TEST(HttpService, ARequestMayComeInPiecesOfAnySize) {
  const std::string request =
      "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"
      "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
  for (size_t cut = 1; cut < request.size(); cut += 7) {
    const Heard heard = Talk({request.substr(0, cut), request.substr(cut)}, {}, false, 20 * kMs);
    EXPECT_EQ(heard.text, Ok("POST /a|hello") + Ok("POST /b|abcde")) << "cut at " << cut;
  }
}

TEST(HttpService, SaysContinueOnlyWhenTheBodyIsStillToCome) {
  const std::string head =
      "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
  EXPECT_EQ(Talk({head, "hi"}).text, "HTTP/1.1 100 Continue\r\n\r\n" + Ok("POST /a|hi"));
  EXPECT_EQ(Talk({head + "hi"}).text, Ok("POST /a|hi"));
}

TEST(HttpService, RefusesWhatIsTooLargeOrMalformedAndCloses) {
  HttpServiceOptions options;
  options.body_bytes_max = 4;
  for (const std::string request : {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
                                    "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
                                    "chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"}) {
    const Heard heard = Talk({request}, options);
    EXPECT_TRUE(heard.text.starts_with("HTTP/1.1 413 ")) << heard.text;
    EXPECT_TRUE(heard.closed);
    EXPECT_EQ(heard.answered, 0);
  }
  const Heard malformed =
      Talk({"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na"});
  EXPECT_TRUE(malformed.text.starts_with("HTTP/1.1 400 Bad Request\r\n")) << malformed.text;
  EXPECT_TRUE(malformed.closed);
  EXPECT_EQ(malformed.answered, 0);
}

TEST(HttpService, ClosesAfterConnectionCloseAndWhileDraining) {
  const Heard asked =
      Talk({"GET /1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET /2 HTTP/1.1\r\nHost: "
            "x\r\n\r\n"});
  EXPECT_EQ(asked.text, Ok("GET /1|"));
  EXPECT_TRUE(asked.closed);
  const Heard draining = Talk({"GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"}, {}, true);
  EXPECT_EQ(draining.text, Ok("GET /1|"));
  EXPECT_TRUE(draining.closed);
}

TEST(HttpService, ASlowRequestIsToldASilentConnectionIsNot) {
  HttpServiceOptions options;
  options.header_timeout_ns = 20 * kMs;
  options.idle_timeout_ns = 20 * kMs;
  const Heard slow = Talk({"GET / HTTP/1.1\r\nHo"}, options, false, 2000 * kMs);
  EXPECT_TRUE(slow.text.starts_with("HTTP/1.1 408 ")) << slow.text;
  EXPECT_TRUE(slow.closed);
  const Heard silent = Talk({}, options, false, 2000 * kMs);
  EXPECT_EQ(silent.text, "");
  EXPECT_TRUE(silent.closed);
}

TEST(HttpService, ManyPipelinedRequestsAreAllAnswered) {
  std::string requests;
  std::string expected;
  for (int i = 0; i < 20'000; ++i) {
    requests += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
    expected += Ok("GET /" + std::to_string(i) + "|");
  }
  const Heard heard = Talk({requests});
  EXPECT_TRUE(heard.text == expected) << heard.text.size() << " bytes of " << expected.size();
}

TEST(HttpService, AnswersThatWaitKeepTheirRequestsAndTheirOrder) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    LateMirror service(loop);
    const DrainFlag drain;
    auto listener = Listener::Open(loop, Endpoint::Parse("127.0.0.1:0").value(),
                                   [&](std::unique_ptr<Stream> stream) {
                                     loop.Spawn(ServeHttp(std::move(stream), service, {}, drain));
                                   });
    std::vector<std::unique_ptr<Stream>> clients;
    for (int i = 0; i < 2; ++i) {
      clients.push_back(
          (co_await Connect(loop, (*listener)->endpoint(), loop.now_ns() + 1000 * kMs)).value());
    }
    // Both are answered by turns, so that one's request is there while the other's is parsed.
    for (int i = 0; i < 2; ++i) {
      const std::string name = i == 0 ? "a" : "bb";
      co_await clients[i]->Write("POST /" + name +
                                 "1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nxyz"
                                 "GET /" +
                                 name + "2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    }
    for (int i = 0; i < 2; ++i) {
      const std::string name = i == 0 ? "a" : "bb";
      std::string heard;
      char buffer[4096];
      for (;;) {
        clients[i]->SetReadDeadline(loop.now_ns() + 2000 * kMs);
        const IoResult got = co_await clients[i]->Read(buffer);
        if (!got.ok()) break;
        heard.append(buffer, got.bytes);
      }
      EXPECT_EQ(heard, Ok("POST /" + name + "1|xyz") + Ok("GET /" + name + "2|"));
    }
    clients.clear();
    while (loop.live_tasks() > 1) co_await loop.SleepFor(kMs);
  };
  fixture.RunTask(scenario(fixture.loop()));
}

}  // namespace
}  // namespace weir::net
