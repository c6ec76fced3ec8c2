// What one policy check costs beyond the system calls: head parsed, JSON parsed, decided, answer
// written.
#include <benchmark/benchmark.h>

#include <string>

#include "doors/check_api/check_api.h"
#include "policy/policy.h"
#include "testing/simulated_clock.h"
#include "wire/buffer.h"
#include "wire/http1/request_head.h"

namespace weir::doors {
namespace {

void BM_PolicyCheck(benchmark::State& state) {
  SimulatedClock clock;
  auto policy =
      policy::Policy::FromText("limits: [{name: per-client, per: [client], rate: 1000000000/s}]",
                               "bench.yaml", [](std::string_view) { return std::nullopt; });
  auto engine = decide::Engine::Create({.policy = *policy, .clock = &clock}).value();
  decide::Worker worker(*engine, 0);
  CheckApi api(worker, 1);
  const std::string body =
      R"({"attributes":{"client":"alice","path":"/v1/chat/completions"},"cost":{"requests":1}})";
  const std::string text =
      "POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1:8081\r\nUser-Agent: wrk\r\nAccept: */*\r\n"
      "Content-Type: application/json\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n";
  const net::Endpoint peer = net::Endpoint::Parse("127.0.0.1:40000").value();
  const int64_t wall_ns = clock.RealtimeNs();
  const std::string_view date = net::HttpDateOf(wall_ns);
  wire::Buffer out;
  http1::RequestHead head;
  int64_t now_ns = clock.MonotonicNs();
  for (auto _ : state) {
    out.Clear();
    http1::ParseRequestHead(text, {}, head);
    http1::ResponseWriter answer(out);
    api.Answer({.head = head,
                .body = body,
                .peer = peer,
                .now_ns = now_ns += 100,
                .wall_ns = wall_ns,
                .date = date},
               answer);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(BM_PolicyCheck);

}  // namespace
}  // namespace weir::doors

BENCHMARK_MAIN();
