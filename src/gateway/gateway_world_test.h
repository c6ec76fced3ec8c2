// A gateway on loopback with scripted upstreams and raw clients, all on one loop, for the gateway's
// tests.
//
//   World world(R"(... urls: [http://UPSTREAM0] ...)");
//   world.Run([&]() -> Task<void> {
//     RawClient client(world);
//     Answer answer = co_await client.Ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
//     EXPECT_EQ(answer.status, 200);
//   }());
//
// Thread safety: one thread. Waits are bounded by the loop fixture.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "decide/engine.h"
#include "gateway/gateway.h"
#include "net/connector.h"
#include "net/http_service.h"
#include "net/listener.h"
#include "net/resolver.h"
#include "net/tls.h"
#include "policy/policy.h"
#include "testing/loop_fixture.h"
#include "wire/http1/body.h"
#include "wire/http1/response_head.h"

namespace weir::gateway {

// A message as it was read: head and decoded body.
struct Message {
  int status = 0;
  std::string head;
  std::string body;
  std::vector<std::pair<std::string, std::string>> fields;
  std::vector<std::pair<std::string, std::string>> trailers;
  bool complete = false;  // Read to its end.

  std::string Field(std::string_view name) const {
    for (const auto& [field, value] : fields) {
      if (http1::EqualIgnoreCase(field, name)) return value;
    }
    return "";
  }
  int Count(std::string_view name) const {
    int count = 0;
    for (const auto& field : fields) count += http1::EqualIgnoreCase(field.first, name);
    return count;
  }
};
using Answer = Message;

// One side of a connection, with what was read and not used yet.
struct Peer {
  std::unique_ptr<net::Stream> stream;
  std::string in;
  size_t read_bytes = 16 * 1024;

  Task<bool> Send(std::string text) {
    const net::IoResult sent = co_await stream->Write(text);
    co_return sent.ok();
  }
  Task<net::IoStatus> More() {
    const size_t had = in.size();
    in.resize(had + read_bytes);
    const net::IoResult got = co_await stream->Read({in.data() + had, read_bytes});
    in.resize(had + got.bytes);
    co_return got.status;
  }
  // Until `in` holds the text; false when the connection ends before.
  Task<bool> ReadUntil(std::string text) {
    while (in.find(text) == std::string::npos) {
      const net::IoStatus status = co_await More();
      if (status != net::IoStatus::kOk) co_return false;
    }
    co_return true;
  }
  // The rest of a body whose head has been taken out of `in`.
  Task<void> ReadBody(Message& message, http1::BodyKind kind, int64_t length) {
    http1::BodyReader reader;
    reader.Start(kind, length);
    for (;;) {
      const http1::BodyReader::Step step = reader.Feed(in);
      message.body += step.payload;
      const http1::BodyReader::State state = step.state;
      in.erase(0, step.consumed);
      if (state == http1::BodyReader::State::kPayload) continue;
      if (state == http1::BodyReader::State::kDone) break;
      if (state == http1::BodyReader::State::kError) co_return;
      const net::IoStatus status = co_await More();
      if (status != net::IoStatus::kOk) {
        message.complete = status == net::IoStatus::kEnd && kind == http1::BodyKind::kUntilClose;
        co_return;
      }
    }
    for (const http1::HeaderField& field : reader.trailers()) {
      message.trailers.emplace_back(field.name, field.value);
    }
    message.complete = true;
  }
};

template <typename Head>
void TakeFields(const Head& head, Message& message) {
  for (const http1::HeaderField& field : head.headers)
    message.fields.emplace_back(field.name, field.value);
}

// An upstream that does with each connection what its script says.
class ScriptedUpstream {
 public:
  using Script = std::function<Task<void>(ScriptedUpstream&, Peer&)>;

