#include "policy/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "policy/describe.h"
#include "policy/test_policy.h"

namespace weir::policy {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST(Policy, TheStoreIsAskedAgainAfterHalfASecondUnlessToldOtherwise) {
  EXPECT_EQ(StoreConfig().breaker_open_for, milliseconds(500));
}

TEST(Policy, ReadsEveryKeyOfTheContract) {
  const auto policy = MustLoad(kEveryKey, {{"KEY", "sk-1"}});
  ASSERT_TRUE(policy);
  Config expected;
  expected.listen.gateway = {.address = "0.0.0.0:8080", .tls = TlsConfig{"c.pem", "k.pem", ""}};
  expected.listen.api = {.address = "127.0.0.1:8081", .tls = {}, .token = Secret("t0ken")};
  expected.listen.admin = {.address = "127.0.0.1:8082"};
  expected.listen.ops = {.address = "0.0.0.0:9090"};
  expected.threads = 3;
  expected.watch = true;
  expected.store = {.max_keys = 2'000'000,
                    .on_full_open = true,
                    .url = Secret("redis://127.0.0.1:6379/0"),
                    .timeout = milliseconds(30),
                    .on_failure = OnFailure::kClosed,
                    .breaker_failures = 5,
                    .breaker_open_for = seconds(2),
                    .tls = {"redis-ca.pem", "redis.pem", "redis.key", "redis.example.com"},
                    .prefix = "weir:test:",
                    .connections = 2,
                    .nodes = 5,
                    .insecure = true};
  expected.identity.client = {{IdentityKind::kApiKey, ""},
                              {IdentityKind::kJwtSubject, ""},
                              {IdentityKind::kHeader, "x-user-id"},
                              {IdentityKind::kIp, ""}};
  expected.identity.require = IdentitySource{IdentityKind::kApiKey, ""};
  expected.identity.secret = Secret("0123456789abcdef0123456789abcdef");
  expected.identity.jwt = JwtConfig{.keys = "jwks.json",
                                    .algorithms = {JwtAlgorithm::kRs256, JwtAlgorithm::kEs256},
                                    .issuer = "x",
                                    .audience = "y",
                                    .leeway = seconds(30)};
  expected.identity.trusted_proxies = {"127.0.0.1/32", "10.0.0.0/8"};
  expected.identity.ipv6_prefix = 56;
  expected.timeouts = {seconds(11), seconds(76), seconds(6), seconds(61),
                       seconds(31), minutes(60), seconds(3), seconds(21)};
  expected.bounds = {32 << 10, 64 << 20, 2 << 20, 10'000};
  expected.answers = {.x_ratelimit = true,
                      .ratelimit = false,
                      .retry_after = true,
                      .openai = false,
                      .x_ratelimit_reset_unix = false,
                      .error_body = ErrorBody::kOpenAi,
                      .retry_jitter = seconds(10)};
  expected.cors.origins = {"https://app.example.com"};
  expected.upstreams = {
      {.name = "ai",
       .urls = {{true, "api.example.com", 443, ""}, {false, "::1", 8090, "/base"}},
       .headers = {{"authorization", Secret("Bearer sk-1")}},
       .tls_ca = "ca.pem",
       .tls_server_name = "api.example.com"}};
  EXPECT_TRUE(policy->config() == expected);

  ASSERT_THAT(policy->limits(), SizeIs(9));
  const Limit& month = *policy->FindLimit("month");
  EXPECT_EQ(month.variants[0].spec.alignment, core::Alignment::kMonth);
  EXPECT_EQ(month.variants[0].spec.timezone, "Europe/Berlin");
  EXPECT_EQ(month.variants[0].identity,
            "month/requests/client/fixed_window/calendar:2592000000000000:Europe/Berlin");
  const Limit& tenth = *policy->FindLimit("tenth");
  EXPECT_EQ(tenth.enforce, Enforce::kPercent);
  EXPECT_EQ(tenth.enforce_percent, 10);
  EXPECT_EQ(tenth.consistency, Consistency::kLocal);
  EXPECT_EQ(tenth.missing, Missing::kEmpty);
  EXPECT_EQ(tenth.layer, Layer::kGlobal);
  EXPECT_EQ(tenth.on_failure, OnFailure::kOpen);
  ASSERT_THAT(policy->attributes().headers(), SizeIs(1));
  EXPECT_EQ(policy->attributes().headers()[0].field_name, "x-team");
  const Limit& counter = *policy->FindLimit("counter");
  EXPECT_TRUE(counter.variants[0].spec.strict);
  EXPECT_EQ(counter.variants[0].spec.buckets, 20);
  EXPECT_EQ(policy->FindLimit("per-client")->variants[0].spec.rate,
            (Rate{.units = 300, .period = minutes(1), .burst = 50}));
  EXPECT_EQ(policy->FindLimit("parallel")->unit, Unit::kParallel);
  const Limit& special = *policy->FindLimit("special");
  ASSERT_THAT(special.variants, SizeIs(3));
  EXPECT_EQ(special.variants[1].identity, special.variants[0].identity);
  EXPECT_TRUE(special.variants[2].unlimited);
  EXPECT_EQ(policy->FindLimit("nobody"), nullptr);
}

TEST(Policy, DefaultsAreThoseOfTheContract) {
  const auto policy = MustLoad("");
  ASSERT_TRUE(policy);
  const Config& config = policy->config();
  EXPECT_TRUE(config == Config());
  EXPECT_EQ(config.store.max_keys, 1'000'000);
  EXPECT_EQ(config.timeouts.header, seconds(10));
  EXPECT_EQ(config.timeouts.total, seconds(0));
  EXPECT_EQ(config.bounds.body_bytes, 32 << 20);
  EXPECT_THAT(config.identity.client, ElementsAre(IdentitySource{IdentityKind::kApiKey, ""},
                                                  IdentitySource{IdentityKind::kIp, ""}));
}

TEST(Policy, LayerIsTheMostSpecificThatPerAndMatchName) {
  const auto policy = MustLoad(
      "attributes: [tenant]\n"
      "limits:\n"
      "- {name: a, rate: 1/s}\n"
      "- {name: b, rate: 1/s, per: [ip]}\n"
      "- {name: c, rate: 1/s, per: [ip, client]}\n"
      "- {name: d, rate: 1/s, per: [client], match: {path: /x}}\n"
      "- {name: e, rate: 1/s, per: [ip, model], match: {path: /x}}\n"
      "- {name: f, rate: 1/s, per: [tenant]}\n");
  ASSERT_TRUE(policy);
  std::vector<Layer> layers;
  for (const Limit& limit : policy->limits()) layers.push_back(limit.layer);
  EXPECT_THAT(layers, ElementsAre(Layer::kGlobal, Layer::kIp, Layer::kClient, Layer::kEndpoint,
                                  Layer::kModel, Layer::kClient));
}

TEST(Policy, Case20_Burst0IsALoadError) {
  EXPECT_THAT(LimitErrors("rate: 1/s, burst: 0"),
              ElementsAre("test.yaml:2:31: limit `a`: `burst: 0` would admit nothing, ever; the "
                          "least is 1, and `rate: 0/min` denies all"));
}

TEST(Policy, Case21_ZeroDeniesAllAndUnlimitedIsAWord) {
  const auto policy = MustLoad(
      "limits:\n- {name: a, rate: 0/min}\n- {name: b, rate: unlimited}\n- {name: c, parallel: "
      "0}\n");
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->limits()[0].variants[0].spec.rate.units, 0);
  EXPECT_FALSE(policy->limits()[0].variants[0].unlimited);
  const auto meter = core::Meter::Compile(policy->limits()[0].variants[0].spec);
  ASSERT_TRUE(meter);
  EXPECT_EQ((*meter)->form(), core::Form::kDenyAll);
  EXPECT_TRUE(policy->limits()[1].variants[0].unlimited);
  EXPECT_EQ(policy->limits()[2].variants[0].spec.rate.units, 0);
  EXPECT_THAT(LimitErrors("rate: none"), SizeIs(1));
}

TEST(Policy, Case27_ThirtyBillionAMonthIsExact) {
  const auto policy = MustLoad("limits: [{name: a, rate: 30000000000/month}]");
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->limits()[0].variants[0].spec.rate.units, 30'000'000'000);
}

TEST(Policy, Case34_TwoLimitsOnOneKeyNameTheirOwnCounters) {
  const auto policy = MustLoad(
      "limits:\n- {name: a, per: [ip], rate: 5/min}\n- {name: b, per: [ip], rate: 50/day}\n");
  ASSERT_TRUE(policy);
  EXPECT_NE(policy->limits()[0].variants[0].identity, policy->limits()[1].variants[0].identity);
}

TEST(Policy, Case35_OneRuleIsOneCounterUnlessPerNamesThePath) {
  const auto policy = MustLoad(
      "limits:\n"
      "- {name: shared, rate: 10/min, match: {path: [/a, /b]}}\n"
      "- {name: each, per: [path], rate: 10/min, match: {path: [/a, /b]}}\n");
  ASSERT_TRUE(policy);
  Attributes a;
  Attributes b;
  a.Set(kPathAttribute, "/a");
  b.Set(kPathAttribute, "/b");
  EXPECT_THAT(Applying(*policy, a), ElementsAre("each", "shared"));
  EXPECT_THAT(Applying(*policy, b), ElementsAre("each", "shared"));
  EXPECT_TRUE(policy->limits()[0].per.empty());
  EXPECT_THAT(policy->limits()[1].per, ElementsAre(kPathAttribute));
}

TEST(Policy, Case37_OverlappingLimitsAllApplyInEveryOrder) {
  std::vector<std::string> lines = {"- {name: api, rate: 10/min, match: {path: /api/*}}\n",
                                    "- {name: v1, rate: 5/min, match: {path: /api/v1/*}}\n",
                                    "- {name: chat, rate: 3/min, match: {path: /api/v1/chat}}\n"};
  Attributes call;
  call.Set(kPathAttribute, "/api/v1/chat");
  std::ranges::sort(lines);
  do {
    const auto policy = MustLoad("limits:\n" + lines[0] + lines[1] + lines[2]);
    ASSERT_TRUE(policy);
    EXPECT_THAT(Applying(*policy, call), ElementsAre("api", "chat", "v1"));
  } while (std::ranges::next_permutation(lines).found);
}

TEST(Policy, Case38_DoubledRulesAreOneErrorNamingBothLines) {
  EXPECT_THAT(ErrorsOf("limits:\n"
                       "- {name: per-ip, per: [ip], rate: 10/min}\n"
                       "- {name: per-ip, per: [ip], rate: 10/min}\n"),
              ElementsAre("test.yaml:3:10: limit `per-ip` is defined twice: here and at "
                          "test.yaml:2:10"));
}

TEST(Policy, Case66_AnUnknownKindOfKeyIsALoadError) {
  EXPECT_THAT(ErrorsOf("identity: {client: [apikey, ip]}\n"),
              ElementsAre("test.yaml:1:21: identity.client: `apikey` names no identity; it must be "
                          "`api_key`, `jwt.sub`, `ip` or `header.NAME`"));
  EXPECT_THAT(LimitErrors("rate: 1/s, per: [clinet]"),
              ElementsAre("test.yaml:2:30: limit `a`: per: attribute `clinet` is not declared; did "
                          "you mean `client`?"));
  EXPECT_THAT(LimitErrors("rate: 1/s, per: [tenant]"),
              ElementsAre("test.yaml:2:30: limit `a`: per: attribute `tenant` is not declared; add "
                          "it to `attributes`"));
}

TEST(Policy, RatesAreCheckedAtLoad) {
  EXPECT_THAT(LimitErrors("per: [ip]"),
              ElementsAre("test.yaml:2:3: limit `a` needs a `rate` or `parallel`"));
  EXPECT_THAT(LimitErrors("rate: 1/s, parallel: 5"),
              ElementsAre("test.yaml:2:3: limit `a` has both `rate` and `parallel`; these are two "
                          "limits"));
  EXPECT_THAT(LimitErrors("rate: 10/s, algorithm: sliding_window, burst: 5"),
              ElementsAre("test.yaml:2:59: limit `a`: `burst` is the token bucket's capacity; with "
                          "sliding_window leave it out or write 10"));
  EXPECT_TRUE(MustLoad("limits: [{name: a, rate: 10/s, algorithm: fixed_window, burst: 10}]"));
  EXPECT_THAT(LimitErrors("rate: 10/s, align: calendar"),
              ElementsAre("test.yaml:2:32: limit `a`: `align: calendar` needs `algorithm: "
                          "fixed_window`"));
  EXPECT_THAT(
      LimitErrors("rate: 10/60s, algorithm: fixed_window, align: calendar"),
      ElementsAre("test.yaml:2:3: limit `a`: `align: calendar` needs a period of min, hour, "
                  "day, week, month or year by name"));
  EXPECT_THAT(
      LimitErrors("rate: 1/day, algorithm: fixed_window, align: calendar, timezone: Mars/Olympus"),
      ElementsAre(HasSubstr("Mars/Olympus")));
  EXPECT_THAT(LimitErrors("rate: 1/year, burst: 9007199254740992"),
              ElementsAre(HasSubstr("refilling it from empty must take less than 146 years")));
  EXPECT_THAT(LimitErrors("rate: 1/s, sliding_counter: {strict: true}"),
              ElementsAre("test.yaml:2:41: limit `a`: these options need `algorithm: "
                          "sliding_counter`"));
  EXPECT_THAT(LimitErrors("rate: 1/s, enforce: 10"),
              ElementsAre("test.yaml:2:33: limit `a`: enforce must be `all`, `shadow` or a share "
                          "from `0%` to `100%` in whole numbers, not `10`"));
}

TEST(Policy, TheRedisStoreNeedsAnAddressAndASecret) {
  EXPECT_THAT(ErrorsOf("store: {kind: redis}\n"),
              ElementsAre("test.yaml:1:8: store.url is missing; write `url: "
                          "redis://127.0.0.1:6379/0`",
                          "test.yaml:1:8: store.kind `redis` needs `identity.secret`: under it all "
                          "nodes name the same counters alike; `openssl rand -hex 32` makes one"));
  EXPECT_THAT(
      ErrorsOf("store: {url: 'redis://127.0.0.1:6379/0'}\n"),
      ElementsAre("test.yaml:1:14: store.url without store.kind: write `kind: redis` to share "
                  "the limits there, or `kind: memory` to keep them on this node"));
  EXPECT_THAT(ErrorsOf("store: {prefix: 'weir{1}:'}\n"),
              ElementsAre("test.yaml:1:17: store.prefix: 1 to 64 visible ASCII characters without "
                          "`{` and `}`, such as `weir:1:`"));
  EXPECT_THAT(ErrorsOf("store: {tls: {cert: a.pem}}\n"),
              ElementsAre("test.yaml:1:14: store.tls: `cert` and `key` go together"));
  const auto policy = MustLoad(
      "store: {kind: redis, url: 'redis://:pa55@127.0.0.1:6379/0'}\n"
      "identity: {secret: 0123456789abcdef}\n");
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->config().store.kind, StoreKind::kRedis);
  EXPECT_THAT(ToJson(*policy), Not(HasSubstr("pa55")));
}

