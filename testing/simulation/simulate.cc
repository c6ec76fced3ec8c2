// Replays one seed of the simulation, or looks for a seed that breaks a bound.
//
//   simulate --seed N            the scenario, everything that happens, and the verdict
//   simulate --from N --count M  the verdicts of many, quietly; ends at the first violation
//
// Exit 0: every bound held; 1: one did not; 2: wrong usage.
#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string_view>

#include "testing/simulation/fleet.h"

namespace {

using weir::testing::Fleet;
using weir::testing::Report;
using weir::testing::Scenario;

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

int Replay(uint64_t seed) {
  const Scenario scenario = Scenario::FromSeed(seed);
  fmt::print("{}\n", scenario.Describe());
  const Report report = Fleet(scenario, /*trace=*/true).Run();
  fmt::print("\n{} calls, {} units admitted; {} calls by leases, {} by shares; {} messages\n",
             report.calls, report.admitted_units, report.leased_calls, report.local_calls,
             report.trips);
  fmt::print("{}\n", report.violation ? "VIOLATION: " + *report.violation : "every bound held");
  return report.violation ? 1 : 0;
}

int Search(uint64_t from, uint64_t count) {
  int64_t calls = 0, leased = 0, local = 0, trips = 0;
  for (uint64_t seed = from; seed < from + count; ++seed) {
    const Report report = Fleet(Scenario::FromSeed(seed)).Run();
    calls += report.calls;
    leased += report.leased_calls;
    local += report.local_calls;
    trips += report.trips;
    if (report.violation) {
      fmt::print("seed {}: {}\n", seed, *report.violation);
      return 1;
    }
  }
  fmt::print(
      "{} seeds from {}: every bound held; {} calls, {} by leases, {} by shares; {} messages\n",
      count, from, calls, leased, local, trips);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<uint64_t> seed, from = 1, count;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    const std::optional<uint64_t> value = Number(argv[i + 1]);
    if (flag == "--seed") seed = value;
    if (flag == "--from") from = value;
    if (flag == "--count") count = value;
  }
  if (seed) return Replay(*seed);
  if (from && count) return Search(*from, *count);
  std::fputs("usage: simulate --seed N | simulate [--from N] --count M\n", stderr);
  return 2;
}
