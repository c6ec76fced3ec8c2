// What one CL.THROTTLE costs beyond the system calls: read, decided, answered; 32 in one input.
#include <benchmark/benchmark.h>

#include <string>

#include "doors/resp/resp_door.h"
#include "policy/policy.h"
#include "testing/simulated_clock.h"
#include "wire/buffer.h"
#include "wire/resp/command_parser.h"

namespace weir::doors::resp {
namespace {

void BM_Throttle(benchmark::State& state) {
  constexpr int kPipelined = 32;
  SimulatedClock clock;
  auto policy = policy::Policy::FromText("limits: []", "bench.yaml",
                                         [](std::string_view) { return std::nullopt; });
  auto engine = decide::Engine::Create({.policy = *policy, .clock = &clock}).value();
  decide::Worker worker(*engine, 0);
  RespDoor door(worker, "bench");
  Session session = door.NewSession(net::Endpoint::Parse("127.0.0.1:40000").value(), 0);
  std::string commands;
  for (int i = 0; i < kPipelined; ++i) {
    commands += "*5\r\n$11\r\nCL.THROTTLE\r\n$10\r\nkey:00000" + std::to_string(10 + i % 10) +
                "\r\n$7\r\n1000000\r\n$7\r\n1000000\r\n$1\r\n1\r\n";
  }
  weir::resp::CommandParser parser;
  wire::Buffer out;
  int64_t now_ns = clock.MonotonicNs();
  for (auto _ : state) {
    out.Clear();
    std::string_view input = commands;
    const RespDoor::Instant instant = door.Tick(now_ns += 100'000, clock.RealtimeNs());
    while (parser.Next(input) == weir::resp::CommandParser::State::kCommand) {
      door.Answer(session, parser.words(), instant, out);
      input.remove_prefix(parser.consumed());
    }
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * kPipelined);
}
BENCHMARK(BM_Throttle);

}  // namespace
}  // namespace weir::doors::resp

BENCHMARK_MAIN();
