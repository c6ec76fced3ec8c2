// Which rate a call gets, and which attributes that may ask for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "policy/policy.h"
#include "policy/test_policy.h"
#include "testing/allocation_count.h"

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SelectVariant, FirstWrittenOverrideWins) {
  const auto policy = MustLoad(
      "limits:\n"
      "- name: a\n"
      "  per: [client, ip]\n"
      "  rate: 1/s\n"
      "  overrides:\n"
      "  - {when: {client: 'x-*'}, rate: 2/s}\n"
      "  - {when: {client: [x-1, y, z]}, rate: 3/s}\n"
      "  - {when: {client: y, ip: 10.0.0.0/8}, rate: 4/s}\n"
      "  - {when: {client: z, ip: 10.0.0.0/8}, rate: 5/s}\n"
      "  - {when: {client: w, ip: 10.0.0.0/8}, rate: 6/s}\n"
      "  - {when: {client: w}, rate: 7/s}\n"
      "  - {when: {not: {ip: 10.0.0.0/8}}, rate: 8/s}\n");
  ASSERT_TRUE(policy);
  const Limit& limit = policy->limits()[0];
  const auto rate = [&](std::string_view client, std::string_view ip) {
    Attributes call;
    call.Set(kClientAttribute, client);
    call.Set(kIpAttribute, ip);
    return RateFor(limit, call);
  };
  EXPECT_EQ(rate("x-1", "10.0.0.1"), "2/s");
  EXPECT_EQ(rate("y", "10.0.0.1"), "3/s");
  EXPECT_EQ(rate("z", "10.0.0.1"), "3/s");
  EXPECT_EQ(rate("w", "10.0.0.1"), "6/s");
  EXPECT_EQ(rate("w", "192.0.2.1"), "7/s");
  EXPECT_EQ(rate("v", "192.0.2.1"), "8/s");
  EXPECT_EQ(rate("v", "10.0.0.1"), "1/s");
}

TEST(SelectVariant, AgreesWithALinearSearchOverManyOverrides) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 20; ++round) {
    std::string text = "limits:\n- name: a\n  per: [client, model]\n  rate: 1/s\n  overrides:\n";
    for (int i = 0; i < 30; ++i) {
      text += "  - {when: {";
      const int form = pick(3);
      if (form != 0)
        text += "client: [c" + std::to_string(pick(9)) + ", c" + std::to_string(pick(9)) + "]";
      if (form == 1) text += ", ";
      if (form != 2) text += "model: m" + std::to_string(pick(3)) + (pick(2) ? "" : "*");
      text += "}, rate: " + std::to_string(i + 2) + "/s}\n";
    }
    const auto policy = MustLoad(text);
    ASSERT_TRUE(policy);
    const Limit& limit = policy->limits()[0];
    for (int i = 0; i < 100; ++i) {
      const std::string client = "c" + std::to_string(pick(10));
      const std::string model = "m" + std::to_string(pick(4));
      Attributes call;
      call.Set(kClientAttribute, client);
      call.Set(kModelAttribute, model);
      int expected = 0;
      for (int v = 1; v < static_cast<int>(limit.variants.size()) && expected == 0; ++v) {
        if (limit.variants[static_cast<size_t>(v)].when.Matches(call)) expected = v;
      }
      ASSERT_EQ(SelectVariant(limit, call, Missing::kSkip), expected) << client << " " << model;
    }
  }
}

TEST(SelectVariant, DoesNotAllocate) {
  const auto policy = MustLoad(kEveryKey, {{"KEY", "sk-1"}});
  ASSERT_TRUE(policy);
  Attributes call;
  call.Set(kClientAttribute, "a-client-whose-name-is-longer-than-a-short-string-holds");
  call.Set(kIpAttribute, "2001:db8:1234:5678:9abc:def0:1234:5678");
  call.Set(kMethodAttribute, "POST");
  call.Set(kHostAttribute, "API.Example.com");
  call.Set(kPathAttribute, "/v1/chat/completions");
  const int64_t before = allocation_count;
  int applying = 0;
  for (const Limit& limit : policy->limits()) {
    applying += SelectVariant(limit, call, Missing::kEmpty) >= 0;
    applying += IsEnforced(limit, call) ? 0 : 100;
  }
  const Route* route = policy->routes().Find("POST", "api.example.com", "/v1/chat/completions");
  EXPECT_EQ(allocation_count, before);
  EXPECT_NE(route, nullptr);
  EXPECT_EQ(applying % 100, 9);
}

