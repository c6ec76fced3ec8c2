#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "testing/simulated_engine.h"

namespace weir::decide {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr int64_t kMs = 1'000'000;

Costs Tokens(int64_t n) {
  Costs costs;
  costs.Set(Unit::kTokens, n);
  return costs;
}

TEST(DecideTest, Case4_WaitCountsThePartlyBuiltToken) {
  SimulatedEngine weir("limits: [{name: a, per: [client], rate: 1/s}]");
  EXPECT_TRUE(weir.Decide({{"client", "x"}}).allowed);
  weir.Advance(milliseconds(200));
  const Verdict& denied = weir.Decide({{"client", "x"}});
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after_ns, 800 * kMs);
  ASSERT_NE(denied.binding, nullptr);
  EXPECT_EQ(denied.binding->name, "a");
  EXPECT_EQ(denied.binding->next_unit_after_ns, 800 * kMs);
  weir.Advance(milliseconds(800));
  EXPECT_TRUE(weir.Decide({{"client", "x"}}).allowed);
}

TEST(DecideTest, Case21_LimitZeroAdmitsNothing) {
  SimulatedEngine weir("limits: [{name: a, per: [client], rate: 0/min}]");
  EXPECT_EQ(weir.Allowed(1000, {{"client", "x"}}), 0);
  EXPECT_EQ(weir.Decide({{"client", "x"}}).retry_after_ns, core::kNever);
}

TEST(DecideTest, Case30_TokenCallsWaitForTheirWholeCost) {
  SimulatedEngine weir("limits: [{name: a, per: [client], rate: 40000 tokens/min}]");
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(weir.Decide({{"client", "x"}}, Tokens(800)).allowed);
  const Verdict& denied = weir.Decide({{"client", "x"}}, Tokens(800));
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after_ns, 1200 * kMs);
}

TEST(DecideTest, Case32a_RefusedBySpecialSpendsNothingOfGroup) {
  SimulatedEngine weir(R"(
limits:
  - {name: group, rate: 10/min}
  - {name: special, rate: 3/min, match: {path: /special}}
)");
  EXPECT_EQ(weir.Allowed(5, {{"path", "/special"}}), 3);
  EXPECT_EQ(weir.Allowed(8, {{"path", "/other"}}), 7);
}

TEST(DecideTest, Case32b_DayAndSecondInEitherOrder) {
  for (const char* yaml : {"limits: [{name: day, rate: 100/day}, {name: second, rate: 10/s}]",
                           "limits: [{name: second, rate: 10/s}, {name: day, rate: 100/day}]"}) {
    SimulatedEngine weir(yaml);
    for (int t = 0; t < 12; ++t) {
      EXPECT_EQ(weir.Allowed(50, {}), t < 10 ? 10 : 0) << yaml << " at " << t;
      weir.Advance(seconds(1));
    }
  }
}

TEST(DecideTest, Case34_TwoLimitsOnOneClientCountApart) {
  SimulatedEngine weir(
      "limits: [{name: min, per: [ip], rate: 5/min}, {name: day, per: [ip], rate: 50/day}]");
  for (int minute = 0; minute < 11; ++minute) {
    EXPECT_EQ(weir.Allowed(6, {{"ip", "203.0.113.7"}}), minute < 10 ? 5 : 0) << minute;
    weir.Advance(minutes(1));
  }
}

TEST(DecideTest, Case37_OverlappingPathsAllApplyInEveryOrder) {
  const std::string api = "{name: api, rate: 10/min, match: {path: /api/*}}";
  const std::string v1 = "{name: v1, rate: 5/min, match: {path: /api/v1/*}}";
  const std::string chat = "{name: chat, rate: 3/min, match: {path: /api/v1/chat}}";
  for (const std::string& order :
       {api + "," + v1 + "," + chat, chat + "," + v1 + "," + api, v1 + "," + chat + "," + api}) {
    SimulatedEngine weir("limits: [" + order + "]");
    EXPECT_EQ(weir.Allowed(3, {{"path", "/api/v1/chat"}}), 3);
    const Verdict& denied = weir.Decide({{"path", "/api/v1/chat"}});
    EXPECT_FALSE(denied.allowed);
    EXPECT_EQ(denied.binding->name, "chat");
    EXPECT_EQ(denied.retry_after_ns, 20'000 * kMs);
  }
}

TEST(DecideTest, Case40_AMissingAttributeLeavesOtherLimitsCounting) {
  SimulatedEngine weir(R"(
attributes: [tenant]
limits:
  - {name: tenants, per: [tenant], rate: 1/min}
  - {name: clients, per: [client], rate: 2/min}
)");
  EXPECT_EQ(weir.Allowed(4, {{"client", "x"}}), 2);
  EXPECT_EQ(weir.Decide({{"client", "x"}}).limits.size(), 1u);
}

TEST(DecideTest, MissingMeansEmptyAtTheGatewayAndDenyWhenAsked) {
  SimulatedEngine weir(R"(
attributes: [tenant]
limits:
  - {name: strict, per: [tenant], rate: 5/min, missing: deny}
  - {name: clients, per: [client], rate: 2/min}
)");
  const Verdict& denied = weir.Decide({{"client", "x"}});
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after_ns, core::kNever);
  EXPECT_EQ(denied.binding->name, "strict");
  EXPECT_TRUE(denied.binding->attribute_missing);
  // The denial spent nothing of the other limit.
  EXPECT_EQ(weir.Decide({{"client", "x"}, {"tenant", "t"}}).limits[1].remaining, 1);
}