  ScriptedUpstream(net::EventLoop& loop, const net::TlsContext* tls = nullptr)
      : loop_(loop), tls_(tls) {
    script = [](ScriptedUpstream& self, Peer& peer) { return self.AnswerOk(peer); };
    listener_ =
        net::Listener::Open(loop, net::Endpoint::Parse("127.0.0.1:0").value(), [this](auto stream) {
          ++accepted;
          loop_.Spawn(Serve(std::move(stream)));
        }).value();
  }

  // Reads a request; false when the connection ends before it is whole.
  Task<bool> ReadRequest(Peer& peer, Message& request) {
    request = {};
    http1::RequestHead head;
    for (;;) {
      const http1::ParseOutcome outcome = http1::ParseRequestHead(peer.in, {}, head);
      if (outcome.complete()) {
        request.head = peer.in.substr(0, outcome.consumed);
        TakeFields(head, request);
        const http1::BodyKind kind = head.body;
        const int64_t length = head.content_length;
        peer.in.erase(0, outcome.consumed);
        co_await peer.ReadBody(request, kind, length);
        if (request.complete) requests.push_back(request);
        co_return request.complete;
      }
      if (outcome.error()) {
        ADD_FAILURE() << "the gateway sent a malformed request: " << outcome.reason << "\n"
                      << peer.in;
        co_return false;
      }
      const net::IoStatus status = co_await peer.More();
      if (status != net::IoStatus::kOk) co_return false;
    }
  }

  // The script that tests begin with: every request is answered with `answer`.
  Task<void> AnswerOk(Peer& peer) {
    Message request;
    for (;;) {
      const bool got = co_await ReadRequest(peer, request);
      if (!got) co_return;
      const bool sent = co_await peer.Send(answer);
      if (!sent) co_return;
    }
  }

  int port() const { return listener_->endpoint().port(); }
  void Close() { listener_->Close(); }
  net::EventLoop& loop() { return loop_; }

  Script script;
  std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  std::vector<Message> requests;
  int accepted = 0;

 private:
  Task<void> Serve(std::unique_ptr<net::Stream> stream) {
    Peer peer{.stream = std::move(stream), .in = {}};
    if (tls_ != nullptr) {
      const Result<void> started =
          co_await peer.stream->StartTlsServer(*tls_, loop_.now_ns() + 5'000'000'000);
      if (!started) co_return;
    }
    co_await script(*this, peer);
  }

  net::EventLoop& loop_;
  const net::TlsContext* tls_;
  std::unique_ptr<net::Listener> listener_;
};

inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// `yaml`: UPSTREAM0, UPSTREAM1, … stand for the addresses of the scripted upstreams.
class World {
 public:
  explicit World(std::string yaml, int upstream_count = 1,
                 const net::TlsContext* upstream_tls = nullptr)
      : World(std::move(yaml), upstream_count, upstream_tls, nullptr) {}
  World(std::string yaml, int upstream_count, const net::TlsContext* upstream_tls, Logger* logger) {
    for (int i = 0; i < upstream_count; ++i) {
      upstreams.push_back(std::make_unique<ScriptedUpstream>(loop(), upstream_tls));
      yaml = Replaced(yaml, "UPSTREAM" + std::to_string(i),
                      "127.0.0.1:" + std::to_string(upstreams.back()->port()));
    }
    policy::Policy::LoadResult loaded = policy::Policy::FromText(
        yaml, "test.yaml", [](std::string_view) { return std::optional<std::string>(); });
    if (!loaded) {
      for (const policy::ConfigError& error : loaded.error()) ADD_FAILURE() << ToString(error);
    }
    decide::EngineOptions options;
    options.policy = loaded.value();
    options.clock = &clock_;
    engine = decide::Engine::Create(std::move(options)).value();
    worker = std::make_unique<decide::Worker>(*engine, 0);
    gateway = Gateway::Create({.worker = worker.get(),
                               .loop = &loop(),
                               .resolver = &resolver_,
                               .logger = logger,
                               .drain = &drain})
                  .value();
    listener_ = net::Listener::Open(
                    loop(), net::Endpoint::Parse("127.0.0.1:0").value(),
                    [this](auto stream) { loop().Spawn(gateway->Serve(std::move(stream))); })
                    .value();
  }

