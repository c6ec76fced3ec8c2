// Holds many streams of server-sent events open and says how long their events were on the way. It
// is both ends, on one loop, so that no other process on its core delays what it measures: the
// upstream that sends the events, each with the instant at which it was sent, and the clients that
// read them through TARGET.
//
//   sse_load UPSTREAM_PORT TARGET STREAMS PACE_MS EVENTS   →
//   {"streams":512,"events":…,"p50_us":…,"p99_us":…,…}
//
// TARGET is the gateway before 127.0.0.1:UPSTREAM_PORT, or that address itself. Each stream has a
// phase of its own within the pace, so that events do not come all at once. The first tenth of each
// stream's events is not counted: connections and buffers grow then.
#include <charconv>
#include <cstdio>
#include <string>

#include "base/clock.h"
#include "bench/servers/load_client.h"
#include "net/listener.h"
#include "wire/http1/request_head.h"

namespace weir::bench {
namespace {

struct Plan {
  net::Endpoint endpoint;
  int streams = 0;
  int pace_ms = 0;
  int events = 0;
  int running = 0;
  int started = 0;  // Streams, at the upstream's end.
  std::vector<int64_t> delays_ns = {};
};

constexpr std::string_view kSentAt = "\"sent_ns\":";
constexpr std::string_view kAnswerHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr std::string_view kEventFront =
    R"(data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"mock-1",)"
    R"("choices":[{"index":0,"delta":{"content":"Water "},"finish_reason":null}],"sent_ns":)";

// Reads requests whole and answers each with a stream; the requests are this tool's own.
Task<void> ServeUpstream(net::EventLoop& loop, Plan& plan, std::unique_ptr<net::Stream> stream) {
  wire::Buffer in;
  wire::Buffer out;
  for (;;) {
    http1::RequestHead head;
    http1::ParseOutcome outcome;
    while (!(outcome = http1::ParseRequestHead(in.View(), {}, head)).complete() ||
           in.size() < outcome.consumed + static_cast<size_t>(head.content_length)) {
      char* const room = in.Prepare(4096);
      const net::IoResult got = co_await stream->Read({room, in.spare()});
      if (!got.ok()) co_return;
      in.Commit(got.bytes);
    }
    in.Consume(outcome.consumed + static_cast<size_t>(head.content_length));
    // Each stream has a phase of its own within the pace: connections that were opened in one tick
    // would otherwise send in one burst for ever, and wait for each other here instead of at the
    // gateway.
    const int64_t pace_ns = int64_t{plan.pace_ms} * 1'000'000;
    const int64_t phase_ns = pace_ns * (plan.started++ % plan.streams) / plan.streams;
    const int64_t start_ns = loop.now_ns() - loop.now_ns() % pace_ns + phase_ns;
    co_await stream->Write(kAnswerHead);
    for (int i = 1; i <= plan.events; ++i) {
      co_await loop.SleepUntil(start_ns + pace_ns * i);
      const std::string event =
          std::string(kEventFront) + std::to_string(loop.clock().MonotonicNs()) + "}\n\n";
      out.Clear();
      http1::ChunkedWriter::AppendChunk(out, event);
      const net::IoResult sent = co_await stream->Write(out.View());
      if (!sent.ok()) co_return;
    }
    co_await stream->Write("0\r\n\r\n");
  }
}

Task<void> RunStream(net::EventLoop& loop, Plan& plan, int number) {
  co_await loop.SleepFor(int64_t{plan.pace_ms} * 1'000'000 * number / plan.streams);
  const std::string body =
      R"({"model":"mock-1","stream":true,"messages":[{"role":"user","content":"Hello"}]})";
  const std::string request =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: "
      "application/json\r\nAuthorization: Bearer stream-" +
      std::to_string(number) + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
      body;
  LoadClient client(loop, plan.endpoint);
  co_await client.Send(request);
  const int status = co_await client.ReadHead();
  if (status != 200) Die("status " + std::to_string(status));
  int seen = 0;
  for (;;) {
    const std::optional<std::string_view> piece = co_await client.ReadPiece();
    if (!piece) break;
    for (size_t at = piece->find(kSentAt); at != std::string_view::npos;
         at = piece->find(kSentAt, at + 1)) {
      int64_t sent_ns = 0;
      const char* const digits = piece->data() + at + kSentAt.size();
      std::from_chars(digits, piece->data() + piece->size(), sent_ns);
      if (++seen > plan.events / 10 && seen <= plan.events)
        plan.delays_ns.push_back(client.read_at_ns() - sent_ns);
    }
  }
  if (--plan.running == 0) loop.Stop();
}

int Main(int argc, char** argv) {
  if (argc != 6) Die("usage: sse_load UPSTREAM_PORT TARGET STREAMS PACE_MS EVENTS");
  Plan plan{.endpoint = net::Endpoint::Parse(argv[2]).value(),
            .streams = std::atoi(argv[3]),
            .pace_ms = std::atoi(argv[4]),
            .events = std::atoi(argv[5])};
  const SystemClock clock;
  auto loop = net::EventLoop::Create(clock).value();
  auto upstream =
      net::Listener::Open(*loop, net::Endpoint::Parse(std::string("127.0.0.1:") + argv[1]).value(),
                          [&](std::unique_ptr<net::Stream> stream) {
                            loop->Spawn(ServeUpstream(*loop, plan, std::move(stream)));
                          });
  if (!upstream) Die(upstream.error().message);
  plan.running = plan.streams;
  for (int i = 0; i < plan.streams; ++i) loop->Spawn(RunStream(*loop, plan, i));
  loop->Run();
  const size_t events = plan.delays_ns.size();
  const auto micros = [&](double share) {
    return static_cast<double>(Percentile(plan.delays_ns, share)) / 1000.0;
  };
  std::printf(
      "{\"streams\":%d,\"events\":%zu,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%"
      ".1f}\n",
      plan.streams, events, micros(0.5), micros(0.99), micros(0.999), micros(1.0));
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::Main(argc, argv); }
