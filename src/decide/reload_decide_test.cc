#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "testing/simulated_engine.h"

namespace weir::decide {
namespace {

using std::chrono::seconds;

std::string PerClient(const std::string& rate) {
  return "limits: [{name: a, per: [client], rate: " + rate + "}]";
}

TEST(ReloadTest, Case42_ARaiseGivesExactlyTheDifference) {
  SimulatedEngine weir(PerClient("10/hour"));
  EXPECT_EQ(weir.Allowed(50, {{"client", "x"}}), 10);
  weir.Reload(PerClient("20/hour"));
  EXPECT_EQ(weir.Allowed(50, {{"client", "x"}}), 10);
  EXPECT_EQ(weir.Decide({{"client", "x"}}).binding->quota, 20);
}

TEST(ReloadTest, Case44_ACutHoldsAtOnceForKnownClients) {
  SimulatedEngine weir(PerClient("100/min"));
  EXPECT_EQ(weir.Allowed(3, {{"client", "x"}}), 3);
  weir.Reload(PerClient("2/min"));
  EXPECT_EQ(weir.Decide({{"client", "x"}}, Costs::Requests(), {.peek = true}).limits[0].quota, 2);
  int allowed = 0;
  for (int t = 0; t < 60; ++t, weir.Advance(seconds(1)))
    allowed += weir.Allowed(1, {{"client", "x"}});
  EXPECT_LE(allowed, 2);
}

TEST(ReloadTest, Case45_StateAfterARaiseCountsFromTheNewQuota) {
  SimulatedEngine weir(PerClient("5/min"));
  weir.Reload(PerClient("10/min"));
  EXPECT_EQ(weir.Allowed(7, {{"client", "x"}}), 7);
  EXPECT_EQ(weir.worker->State(weir.Call({{"client", "x"}}), weir.now())[0].step.remaining, 3);
}

TEST(ReloadTest, Case46_CountsGoOnAcrossAReload) {
  SimulatedEngine weir(PerClient("1/hour"));
  EXPECT_EQ(weir.Allowed(4, {{"client", "x"}}), 1);
  weir.Reload("limits: [{name: a, per: [client], rate: 1/hour}, {name: b, rate: 1000/s}]");
  EXPECT_EQ(weir.Allowed(2, {{"client", "x"}}), 0);
  const std::string page = weir.engine->metrics().Expose();
  EXPECT_NE(
      page.find("weir_limit_decisions_total{limit=\"a\",layer=\"client\",outcome=\"denied\"} 5"),
      std::string::npos)
      << page;
  EXPECT_NE(page.find("weir_config_last_reload_successful 1"), std::string::npos);
}

TEST(ReloadTest, Case82_UsedUnitsSurviveAReload) {
  SimulatedEngine weir(PerClient("10/hour"));
  EXPECT_EQ(weir.Allowed(3, {{"client", "x"}}), 3);
  weir.Reload(PerClient("10/hour"));
  EXPECT_EQ(weir.worker->State(weir.Call({{"client", "x"}}), weir.now())[0].step.remaining, 7);
}

TEST(ReloadTest, WhatNeedsARestartIsRefusedAndChangesNothing) {
  SimulatedEngine weir("store: {max_keys: 1000}\n" + PerClient("10/hour"));
  auto plan = weir.engine->Reload(LoadPolicy("store: {max_keys: 2000}\n" + PerClient("20/hour")));
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(weir.Decide({{"client", "x"}}).binding->quota, 10);
  EXPECT_NE(weir.engine->metrics().Expose().find("weir_config_last_reload_successful 0"),
            std::string::npos);
}

TEST(ReloadTest, TwoThreadsAdmitExactlyTheLimitAcrossReloads) {
  constexpr int kLimit = 20'000;
  SimulatedEngine weir(PerClient(std::to_string(kLimit) + "/year"), /*shards=*/3);
  std::atomic<int> admitted{0};
  std::atomic<int> running{2};
  const auto call_in_a_loop = [&](size_t shard) {
    Worker worker(*weir.engine, shard);
    policy::Attributes call;
    call.Set(policy::kClientAttribute, "x");
    const core::Now now = weir.now();
    int mine = 0;
    for (int i = 0; i < kLimit; ++i) {
      (void)worker.policy();  // Each call takes over the reload that came before it.
      mine += (*worker.Decide(call, Costs::Requests(), {}, now))->allowed ? 1 : 0;
    }
    admitted += mine;
    --running;
  };
  std::thread first(call_in_a_loop, 1);
  std::thread second(call_in_a_loop, 2);
  int reloads = 0;
  do {
    const std::string other = reloads % 2 == 0 ? ", {name: other, rate: 1000000000/s}" : "";
    weir.Reload("limits: [{name: a, per: [client], rate: " + std::to_string(kLimit) + "/year}" +
                other + "]");
    ++reloads;
  } while (running.load() > 0);
  first.join();
  second.join();
  EXPECT_EQ(admitted.load(), kLimit);
  EXPECT_GT(reloads, 0);
}

// The attributes of a call are numbered by the policy that was asked for at its start; a reload in
// between must not read them by another numbering.
TEST(ReloadTest, AReloadBetweenNamingAndDecidingLeavesTheCallItsPolicy) {
  const std::string limit = "limits: [{name: a, per: [tenant], rate: 1/hour}]";
  SimulatedEngine weir("attributes: [tenant, team]\n" + limit);
  const policy::Attributes call = weir.Call({{"tenant", "t"}, {"team", "blue"}});
  weir.Reload("attributes: [team, tenant]\n" + limit);
  EXPECT_TRUE((*weir.worker->Decide(call, Costs::Requests(), {}, weir.now()))->allowed);
  EXPECT_FALSE(weir.Decide({{"tenant", "t"}, {"team", "red"}}).allowed);
  EXPECT_TRUE(weir.Decide({{"tenant", "blue"}, {"team", "red"}}).allowed);
}

}  // namespace
}  // namespace weir::decide
