// Calls by descriptors over time, in the metrics, and without an allocation.
#include "decide/descriptors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/allocation_count.h"
#include "testing/simulated_engine.h"

namespace weir::decide {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr int64_t kSecondNs = 1'000'000'000;

// One descriptor of one entry.
class OneEntry : public SimulatedEngine {
 public:
  using SimulatedEngine::SimulatedEngine;

  const Verdict& Hit(std::string_view key, std::string_view value,
                     std::optional<RateOverride> own_rate = {}) {
    const DescriptorEntry entries[] = {{key, value}};
    const Descriptor descriptors[] = {{.entries = entries, .hits = 1, .own_rate = own_rate}};
    worker->policy();
    const auto verdict =
        worker->DecideDescriptors({"d", descriptors}, {.door = metrics::Door::kGrpc}, now());
    if (!verdict) std::abort();
    return **verdict;
  }
};

TEST(DescriptorsTest, Case54_TheLimitThatDeniesIsShown) {
  OneEntry weir(R"(
limits:
  - {name: year, domain: d, descriptor: [{key: a}], rate: 100000/year}
  - {name: min,  domain: d, descriptor: [{key: a}], rate: 5/min, algorithm: fixed_window}
)");
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(weir.Hit("a", "x").allowed);
  const Verdict& denied = weir.Hit("a", "x");
  ASSERT_FALSE(denied.allowed);
  const LimitVerdict& binding = *denied.descriptors[0].binding;
  EXPECT_EQ(binding.name, "min");
  EXPECT_GT(binding.retry_after_ns, 0);
  EXPECT_LE(binding.retry_after_ns, 60 * kSecondNs);
  EXPECT_EQ(denied.binding, &binding);
}

TEST(DescriptorsTest, Case34_LimitsOfOneDescriptorCountApart) {
  OneEntry weir(R"(
limits:
  - {name: min, domain: d, descriptor: [{key: a}], rate: 5/min}
  - {name: day, domain: d, descriptor: [{key: a}], rate: 50/day, algorithm: fixed_window}
)");
  int total = 0;
  for (int minute = 0; minute < 11; ++minute, weir.Advance(minutes(1))) {
    for (int i = 0; i < 6; ++i) total += weir.Hit("a", "x").allowed;
  }
  EXPECT_EQ(total, 50);
}

TEST(DescriptorsTest, WaitingAsLongAsWasSaidPasses) {
  OneEntry weir("limits: [{name: a, domain: d, descriptor: [{key: a}], rate: 2/s}]");
  EXPECT_TRUE(weir.Hit("a", "x").allowed);
  EXPECT_TRUE(weir.Hit("a", "x").allowed);
  EXPECT_EQ(weir.Hit("a", "x").retry_after_ns, kSecondNs / 2);
  weir.Advance(milliseconds(499));
  EXPECT_FALSE(weir.Hit("a", "x").allowed);
  weir.Advance(milliseconds(1));
  EXPECT_TRUE(weir.Hit("a", "x").allowed);
}

// A bucket knows times, so any rate goes on from it; windows of another length count apart.
TEST(DescriptorsTest, ARateOfAnotherPeriodGoesOnWhereTheAlgorithmCan) {
  OneEntry weir(R"(
limits:
  - {name: bucket, domain: d, descriptor: [{key: b}], rate: 9/min}
  - {name: window, domain: d, descriptor: [{key: w}], rate: 9/min, algorithm: fixed_window, align: calendar}
)");
  for (int i = 0; i < 4; ++i) {
    weir.Hit("b", "x");
    weir.Hit("w", "x");
  }
  EXPECT_EQ(weir.Hit("b", "x", RateOverride{100, std::chrono::hours(1)}).binding->remaining, 95);
  const Verdict& window = weir.Hit("w", "x", RateOverride{100, std::chrono::hours(1)});
  EXPECT_EQ(window.binding->remaining, 99);
  EXPECT_EQ(window.binding->spec->alignment, core::Alignment::kHour);
  EXPECT_EQ(weir.Hit("w", "x", RateOverride{100, minutes(1)}).binding->remaining, 95);
}

TEST(DescriptorsTest, EnforceTakesAShareOfTheKeys) {
  OneEntry weir(
      "limits: [{name: a, domain: d, descriptor: [{key: a}], rate: 0/min, enforce: 30%}]");
  int denied = 0;
  for (int i = 0; i < 1000; ++i) denied += !weir.Hit("a", std::to_string(i)).allowed;
  EXPECT_NEAR(denied, 300, 60);
}

TEST(DescriptorsTest, CallsByAttributesMeetNoneOfTheseLimits) {
  OneEntry weir(R"(
limits:
  - {name: first, domain: d, descriptor: [{key: a}], rate: 0/min}
  - {name: client, per: [client], rate: 1/min}
)");
  EXPECT_EQ(weir.Allowed(2, {{"client", "x"}}), 1);
  EXPECT_EQ(weir.Decide({{"client", "y"}}).binding->name, "client");
  EXPECT_EQ(weir.worker->State(weir.Call({{"client", "x"}}), weir.now()).size(), 1u);
  EXPECT_TRUE(weir.Hit("client", "x").allowed);
}

TEST(DescriptorsTest, AreCountedByDoorAndLimit) {
  OneEntry weir(R"(
limits:
  - {name: a, domain: d, descriptor: [{key: a}], rate: 1/min}
  - {name: s, domain: d, descriptor: [{key: a}], rate: 0/min, enforce: shadow}
)");
  weir.Hit("a", "x");
  weir.Hit("a", "x");
  weir.Hit("own", "x", RateOverride{1, minutes(1)});
  const std::string page = weir.engine->metrics().Expose();
  for (const char* const line :
       {R"(weir_decisions_total{door="grpc",outcome="shadow_denied",source="memory"} 1)",
        R"(weir_decisions_total{door="grpc",outcome="denied",source="memory"} 1)",
        R"(weir_decisions_total{door="grpc",outcome="allowed",source="memory"} 1)",
        R"(weir_limit_decisions_total{limit="a",layer="global",outcome="denied"} 1)",
        R"(weir_limit_decisions_total{limit="s",layer="global",outcome="shadow_denied"} 2)"})
    EXPECT_THAT(page, ::testing::HasSubstr(line));
}

TEST(DescriptorsTest, ADecisionAllocatesNothing) {
  SimulatedEngine weir(R"(
limits:
  - {name: a, domain: d, descriptor: [{key: a, value: x*}, {key: b}], rate: 1000/s}
  - {name: w, domain: d, descriptor: [{key: a, value: x*}, {key: b}], rate: 9/min, algorithm: fixed_window}
)");
  weir.worker->policy();
  const DescriptorEntry entries[] = {{"a", "xyz"}, {"b", "203.0.113.7"}};
  const DescriptorEntry own[] = {{"own", "y"}};
  const Descriptor descriptors[] = {{.entries = entries},
                                    {.entries = entries, .hits = 0},
                                    {.entries = own, .own_rate = RateOverride{5, minutes(1)}}};
  int64_t before = 0;
  for (int i = 0; i < 20; ++i) {
    if (i == 1) before = allocation_count;
    ASSERT_TRUE(weir.worker->DecideDescriptors({"d", descriptors}, {}, weir.now()));
  }
  EXPECT_EQ(allocation_count - before, 0);
}

}  // namespace
}  // namespace weir::decide