TEST(DecideTest, Case54_TheDenyingLimitBindsNotTheLongestWindow) {
  SimulatedEngine weir("limits: [{name: year, rate: 100000/year}, {name: min, rate: 5/min}]");
  EXPECT_EQ(weir.Allowed(5, {}), 5);
  const Verdict& denied = weir.Decide({});
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.binding->name, "min");
  EXPECT_EQ(denied.retry_after_ns, 12'000 * kMs);
}

TEST(DecideTest, TheLongestWaitBindsAndNeverBeatsAll) {
  SimulatedEngine weir(
      "limits: [{name: a, rate: 60/min, burst: 1}, {name: b, rate: 6/min, burst: 1}, {name: c, "
      "rate: 100 tokens/s}]");
  EXPECT_TRUE(weir.Decide({}).allowed);
  EXPECT_EQ(weir.Decide({}).binding->name, "b");
  EXPECT_EQ(weir.Decide({}).retry_after_ns, 10'000 * kMs);
  Costs costs = Tokens(101);
  costs.Set(Unit::kRequests, 1);
  const Verdict& never = weir.Decide({}, costs);
  EXPECT_EQ(never.binding->name, "c");
  EXPECT_EQ(never.retry_after_ns, core::kNever);
}

TEST(DecideTest, WhenAllowedTheLeastShareBinds) {
  SimulatedEngine weir("limits: [{name: a, rate: 100/min}, {name: b, rate: 10/min}]");
  const Verdict& verdict = weir.Decide({});
  EXPECT_TRUE(verdict.allowed);
  EXPECT_EQ(verdict.binding->name, "b");
  EXPECT_EQ(verdict.binding->remaining, 9);
  EXPECT_EQ(verdict.binding->window_s, 60);
  EXPECT_EQ(verdict.retry_after_ns, 0);
}

TEST(DecideTest, AUnitWithoutCostIsPeeked) {
  SimulatedEngine weir("limits: [{name: r, rate: 2/min}, {name: t, rate: 100 tokens/min}]");
  EXPECT_TRUE(weir.Decide({}, Tokens(100)).allowed);
  const Verdict& verdict = weir.Decide({}, Costs::Requests());
  EXPECT_TRUE(verdict.allowed);  // No tokens are asked for, so none left is no reason to refuse.
  EXPECT_EQ(verdict.limits[0].remaining, 1);
  EXPECT_EQ(verdict.limits[1].remaining, 0);
}

TEST(DecideTest, PeekSaysWhetherAndChangesNothing) {
  SimulatedEngine weir("limits: [{name: a, rate: 1/min}]");
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(weir.Decide({}, Costs::Requests(), {.peek = true}).allowed);
  EXPECT_TRUE(weir.Decide({}).allowed);
  EXPECT_FALSE(weir.Decide({}, Costs::Requests(), {.peek = true}).allowed);
}

TEST(DecideTest, ShadowLimitsCountAndNeverDeny) {
  SimulatedEngine weir(
      "limits: [{name: trial, rate: 1/min, enforce: shadow}, {name: real, rate: 3/min}]");
  EXPECT_TRUE(weir.Decide({}).allowed);
  const Verdict& second = weir.Decide({});
  EXPECT_TRUE(second.allowed);
  EXPECT_FALSE(second.limits[0].allowed);
  EXPECT_TRUE(second.limits[0].shadow);
  EXPECT_EQ(second.binding->name, "real");
  const std::string page = weir.engine->metrics().Expose();
  EXPECT_NE(page.find("weir_limit_decisions_total{limit=\"trial\",layer=\"global\",outcome="
                      "\"shadow_denied\"} 1"),
            std::string::npos)
      << page;
  EXPECT_TRUE(weir.Decide({}).allowed);
  EXPECT_FALSE(weir.Decide({}).allowed);  // Now the real one.
}

TEST(DecideTest, EnforcePercentDeniesAStableShareOfKeys) {
  SimulatedEngine weir("limits: [{name: a, per: [client], rate: 1/min, enforce: 10%}]");
  int enforced = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string client = "client-" + std::to_string(i);
    EXPECT_TRUE(weir.Decide({{"client", client}}).allowed);
    const bool denied = !weir.Decide({{"client", client}}).allowed;
    EXPECT_EQ(!weir.Decide({{"client", client}}).allowed, denied);
    enforced += denied ? 1 : 0;
  }
  EXPECT_GT(enforced, 60);
  EXPECT_LT(enforced, 140);
}