TEST(Policy, TheGrpcDoorNeedsNoTokenAndMayEndOldConnections) {
  const auto policy =
      MustLoad("listen:\n  grpc: {address: 0.0.0.0:8083, max_connection_age: 5m}\n");
  ASSERT_TRUE(policy);
  ASSERT_TRUE(policy->config().listen.grpc);
  EXPECT_EQ(policy->config().listen.grpc->max_connection_age, std::chrono::minutes(5));
  EXPECT_EQ(MustLoad("listen: {grpc: 127.0.0.1:0}")->config().listen.grpc->max_connection_age,
            std::chrono::seconds(0));
  EXPECT_THAT(ErrorsOf("listen:\n  grpc: {address: 127.0.0.1:8083, token: t}\n"),
              ElementsAre(HasSubstr("test.yaml:2:35: unknown key `listen.grpc.token`")));
  EXPECT_THAT(ErrorsOf("listen:\n  api: {address: 127.0.0.1:8083, max_connection_age: 1s}\n"),
              ElementsAre(HasSubstr("unknown key `listen.api.max_connection_age`")));
}

TEST(Policy, WhatALaterVersionBringsIsRefused) {
  EXPECT_THAT(LimitErrors("rate: 1/s, overrides: [{when: {plan: gold}, rate: 2/s}]"),
              ElementsAre("test.yaml:2:44: limit `a`: overrides[0]: when: `plan` is not there yet: "
                          "a later version brings plans"));
  EXPECT_THAT(LimitErrors("rate: 1/s, wait: 5s"), ElementsAre(HasSubstr("is not there yet")));
}