  net::EventLoop& loop() { return fixture_.loop(); }
  void Run(Task<void> task, int64_t bound_ns = 20'000'000'000) {
    fixture_.RunTask(std::move(task), bound_ns);
  }
  const net::Endpoint& endpoint() const { return listener_->endpoint(); }
  ScriptedUpstream& upstream(size_t i = 0) { return *upstreams[i]; }
  // Waits until the condition holds; false after two seconds.
  Task<bool> Eventually(std::function<bool()> condition) {
    const int64_t give_up_ns = loop().now_ns() + 2'000'000'000;
    while (!condition()) {
      if (loop().now_ns() > give_up_ns) co_return false;
      co_await loop().SleepFor(1'000'000);
    }
    co_return true;
  }

 private:
  // The order of ends: what accepts first, then the loop with its tasks, then what these borrow.
  SystemClock clock_;

 public:
  std::unique_ptr<decide::Engine> engine;
  std::unique_ptr<decide::Worker> worker;
  net::DrainFlag drain;

 private:
  testing::LoopFixture fixture_;
  net::Resolver resolver_;

 public:
  std::vector<std::unique_ptr<ScriptedUpstream>> upstreams;
  std::unique_ptr<Gateway> gateway;

 private:
  std::unique_ptr<net::Listener> listener_;
};

// A client that sends bytes as they are.
class RawClient : public Peer {
 public:
  explicit RawClient(World& world) : world_(world) {}

  Task<bool> Connect() {
    Result<std::unique_ptr<net::Stream>> connected = co_await net::Connect(
        world_.loop(), world_.endpoint(), world_.loop().now_ns() + 2'000'000'000);
    if (!connected) co_return false;
    stream = std::move(*connected);
    stream->SetReadDeadline(world_.loop().now_ns() + 10'000'000'000);
    co_return true;
  }
  // The next answer. `method`: what it answers.
  Task<Answer> Read(http1::Method method = http1::Method::kGet) {
    Answer answer;
    http1::ResponseHead head;
    for (;;) {
      const http1::ParseOutcome outcome = http1::ParseResponseHead(in, {}, method, head);
      if (outcome.complete()) {
        answer.status = head.status;
        answer.head = in.substr(0, outcome.consumed);
        TakeFields(head, answer);
        const http1::BodyKind kind = head.body;
        const int64_t length = head.content_length;
        in.erase(0, outcome.consumed);
        co_await ReadBody(answer, kind, length);
        co_return answer;
      }
      if (outcome.error()) {
        ADD_FAILURE() << "malformed answer: " << outcome.reason << "\n" << in;
        co_return answer;
      }
      const net::IoStatus status = co_await More();
      if (status != net::IoStatus::kOk) co_return answer;
    }
  }
  // Connects when needed, sends, reads one answer.
  Task<Answer> Ask(std::string request, http1::Method method = http1::Method::kGet) {
    if (stream == nullptr) {
      const bool connected = co_await Connect();
      if (!connected) co_return Answer{};
    }
    const bool sent = co_await Send(std::move(request));
    if (!sent) co_return Answer{};
    Answer answer = co_await Read(method);
    co_return answer;
  }
  // True when the other side has closed and sent nothing more.
  Task<bool> Closed() {
    if (!in.empty()) co_return false;
    const net::IoStatus status = co_await More();
    co_return status == net::IoStatus::kEnd || status == net::IoStatus::kBroken;
  }

 private:
  World& world_;
};

inline std::string Get(std::string_view path, std::string_view fields = "") {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: gw.test\r\n" + std::string(fields) +
         "\r\n";
}
inline std::string Post(std::string_view path, std::string_view body,
                        std::string_view fields = "") {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: gw.test\r\nContent-Type: application/json\r\n" + std::string(fields) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

}  // namespace weir::gateway