TEST(DecideTest, ParallelIsOnlyTestedWithoutAReservation) {
  SimulatedEngine weir("limits: [{name: p, per: [client], parallel: 1}]");
  EXPECT_EQ(weir.Allowed(5, {{"client", "x"}}), 5);
  const Verdict& held =
      weir.Decide({{"client", "x"}}, Costs::Requests(), {.reserve_ttl_ns = 60'000 * kMs});
  ASSERT_TRUE(held.reservation.has_value());
  const Verdict& denied = weir.Decide({{"client", "x"}});
  EXPECT_FALSE(denied.allowed);
  EXPECT_EQ(denied.retry_after_ns, 1000 * kMs);
  EXPECT_EQ(denied.binding->reset_after_ns, core::kNever);
}

TEST(DecideTest, NextUnitOfEachAlgorithm) {
  SimulatedEngine weir(R"(
limits:
  - {name: bucket, rate: 6/min, burst: 3}
  - {name: window, rate: 6/min, algorithm: sliding_window}
)");
  weir.Decide({});
  weir.Advance(seconds(4));
  const Verdict& verdict = weir.Decide({});
  EXPECT_EQ(verdict.limits[0].next_unit_after_ns, 6'000 * kMs);
  EXPECT_EQ(verdict.limits[1].next_unit_after_ns, 56'000 * kMs);
}

TEST(DecideTest, NearAndOutcomesAreCounted) {
  SimulatedEngine weir("limits: [{name: a, per: [client], rate: 10/min}]");
  weir.Allowed(12, {{"client", "x"}});
  const std::string page = weir.engine->metrics().Expose();
  EXPECT_NE(page.find("weir_limit_near_total{limit=\"a\"} 3"), std::string::npos) << page;
  EXPECT_NE(page.find("weir_decisions_total{door=\"api\",outcome=\"denied\",source=\"memory\"} 2"),
            std::string::npos);
  const auto top = weir.engine->metrics().hot_keys().Top(metrics::HotKeys::By::kDenied, 5);
  ASSERT_EQ(top.size(), 1u);
  EXPECT_EQ(top[0].client, "x");
  EXPECT_EQ(top[0].count, 2u);
}

TEST(DecideTest, AdHocRulesAreNamedByAlgorithmAndKeyAlone) {
  SimulatedEngine weir("limits: []");
  const core::MeterSpec ten{.rate = {.units = 10, .period = std::chrono::hours(1), .burst = 10}};
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE((*weir.worker->DecideAdHoc({"k", ten, "n"}, 1, {}, weir.now()))->allowed);
  EXPECT_FALSE((*weir.worker->DecideAdHoc({"k", ten, "n"}, 1, {}, weir.now()))->allowed);
  EXPECT_TRUE((*weir.worker->DecideAdHoc({"other", ten, "n"}, 1, {}, weir.now()))->allowed);
  core::MeterSpec twenty = ten;
  twenty.rate.units = twenty.rate.burst = 20;  // A changed rate finds the used units.
  EXPECT_EQ((*weir.worker->DecideAdHoc({"k", twenty, "n"}, 1, {}, weir.now()))->limits[0].remaining,
            9);
}

TEST(DecideTest, ResetForgetsOneCounterAndStateShowsWhatIsLeft) {
  SimulatedEngine weir(
      "limits: [{name: a, per: [client], rate: 10/hour}, {name: b, per: [ip], rate: 5/hour}]");
  weir.Allowed(4, {{"client", "x"}});
  weir.Allowed(4, {{"client", "y"}});
  const policy::Attributes x = weir.Call({{"client", "x"}});
  std::vector<LimitState> state = weir.worker->State(x, weir.now());
  ASSERT_EQ(state.size(), 1u);
  EXPECT_EQ(state[0].limit->name, "a");
  EXPECT_EQ(state[0].step.remaining, 6);
  ASSERT_TRUE(weir.worker->Reset("a", x, weir.now()).has_value());
  EXPECT_EQ(weir.worker->State(x, weir.now())[0].step.remaining, 10);
  EXPECT_EQ(weir.worker->State(weir.Call({{"client", "y"}}), weir.now())[0].step.remaining, 6);
  EXPECT_EQ(weir.worker->Reset("nope", x, weir.now()).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(weir.worker->Reset("b", x, weir.now()).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir::decide
