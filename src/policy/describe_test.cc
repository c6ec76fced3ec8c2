#include "policy/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/test_policy.h"

namespace weir::policy {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Bound(const std::string& keys) {
  const auto policy = MustLoad("limits: [{name: a, " + keys + "}]");
  if (!policy) return "";
  return BoundInWords(policy->limits()[0], policy->limits()[0].variants[0]);
}

TEST(BoundInWords, StatesTheTrueBoundOfEachAlgorithm) {
  EXPECT_EQ(Bound("rate: 300/min, burst: 50"), "at most 350 in any minute");
  EXPECT_EQ(Bound("rate: 300/min"), "at most 600 in any minute");
  EXPECT_EQ(Bound("rate: 7/90s"), "at most 14 in any 1m30s");
  EXPECT_EQ(Bound("rate: 60/min, algorithm: sliding_window"), "at most 60 in any minute");
  EXPECT_EQ(Bound("rate: 60/min, algorithm: sliding_counter"), "at most 119 in any minute");
  EXPECT_EQ(Bound("rate: 60/min, algorithm: sliding_counter, sliding_counter: {strict: true}"),
            "at most 60 in any minute");
  EXPECT_EQ(Bound("rate: 60/min, algorithm: fixed_window"),
            "at most 60 in each window of one minute, 120 in any minute");
  EXPECT_EQ(Bound("rate: 50 usd/month, algorithm: fixed_window, align: calendar, timezone: "
                  "Europe/Berlin"),
            "at most 50 usd in each calendar month (Europe/Berlin)");
  EXPECT_EQ(Bound("rate: 1000 tokens/month"), "at most 2000 tokens in any 30 days");
  EXPECT_EQ(Bound("parallel: 10"), "at most 10 at once");
  EXPECT_EQ(Bound("rate: 0/min"), "denies every call");
  EXPECT_EQ(Bound("parallel: 0"), "denies every call");
  EXPECT_EQ(Bound("rate: unlimited"), "unlimited");
}

const char kText[] =
    "listen: {gateway: 127.0.0.1:8080, api: {address: 0.0.0.0:8081, token: hunter2}}\n"
    "upstreams: [{name: ai, urls: ['https://h/base'], headers: {authorization: Bearer hunter3}}]\n"
    "routes: [{match: {path: /v1/*}, upstream: ai, rewrite: {prefix: /o}}]\n"
    "identity: {secret: hunter2hunter2hunter2}\n"
    "limits:\n"
    "- name: per-client\n"
    "  per: [client]\n"
    "  rate: 300/min\n"
    "  burst: 50\n"
    "  overrides: [{when: {client: acme}, rate: 600/min}]\n"
    "- {name: chat, per: [client], rate: 60/min, match: {method: POST, path: /v1/chat/*}, enforce: "
    "shadow, algorithm: sliding_window}\n"
    "- {name: models, per: [model], rate: 5/min}\n";

TEST(Describe, PutsThePolicyInWords) {
  const auto policy = MustLoad(kText);
  ASSERT_TRUE(policy);
  EXPECT_EQ(Describe(*policy),
            "doors:\n"
            "  gateway: 127.0.0.1:8080\n"
            "  api: 0.0.0.0:8081, token required\n"
            "clients: by api_key, else by ip\n"
            "routes, the most exact first:\n"
            "  /v1/* -> ai as /o/\n"
            "limits:\n"
            "  per-client: at most 350 in any minute\n"
            "    300/min, burst 50, token_bucket; per client; on every call\n"
            "    when client acme: at most 1200 in any minute (600/min, token_bucket)\n"
            "  chat: at most 60 in any minute\n"
            "    60/min, sliding_window; per client; on method POST, path /v1/chat/*; shadow: "
            "counted, never denying\n"
            "  models: at most 10 in any minute\n"
            "    5/min, token_bucket; per model; on every call\n");
}

TEST(Explain, SaysWhatAppliesAndWhyTheRestDoesNot) {
  const auto policy = MustLoad(kText);
  ASSERT_TRUE(policy);
  EXPECT_EQ(*ExplainPairs(*policy, {"client=acme", "method=GET", "path=/v1/chat/completions"},
                          Missing::kSkip),
            "applies:\n"
            "  per-client: at most 1200 in any minute (600/min, token_bucket), key client=acme, by "
            "the override when client acme\n"
            "does not apply:\n"
            "  chat: method is GET, not POST\n"
            "  models: model is missing\n");
  EXPECT_EQ(*ExplainPairs(*policy, {"client=b", "method=POST", "path=/v1/chat/x", "model=m"},
                          Missing::kSkip),
            "applies:\n"
            "  per-client: at most 350 in any minute (300/min, burst 50, token_bucket), key "
            "client=b\n"
            "  chat: at most 60 in any minute (60/min, sliding_window), key client=b, in shadow: "
            "counted, never denying\n"
            "  models: at most 10 in any minute (5/min, token_bucket), key model=m\n"
            "does not apply:\n"
            "  none\n");
  EXPECT_EQ(ExplainPairs(*policy, {"clint=b"}, Missing::kSkip).error().message,
            "attribute `clint` is not declared; did you mean `client`?");
  EXPECT_EQ(ExplainPairs(*policy, {"client"}, Missing::kSkip).error().message,
            "`client`: write attributes as NAME=VALUE");
}

TEST(Describe, SaysWhereACounterIsThatNodesDoNotShareWhole) {
  const std::string limits =
      "limits:\n"
      "- {name: one, rate: 60/min}\n"
      "- {name: two, rate: 60/min, consistency: local}\n"
      "- {name: three, rate: 60/min, consistency: leased}\n"
      "- {name: four, rate: 60/min, consistency: leased_fast}\n";
  const auto shared = MustLoad(
      "store: {kind: redis, url: 'redis://127.0.0.1'}\nidentity: {secret: 0123456789abcdef}\n" +
      limits);
  ASSERT_TRUE(shared);
  const std::string text = Describe(*shared);
  EXPECT_THAT(text, HasSubstr("on every call\n  two:"));
  EXPECT_THAT(text, HasSubstr("on every call; counted on each node alone\n"));
  EXPECT_THAT(text, HasSubstr("on every call; leased to the nodes in parts\n"));
  EXPECT_THAT(text, HasSubstr("on every call; leased to the nodes in parts, of which half the "
                              "burst can come on top at once\n"));
  EXPECT_THAT(*ExplainPairs(*shared, {}, Missing::kSkip),
              HasSubstr("one key for all; leased to the nodes in parts\n"));
  EXPECT_THAT(ToJson(*shared), HasSubstr(R"("consistency":"leased_fast")"));
  const auto alone = MustLoad(limits);  // One node, one counter.
  ASSERT_TRUE(alone);
  EXPECT_THAT(Describe(*alone), Not(HasSubstr("leased")));
}

TEST(ToJson, ShowsTheEffectivePolicyWithoutSecrets) {
  const auto policy = MustLoad(kText);
  ASSERT_TRUE(policy);
  const std::string json = ToJson(*policy);
  EXPECT_THAT(json, Not(HasSubstr("hunter")));
  EXPECT_THAT(json, HasSubstr(R"("api":{"address":"0.0.0.0:8081","token":"[redacted]"})"));
  EXPECT_THAT(json, HasSubstr(R"("headers":{"authorization":"[redacted]"})"));
  EXPECT_THAT(json, HasSubstr(R"("urls":["https://h:443/base"])"));
  EXPECT_THAT(
      json, HasSubstr(R"({"name":"per-client","unit":"requests","layer":"client","per":["client"],)"
                      R"("match":{},"algorithm":"token_bucket","rate":"300/min","units":300,)"
                      R"("period":"1m","burst":50,"bound":"at most 350 in any minute",)"
                      R"("enforce":"all","consistency":"exact","missing":"door","overrides":[)"
                      R"({"when":{"client":["acme"]},"rate":"600/min","units":600,"period":"1m",)"
                      R"("burst":600,"bound":"at most 1200 in any minute"}]})"));
}

}  // namespace
}  // namespace weir::policy
