// An engine on a simulated clock, with one worker: what tests of decisions and doors begin with.
//
// Thread safety: one thread, apart from what Engine itself allows.
//
//   SimulatedEngine weir("limits: [{name: a, per: [client], rate: 10/min}]");
//   EXPECT_TRUE(weir.Decide({{"client", "alice"}}).allowed);
//   weir.Advance(std::chrono::seconds(6));
#pragma once

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "decide/engine.h"
#include "gtest/gtest.h"
#include "policy/policy.h"
#include "testing/simulated_clock.h"

namespace weir {

inline std::shared_ptr<const policy::Policy> LoadPolicy(const std::string& yaml) {
  auto loaded =
      policy::Policy::FromText(yaml, "test.yaml", [](std::string_view) { return std::nullopt; });
  if (!loaded) {
    for (const policy::ConfigError& error : loaded.error())
      ADD_FAILURE() << policy::ToString(error);
    std::abort();
  }
  return *loaded;
}

class SimulatedEngine {
 public:
  using Pairs = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  explicit SimulatedEngine(const std::string& yaml, size_t shards = 1,
                           size_t max_reservations = 1'000'000) {
    auto made = decide::Engine::Create({.policy = LoadPolicy(yaml),
                                        .clock = &clock,
                                        .shards = shards,
                                        .max_reservations = max_reservations});
    if (!made) {
      ADD_FAILURE() << made.error().message;
      std::abort();
    }
    engine = std::move(*made);
    worker = std::make_unique<decide::Worker>(*engine, 0);
  }

  core::Now now() const { return engine->NowAt(clock.MonotonicNs(), clock.RealtimeNs()); }
  void Advance(std::chrono::nanoseconds by) { clock.Advance(by); }
  void Reload(const std::string& yaml) {
    auto plan = engine->Reload(LoadPolicy(yaml));
    if (!plan) ADD_FAILURE() << plan.error().message;
  }

  policy::Attributes Call(Pairs pairs) {
    const policy::AttributeTable& names = worker->policy().attributes();
    policy::Attributes call;
    for (const auto& [name, value] : pairs) call.Set(names.Find(name).value(), value);
    return call;
  }
  const decide::Verdict& Decide(Pairs pairs, const decide::Costs& costs = decide::Costs::Requests(),
                                const decide::DecideOptions& options = {}) {
    const auto decided = worker->Decide(Call(pairs), costs, options, now());
    if (!decided) {
      ADD_FAILURE() << decided.error().message;
      std::abort();
    }
    return **decided;
  }
  int Allowed(int calls, Pairs pairs) {
    int allowed = 0;
    for (int i = 0; i < calls; ++i) allowed += Decide(pairs).allowed ? 1 : 0;
    return allowed;
  }

  SimulatedClock clock;
  std::unique_ptr<decide::Engine> engine;
  std::unique_ptr<decide::Worker> worker;
};

}  // namespace weir
