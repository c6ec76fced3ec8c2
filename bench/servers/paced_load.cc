// Calls on a schedule: well-behaved clients, each at a steady pace, beside one that floods. Latency
// counts from the instant that a call was due, so a server that stalls cannot hide the calls it
// delayed.
//
//   paced_load ADDRESS SECONDS CLIENTS CLIENT_RATE FLOOD_RATE [check]
//     calls the gateway, or with `check` the decision API
//     →  {"clients":{"calls":…,"ok":…,"denied":…,"other":…,"p50_us":…,"p99_us":…},"flood":{…}}
#include <cstdio>
#include <string>

#include "base/clock.h"
#include "bench/servers/load_client.h"

namespace weir::bench {
namespace {

constexpr int kFloodConnections = 32;

struct Tally {
  int64_t ok = 0;
  int64_t denied = 0;
  int64_t other = 0;
  std::vector<int64_t> latencies_ns;
};

struct Plan {
  net::Endpoint endpoint;
  bool check = false;  // POST /v1/check
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  int running = 0;
};

std::string RequestOf(const Plan& plan, const std::string& client) {
  if (!plan.check)
    return "GET /v1/models HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer " + client + "\r\n\r\n";
  const std::string body = R"({"attributes":{"client":")" + client + R"("}})";
  return "POST /v1/check HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Calls at `interval_ns`, the first `offset_ns` after the start.
Task<void> RunClient(net::EventLoop& loop, Plan& plan, std::string key, int64_t offset_ns,
                     int64_t interval_ns, Tally& tally) {
  const std::string request = RequestOf(plan, key);
  LoadClient client(loop, plan.endpoint);
  for (int64_t due_ns = plan.start_ns + offset_ns; due_ns < plan.end_ns; due_ns += interval_ns) {
    if (due_ns > loop.clock().MonotonicNs()) co_await loop.SleepUntil(due_ns);
    co_await client.Send(request);
    const int status = co_await client.ReadHead();
    co_await client.SkipBody();
    tally.latencies_ns.push_back(client.read_at_ns() - due_ns);
    ++(status == 200 ? tally.ok : status == 429 ? tally.denied : tally.other);
  }
  if (--plan.running == 0) loop.Stop();
}

void Print(const char* name, Tally& tally) {
  const size_t calls = tally.latencies_ns.size();
  const auto micros = [&](double share) {
    return static_cast<double>(Percentile(tally.latencies_ns, share)) / 1000.0;
  };
  std::printf(
      "\"%s\":{\"calls\":%zu,\"ok\":%ld,\"denied\":%ld,\"other\":%ld,\"p50_us\":%.1f,\"p99_us\":%."
      "1f,\"max_us\":%.1f}",
      name, calls, tally.ok, tally.denied, tally.other, micros(0.5), micros(0.99), micros(1.0));
}

int Main(int argc, char** argv) {
  const bool check = argc == 7 && std::string_view(argv[6]) == "check";
  if (argc != 6 && !check)
    Die("usage: paced_load ADDRESS SECONDS CLIENTS CLIENT_RATE FLOOD_RATE [check]");
  const double seconds = std::atof(argv[2]);
  const int clients = std::atoi(argv[3]);
  const auto interval_ns = static_cast<int64_t>(1e9 / std::atof(argv[4]));
  const double flood_rate = std::atof(argv[5]);
  const SystemClock clock;
  auto loop = net::EventLoop::Create(clock).value();
  const int64_t start_ns = clock.MonotonicNs() + 100'000'000;
  Plan plan{.endpoint = net::Endpoint::Parse(argv[1]).value(),
            .check = check,
            .start_ns = start_ns,
            .end_ns = start_ns + static_cast<int64_t>(seconds * 1e9)};
  Tally good, flood;
  plan.running = clients + (flood_rate > 0 ? kFloodConnections : 0);
  for (int i = 0; i < clients; ++i) {
    loop->Spawn(RunClient(*loop, plan, "client-" + std::to_string(i), interval_ns * i / clients,
                          interval_ns, good));
  }
  if (flood_rate > 0) {
    const auto flood_interval_ns = static_cast<int64_t>(1e9 * kFloodConnections / flood_rate);
    for (int i = 0; i < kFloodConnections; ++i) {
      loop->Spawn(RunClient(*loop, plan, "flood", flood_interval_ns * i / kFloodConnections,
                            flood_interval_ns, flood));
    }
  }
  loop->Run();
  std::printf("{");
  Print("clients", good);
  std::printf(",");
  Print("flood", flood);
  std::printf("}\n");
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::Main(argc, argv); }
