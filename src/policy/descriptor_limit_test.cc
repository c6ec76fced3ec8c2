// Limits that bind to descriptors, from YAML to words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/describe.h"
#include "policy/reload.h"
#include "policy/test_policy.h"

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kLimits = R"(
limits:
  - {name: users, domain: mongo, descriptor: [{key: database, value: users}], rate: 500/s}
  - {name: trial, domain: mongo, descriptor: [{key: database, value: users}], rate: 5/s, enforce: shadow}
  - {name: other, domain: mongo, descriptor: [{key: database}], rate: 100/s}
  - {name: test,  domain: mongo, descriptor: [{key: database, value: test-*}], rate: unlimited}
  - {name: deep,  domain: mongo, descriptor: [{key: database}, {key: ip}], rate: 9 tokens/s}
  - {name: client, per: [client], rate: 3/min}
)";

std::vector<std::string> Bound(const Policy& policy, std::string_view domain,
                               const std::vector<DescriptorEntry>& entries) {
  std::vector<std::string> names;
  for (const int index : policy.descriptors().Find(domain, entries))
    names.push_back(policy.limits()[static_cast<size_t>(index)].name);
  return names;
}

TEST(DescriptorLimit, IsReadAndFound) {
  const auto policy = MustLoad(kLimits);
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->limits()[3].descriptor->entries[0].kind, EntryPattern::Kind::kWildcard);
  EXPECT_EQ(policy->limits()[4].unit, Unit::kTokens);
  EXPECT_THAT(Bound(*policy, "mongo", {{"database", "users"}}), ElementsAre("users", "trial"));
  EXPECT_THAT(Bound(*policy, "mongo", {{"database", "orders"}}), ElementsAre("other"));
  EXPECT_THAT(Bound(*policy, "mongo", {{"database", "test-1"}}), ElementsAre("test"));
  EXPECT_THAT(Bound(*policy, "mongo", {{"database", "users"}, {"ip", "::1"}}), ElementsAre("deep"));
  EXPECT_THAT(Bound(*policy, "other", {{"database", "users"}}), IsEmpty());
}

TEST(DescriptorLimit, IsForNoCallByAttributes) {
  const auto policy = MustLoad(kLimits);
  ASSERT_TRUE(policy);
  Attributes call;
  call.Set(kClientAttribute, "alice");
  EXPECT_THAT(Applying(*policy, call), ElementsAre("client"));
}

TEST(DescriptorLimit, WhatDoesNotGoWithItIsRefused) {
  EXPECT_THAT(LimitErrors("domain: d, descriptor: [{key: k}], rate: 1/s, per: [ip]"),
              ElementsAre("test.yaml:2:64: limit `a`: `per` does not go with `descriptor`: the "
                          "values of its entries are the key already"));
  EXPECT_THAT(LimitErrors("domain: d, descriptor: [{key: k}], rate: 1/s, match: {ip: 10.0.0.0/8}"),
              ElementsAre(HasSubstr("`match` does not go with `descriptor`: it says itself")));
  EXPECT_THAT(LimitErrors("domain: d, descriptor: [{key: k}], rate: 1/s, overrides: [{when: {ip: "
                          "10.0.0.0/8}, rate: 2/s}]"),
              ElementsAre(HasSubstr("`overrides` does not go with `descriptor`: bind another")));
  EXPECT_THAT(LimitErrors("domain: d, descriptor: [{key: k}], parallel: 3"),
              ElementsAre(HasSubstr("`parallel` does not go with `descriptor`")));
  EXPECT_THAT(LimitErrors("descriptor: [{key: k}], rate: 1/s"),
              ElementsAre(HasSubstr("`limits[0].domain` is missing")));
  EXPECT_THAT(LimitErrors("domain: d, rate: 1/s"),
              ElementsAre(HasSubstr("`limits[0].descriptor` is missing")));
  EXPECT_THAT(LimitErrors("domain: '', descriptor: [{key: k}], rate: 1/s"),
              ElementsAre(HasSubstr("domain must not be empty")));
  EXPECT_THAT(LimitErrors("domain: d, descriptor: [], rate: 1/s"),
              ElementsAre(HasSubstr("descriptor has 1 to 32 entries")));
  EXPECT_THAT(LimitErrors("domain: d, descriptor: [{value: v}], rate: 1/s"),
              ElementsAre(HasSubstr("`limits[0].descriptor[0].key` is missing")));
  EXPECT_THAT(LimitErrors("domain: d, descriptor: [{key: '', value: v}], rate: 1/s"),
              ElementsAre(HasSubstr("descriptor[0].key: must not be empty")));
  EXPECT_THAT(LimitErrors("domain: d, descriptor: [{key: k, valeu: v}], rate: 1/s"),
              ElementsAre(HasSubstr("did you mean `value`?")));
}

TEST(DescriptorLimit, InWordsAndAsJson) {
  const auto policy = MustLoad(kLimits);
  ASSERT_TRUE(policy);
  EXPECT_THAT(Describe(*policy),
              HasSubstr("  users: at most 1000 in any second\n"
                        "    500/s, token_bucket; per values of its descriptors; on descriptors of "
                        "mongo: database=users\n"));
  EXPECT_THAT(ToJson(*policy),
              HasSubstr(R"("domain":"mongo","descriptor":[{"key":"database","value":"users"}],)"));
  EXPECT_THAT(*ExplainDescriptor(*policy, "mongo", {"database=users"}),
              "applies:\n"
              "  users: at most 1000 in any second (500/s, token_bucket), key database=users\n"
              "  trial: at most 10 in any second (5/s, token_bucket), key database=users, in "
              "shadow: counted, never denying\n"
              "does not apply:\n"
              "  other: database=users is more specific\n"
              "  test: database is users, not test-*\n"
              "  deep: it binds to 2 entries, and there are 1\n");
  EXPECT_THAT(*ExplainDescriptor(*policy, "nongo", {"database=users"}),
              "applies:\n  none\ndoes not apply:\n  no limit has the domain nongo; did you mean "
              "`mongo`?\n");
  EXPECT_FALSE(ExplainDescriptor(*policy, "mongo", {}));
  EXPECT_FALSE(ExplainDescriptor(*policy, "mongo", {"database"}));
  EXPECT_THAT(*ExplainPairs(*policy, {"client=a"}, Missing::kSkip),
              HasSubstr("  users: it is for descriptors (of mongo)\n"));
}

TEST(DescriptorLimit, AReloadKeepsCountersUnlessItsKeysChange) {
  const auto with = [](const std::string& keys) {
    return MustLoad("limits: [{name: a, " + keys + "}]");
  };
  const auto was = with("domain: d, descriptor: [{key: k, value: v}], rate: 1/s");
  const ReloadPlan rerated = Diff(*was, *with("domain: d, descriptor: [{key: k}], rate: 2/s"));
  EXPECT_THAT(rerated.rerated, ElementsAre("a"));
  EXPECT_THAT(rerated.warnings, IsEmpty());
  const ReloadPlan afresh =
      Diff(*was, *with("domain: d, descriptor: [{key: k}, {key: l}], rate: 1/s"));
  EXPECT_THAT(afresh.warnings, ElementsAre("limit `a`: `descriptor` changed from d [k] to d [k, "
                                           "l]; its counters start afresh"));
}

}  // namespace
}  // namespace weir::policy