TEST(Policy, OnlyWhatHasUnitsToLeaseIsLeased) {
  const auto policy = MustLoad(
      "limits: [{name: a, rate: 1/s, consistency: leased}, "
      "{name: b, rate: 1/s, algorithm: fixed_window, consistency: leased_fast}]");
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->limits()[0].consistency, Consistency::kLeased);
  EXPECT_EQ(policy->limits()[1].consistency, Consistency::kLeasedFast);
  EXPECT_THAT(LimitErrors("rate: 1/s, algorithm: sliding_window, consistency: leased"),
              ElementsAre("test.yaml:2:64: limit `a`: consistency `leased` is for token_bucket and "
                          "fixed_window, not for sliding_window; write `exact`"));
  EXPECT_THAT(LimitErrors("parallel: 5, consistency: leased_fast"),
              ElementsAre("test.yaml:2:39: limit `a`: consistency `leased_fast` is for "
                          "token_bucket and fixed_window, not for parallel; write `exact`"));
}

TEST(Policy, UnitsThatTheGatewayDoesNotMeterAreRefusedThereOnly) {
  const std::string gateway = "listen: {gateway: 127.0.0.1:0}\n";
  const std::string tokens = "limits: [{name: t, per: [client], rate: 100 tokens/min}]\n";
  EXPECT_TRUE(MustLoad(tokens));
  EXPECT_THAT(ErrorsOf(gateway + tokens),
              ElementsAre("test.yaml:2:10: limit `t` counts tokens, which the gateway does not "
                          "meter yet: a later version brings it. Leave `listen.gateway` out, or "
                          "let `match` name a value of a custom attribute, which only callers of "
                          "/v1/check send"));
  const auto policy = MustLoad(gateway +
                               "attributes: [job]\n"
                               "limits:\n"
                               "- {name: t, rate: 100 tokens/min, match: {job: 'batch-*'}}\n"
                               "- {name: u, rate: 1 usd/min, per: [job], missing: skip}\n");
  ASSERT_TRUE(policy);
  EXPECT_FALSE(policy->limits()[0].applies_at_gateway);
  EXPECT_THAT(ErrorsOf(gateway + "attributes: [job]\nlimits: [{name: t, rate: 1 usd/min, match: "
                                 "{job: '*'}}]\n"),
              SizeIs(1));
}

