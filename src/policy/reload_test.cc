#include "policy/reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/test_policy.h"

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ReloadPlan DiffOf(const std::string& running, const std::string& next) {
  const auto a = MustLoad(running);
  const auto b = MustLoad(next);
  if (!a || !b) return {};
  return Diff(*a, *b);
}

ReloadPlan LimitDiff(const std::string& running, const std::string& next) {
  return DiffOf("attributes: [t]\nlimits: [{name: a, " + running + "}]",
                "attributes: [t]\nlimits: [{name: a, " + next + "}]");
}

TEST(Diff, AChangedRateKeepsItsCounters) {
  for (const char* next : {"rate: 20/min", "rate: 10/hour", "rate: 10/min, burst: 5",
                           "rate: 10/min, overrides: [{when: {client: x}, rate: 5/min}]"}) {
    const ReloadPlan plan = LimitDiff("rate: 10/min", next);
    EXPECT_THAT(plan.rerated, ElementsAre("a")) << next;
    EXPECT_THAT(plan.restarted, IsEmpty()) << next;
    EXPECT_THAT(plan.warnings, IsEmpty()) << next;
  }
  EXPECT_THAT(LimitDiff("rate: 10/min", "rate: 10/min").rerated, IsEmpty());
  EXPECT_THAT(
      LimitDiff("rate: 10/min, algorithm: fixed_window", "rate: 20/min, algorithm: fixed_window")
          .rerated,
      ElementsAre("a"));
}

TEST(Diff, AChangedKindStartsAfreshWithAWarning) {
  EXPECT_THAT(LimitDiff("rate: 10/min", "rate: 10/min, algorithm: sliding_window").warnings,
              ElementsAre("limit `a`: the algorithm changed from token_bucket to sliding_window; "
                          "its counters start afresh"));
  EXPECT_THAT(LimitDiff("rate: 10/min", "rate: 10 tokens/min").warnings,
              ElementsAre("limit `a`: the unit changed from requests to tokens; its counters start "
                          "afresh"));
  EXPECT_THAT(LimitDiff("rate: 10/min, per: [ip]", "rate: 10/min, per: [ip, t]").warnings,
              ElementsAre("limit `a`: `per` changed from [ip] to [ip, t]; its counters start "
                          "afresh"));
  EXPECT_THAT(LimitDiff("rate: 10/day, algorithm: fixed_window",
                        "rate: 10/day, algorithm: fixed_window, align: calendar")
                  .warnings,
              ElementsAre("limit `a`: the period changed, and with it the windows; its counters "
                          "start afresh"));
  EXPECT_THAT(
      LimitDiff("rate: 10/min, algorithm: fixed_window", "rate: 10/hour, algorithm: fixed_window")
          .restarted,
      ElementsAre("a"));
}

TEST(Diff, AnotherConsistencyIsAnotherCounterOnASharedStore) {
  const auto diff = [](const std::string& running, const std::string& next) {
    const std::string front =
        "store: {kind: redis, url: 'redis://127.0.0.1'}\nidentity: {secret: 0123456789abcdef}\n"
        "limits: [{name: a, rate: 10/min, consistency: ";
    return DiffOf(front + running + "}]", front + next + "}]").warnings;
  };
  EXPECT_THAT(diff("exact", "leased"),
              ElementsAre("limit `a`: `consistency` changed from exact to leased; its counters "
                          "start afresh"));
  EXPECT_THAT(diff("leased", "leased_fast"), IsEmpty());
  EXPECT_THAT(LimitDiff("rate: 10/min", "rate: 10/min, consistency: leased").warnings, IsEmpty());
}

TEST(Diff, LimitsComeAndGo) {
  const ReloadPlan plan = DiffOf("limits: [{name: a, rate: 1/s}, {name: b, rate: 1/s}]",
                                 "limits: [{name: b, rate: 1/s}, {name: c, rate: 1/s}]");
  EXPECT_THAT(plan.added, ElementsAre("c"));
  EXPECT_THAT(plan.removed, ElementsAre("a"));
  EXPECT_THAT(plan.rerated, IsEmpty());
}

TEST(Diff, WhatOnlyARestartChangesIsNamed) {
  EXPECT_EQ(RestartMessage(DiffOf("listen: {api: 127.0.0.1:1}", "listen: {api: 127.0.0.1:2}")),
            "restart to apply: listen.api: the address changed from 127.0.0.1:1 to 127.0.0.1:2");
  EXPECT_EQ(RestartMessage(DiffOf("threads: 1", "threads: 2\nlisten: {ops: 127.0.0.1:2}")),
            "restart to apply: listen.ops: the door was off and is now on; threads: changed from 1 "
            "to 2");
  EXPECT_EQ(RestartMessage(DiffOf("", "store: {max_keys: 7}")),
            "restart to apply: store: its settings changed");
  EXPECT_EQ(RestartMessage(DiffOf("listen: {api: {address: 127.0.0.1:1, token: hunter2}}",
                                  "listen: {api: {address: 127.0.0.1:1, token: other}}")),
            "restart to apply: listen.api: the token changed");
  EXPECT_EQ(RestartMessage(DiffOf("timeouts: {idle: 1s}", "timeouts: {idle: 2s}")), "");
}

}  // namespace
}  // namespace weir::policy
