// What a decision by descriptors costs: two entries, of which the first is exact, over 1,000 values
// of the second, which stay in cache. Beside it the same with as many other limits as a large
// configuration has.
#include <benchmark/benchmark.h>

#include <array>
#include <string>
#include <vector>

#include "decide/descriptors.h"
#include "decide/engine.h"
#include "policy/policy.h"
#include "testing/simulated_clock.h"

namespace weir::decide {
namespace {

constexpr size_t kKeys = 1000;

std::string Limits(int64_t others, const std::string& algorithm) {
  std::string yaml = "limits:\n";
  for (int64_t i = 0; i < others; ++i) {
    yaml += "- {name: o" + std::to_string(i) + ", domain: d, descriptor: [{key: route, value: r" +
            std::to_string(i) + "}, {key: user}], rate: 10/s}\n";
  }
  return yaml +
         "- {name: a, domain: d, descriptor: [{key: route, value: chat}, {key: user}], "
         "rate: 1000/s, algorithm: " +
         algorithm + "}\n";
}

void DecideDescriptors(benchmark::State& state, size_t descriptors, int64_t others,
                       const std::string& algorithm) {
  SimulatedClock clock;
  auto policy = policy::Policy::FromText(Limits(others, algorithm), "bench.yaml",
                                         [](std::string_view) { return std::nullopt; });
  auto engine = Engine::Create({.policy = *policy, .clock = &clock}).value();
  Worker worker(*engine, 0);
  std::vector<std::string> keys;
  for (size_t i = 0; i < kKeys; ++i) keys.push_back("user:" + std::to_string(100000 + i));
  std::vector<std::array<DescriptorEntry, 2>> entries(descriptors);
  std::vector<Descriptor> asked(descriptors);
  core::Now now{};
  size_t i = 0;
  for (auto _ : state) {
    now.mono_ns += 100;
    for (size_t d = 0; d < descriptors; ++d) {
      entries[d] = {{{"route", "chat"}, {"user", keys[(i + d) % kKeys]}}};
      asked[d].entries = entries[d];
    }
    benchmark::DoNotOptimize(
        (*worker.DecideDescriptors({"d", asked}, {.next_unit = false}, now))->allowed);
    if (++i == kKeys) i = 0;
  }
}

void BM_DecideDescriptor(benchmark::State& state) {
  DecideDescriptors(state, 1, state.range(0), "token_bucket");
}
BENCHMARK(BM_DecideDescriptor)->Arg(0)->Arg(1000);

void BM_DecideDescriptorFixedWindow(benchmark::State& state) {
  DecideDescriptors(state, 1, 0, "fixed_window");
}
BENCHMARK(BM_DecideDescriptorFixedWindow);

void BM_DecideTwoDescriptors(benchmark::State& state) {
  DecideDescriptors(state, 2, 0, "token_bucket");
}
BENCHMARK(BM_DecideTwoDescriptors);

}  // namespace
}  // namespace weir::decide

BENCHMARK_MAIN();