TEST(Policy, DoorsBeyondThisHostNeedAToken) {
  EXPECT_THAT(ErrorsOf("listen: {api: 0.0.0.0:8081}\n"),
              ElementsAre("test.yaml:1:15: listen.api: `0.0.0.0:8081` can be reached from other "
                          "hosts, so it needs a `token` (or `tls` with `client_ca`); or listen on "
                          "127.0.0.1"));
  EXPECT_THAT(ErrorsOf("listen: {admin: ':8082'}\n"), SizeIs(1));
  EXPECT_THAT(ErrorsOf("listen: {resp: ':6380'}\n"), SizeIs(1));
  EXPECT_THAT(ErrorsOf("listen: {admin: '[::]:8082'}\n"), SizeIs(1));
  EXPECT_THAT(ErrorsOf("listen: {api: {address: 10.0.0.1:1, tls: {cert: c, key: k}}}\n"),
              SizeIs(1));
  for (const char* door : {"127.0.0.1:1", "'[::1]:1'", "localhost:1", "unix:/run/weir.sock",
                           "{address: 10.0.0.1:1, token: secret}",
                           "{address: 10.0.0.1:1, tls: {cert: c, key: k, client_ca: ca}}"}) {
    EXPECT_TRUE(MustLoad("listen: {api: " + std::string(door) + "}")) << door;
  }
  EXPECT_THAT(
      ErrorsOf("listen: {ops: 8081}\n"),
      ElementsAre("test.yaml:1:15: listen.ops: `8081` is no address; write HOST:PORT, as in "
                  "`127.0.0.1:8080` or `[::1]:8080`, or unix:/PATH"));
  EXPECT_THAT(ErrorsOf("listen: {ops: 127.0.0.1:1, api: 127.0.0.1:1}\n"),
              ElementsAre("test.yaml:1:15: listen.ops: `127.0.0.1:1` is taken already at "
                          "test.yaml:1:33"));
}

TEST(Policy, IdentityIsCheckedAsAWhole) {
  EXPECT_THAT(ErrorsOf("identity: {client: [jwt.sub]}\n"),
              ElementsAre("test.yaml:1:20: identity names `jwt.sub`, but there is no "
                          "`identity.jwt` to verify tokens with"));
  EXPECT_THAT(ErrorsOf("identity: {client: [ip, api_key]}\n"),
              ElementsAre("test.yaml:1:25: identity.client: every call has an ip, so `api_key` "
                          "after it would never be read; put `ip` last"));
  EXPECT_THAT(ErrorsOf("identity: {secret: short}\n"),
              ElementsAre("test.yaml:1:20: identity.secret must have at least 16 bytes; `openssl "
                          "rand -hex 32` makes a good one"));
  const auto policy =
      MustLoad("identity: {client: [header.x-user]}\nlimits: [{name: a, rate: 1/s}]\n");
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->config().identity.client.back().kind, IdentityKind::kIp);
  EXPECT_THAT(Texts({policy->warnings().begin(), policy->warnings().end()}),
              ElementsAre("test.yaml:1:20: identity names a header, but no `trusted_proxies` may "
                          "set it: it is never read"));
}

}  // namespace
}  // namespace weir::policy
