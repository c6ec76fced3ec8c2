// Holds many streams of server-sent events open and says how long their events were on the way: each carries the
// instant at which the upstream sent it ("sent_ns", CLOCK_MONOTONIC of the same machine).
//
//   sse_load ADDRESS STREAMS PACE_MS EVENTS      →  {"streams":512,"events":…,"p50_us":…,"p99_us":…,"max_us":…}
//
// Streams start spread over one pace, so that their events do not come all at once. The first tenth of each stream's
// events is not counted: connections and buffers grow then.
#include <charconv>
#include <cstdio>
#include <string>

#include "base/clock.h"
#include "bench/servers/load_client.h"

namespace weir::bench {
namespace {

struct Plan {
  net::Endpoint endpoint;
  int streams = 0;
  int pace_ms = 0;
  int events = 0;
  int running = 0;
  std::vector<int64_t> delays_ns = {};
};

constexpr std::string_view kSentAt = "\"sent_ns\":";

Task<void> RunStream(net::EventLoop& loop, Plan& plan, int number) {
  co_await loop.SleepFor(int64_t{plan.pace_ms} * 1'000'000 * number / plan.streams);
  const std::string body = R"({"model":"mock-1","stream":true,"messages":[{"role":"user","content":"Hello"}]})";
  const std::string request =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nAuthorization: Bearer stream-" +
      std::to_string(number) + "\r\nx-mock-pace-ms: " + std::to_string(plan.pace_ms) +
      "\r\nx-mock-events: " + std::to_string(plan.events) + "\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  LoadClient client(loop, plan.endpoint);
  co_await client.Send(request);
  const int status = co_await client.ReadHead();
  if (status != 200) Die("status " + std::to_string(status));
  int seen = 0;
  for (;;) {
    const std::optional<std::string_view> piece = co_await client.ReadPiece();
    if (!piece) break;
    for (size_t at = piece->find(kSentAt); at != std::string_view::npos; at = piece->find(kSentAt, at + 1)) {
      int64_t sent_ns = 0;
      const char* const digits = piece->data() + at + kSentAt.size();
      std::from_chars(digits, piece->data() + piece->size(), sent_ns);
      if (++seen > plan.events / 10 && seen <= plan.events) plan.delays_ns.push_back(client.read_at_ns() - sent_ns);
    }
  }
  if (--plan.running == 0) loop.Stop();
}

int Main(int argc, char** argv) {
  if (argc != 5) Die("usage: sse_load ADDRESS STREAMS PACE_MS EVENTS");
  Plan plan{.endpoint = net::Endpoint::Parse(argv[1]).value(),
            .streams = std::atoi(argv[2]),
            .pace_ms = std::atoi(argv[3]),
            .events = std::atoi(argv[4])};
  const SystemClock clock;
  auto loop = net::EventLoop::Create(clock).value();
  plan.running = plan.streams;
  for (int i = 0; i < plan.streams; ++i) loop->Spawn(RunStream(*loop, plan, i));
  loop->Run();
  const size_t events = plan.delays_ns.size();
  const auto micros = [&](double share) { return static_cast<double>(Percentile(plan.delays_ns, share)) / 1000.0; };
  std::printf("{\"streams\":%d,\"events\":%zu,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f}\n",
              plan.streams, events, micros(0.5), micros(0.99), micros(0.999), micros(1.0));
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::Main(argc, argv); }