TEST(SelectVariant, AMissingAttributeMeansWhatTheDoorOrTheLimitSays) {
  const auto policy = MustLoad(
      "limits:\n"
      "- {name: door, per: [model], rate: 1/s}\n"
      "- {name: skip, per: [model], rate: 1/s, missing: skip}\n"
      "- {name: empty, per: [model], rate: 1/s, missing: empty}\n"
      "- {name: deny, per: [model], rate: 1/s, match: {path: /v1/*}, missing: deny}\n"
      "- {name: other, per: [client], rate: 1/s}\n");
  ASSERT_TRUE(policy);
  Attributes call;
  call.Set(kClientAttribute, "c");
  call.Set(kPathAttribute, "/v1/chat");
  const auto select = [&](const char* name, Missing door) {
    return SelectVariant(*policy->FindLimit(name), call, door);
  };
  EXPECT_EQ(select("door", Missing::kSkip), kDoesNotApply);
  EXPECT_EQ(select("door", Missing::kEmpty), 0);
  EXPECT_EQ(select("skip", Missing::kEmpty), kDoesNotApply);
  EXPECT_EQ(select("empty", Missing::kSkip), 0);
  EXPECT_EQ(select("deny", Missing::kSkip), kDeniedMissing);
  EXPECT_EQ(select("other", Missing::kSkip), 0);
  call.Set(kPathAttribute, "/v2");
  EXPECT_EQ(select("deny", Missing::kSkip), kDoesNotApply);
  call.Set(kModelAttribute, "");
  EXPECT_EQ(select("skip", Missing::kEmpty), 0);
}

TEST(IsEnforced, TakesAStableShareOfTheKeys) {
  const auto policy = MustLoad("limits: [{name: a, per: [client], rate: 1/s, enforce: 10%}]");
  ASSERT_TRUE(policy);
  const Limit& limit = policy->limits()[0];
  int enforced = 0;
  std::string first;
  for (int i = 0; i < 10'000; ++i) {
    const std::string client = "client-" + std::to_string(i);
    Attributes call;
    call.Set(kClientAttribute, client);
    const bool is = IsEnforced(limit, call);
    enforced += is;
    if (i < 20) first += is ? '1' : '0';
    ASSERT_EQ(IsEnforced(limit, call), is);
  }
  EXPECT_GT(enforced, 850);
  EXPECT_LT(enforced, 1150);
  // The same on every node and in every version: a change here moves clients in production.
  EXPECT_EQ(first, "01000000000000100000");
}

TEST(Attributes, UndeclaredNamesAreErrorsThatNameThem) {
  const auto policy =
      MustLoad("attributes: [tenant]\nlimits: [{name: a, per: [header.X-Team], rate: 1/s}]");
  ASSERT_TRUE(policy);
  const AttributeTable& table = policy->attributes();
  EXPECT_EQ(*table.Find("client"), kClientAttribute);
  EXPECT_EQ(*table.Find("tenant"), kWellKnownAttributes);
  EXPECT_EQ(*table.Find("header.x-team"), kWellKnownAttributes + 1);
  EXPECT_EQ(*table.Find("header.X-TEAM"), kWellKnownAttributes + 1);
  EXPECT_EQ(*table.Find("header.other"), kUnusedAttribute);
  EXPECT_EQ(table.Find("tenat").error(),
            (Error{ErrorCode::kInvalidArgument,
                   "attribute `tenat` is not declared; did you mean `tenant`?"}));
  EXPECT_EQ(table.Find("a\nb").error().message, "attribute `a?b` is not declared");
  EXPECT_THAT(ErrorsOf("attributes: [client, 'a b', header.x, t, t]\n"),
              ElementsAre("test.yaml:1:14: attributes: attribute `client` is known already",
                          HasSubstr("an attribute's name is a letter"),
                          "test.yaml:1:29: attributes: headers need no declaration; leave "
                          "`header.x` out",
                          "test.yaml:1:42: attributes: attribute `t` is known already"));
}

TEST(Identity, OverridesOutsideTheKeyKeepCountersOfTheirOwn) {
  const auto policy = MustLoad(
      "limits:\n"
      "- name: a\n"
      "  per: [client]\n"
      "  rate: 10/s\n"
      "  overrides:\n"
      "  - {when: {client: x}, rate: 20/s}\n"
      "  - {when: {model: big}, rate: 1/s}\n");
  ASSERT_TRUE(policy);
  const auto& variants = policy->limits()[0].variants;
  EXPECT_EQ(variants[0].identity, "a/requests/client/token_bucket/rolling");
  EXPECT_EQ(variants[1].identity, variants[0].identity);
  EXPECT_EQ(variants[2].identity, "a/requests/client/token_bucket/rolling/when model big");
}

}  // namespace
}  // namespace weir::policy
