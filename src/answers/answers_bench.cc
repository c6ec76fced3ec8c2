// What the header fields and the body of an answer cost: two limits, all dialects.
#include <benchmark/benchmark.h>

#include <vector>

#include "answers/limit_headers.h"
#include "answers/refusal.h"

namespace weir::answers {
namespace {

std::vector<decide::LimitVerdict> Limits(bool allowed) {
  return {{.name = "per-client",
           .allowed = allowed,
           .cost = 1,
           .quota = 50,
           .window_s = 10,
           .remaining = allowed ? 49 : 0,
           .reset_after_ns = 200'000'000,
           .retry_after_ns = allowed ? 0 : 200'000'000,
           .next_unit_after_ns = 200'000'000},
          {.name = "per-ip",
           .cost = 1,
           .quota = 10000,
           .window_s = 60,
           .remaining = 9999,
           .reset_after_ns = 6'000'000,
           .next_unit_after_ns = 6'000'000}};
}

void BM_LimitHeaders(benchmark::State& state) {
  const std::vector<decide::LimitVerdict> limits = Limits(true);
  const decide::Verdict verdict{.limits = limits, .binding = limits.data()};
  const policy::AnswersConfig config;
  wire::Buffer out;
  for (auto _ : state) {
    out.Clear();
    AppendLimitHeaders(verdict, config, AdviseRetry(verdict, config, 0), 1'796'068'800'000'000'000,
                       out);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(BM_LimitHeaders);

void BM_TooManyRequestsBody(benchmark::State& state) {
  const std::vector<decide::LimitVerdict> limits = Limits(false);
  const decide::Verdict verdict{
      .allowed = false, .limits = limits, .binding = limits.data(), .retry_after_ns = 200'000'000};
  const policy::AnswersConfig config;
  wire::Buffer out;
  for (auto _ : state) {
    out.Clear();
    AppendTooManyRequests(verdict, BodyShape::kOpenAi, AdviseRetry(verdict, config, 0),
                          {.wall_ns = 1}, out);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(BM_TooManyRequestsBody);

}  // namespace
}  // namespace weir::answers

BENCHMARK_MAIN();
