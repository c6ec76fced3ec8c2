#include "doors/check_api/check_api.h"

#include <chrono>
#include <string>

#include "gtest/gtest.h"
#include "testing/door_client.h"

namespace weir::doors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Api {
  explicit Api(const std::string& yaml)
      : weir(yaml), service(*weir.worker, /*jitter_seed=*/1), client(service, weir) {}
  DoorAnswer Check(const std::string& body, const std::string& query = "") {
    return client.Post("/v1/check" + query, body);
  }
  SimulatedEngine weir;
  CheckApi service;
  DoorClient client;
};

std::string Client(const std::string& name) {
  return R"({"attributes":{"client":")" + name + R"("}})";
}

TEST(CheckApiTest, AnAnswerInFull) {
  Api api("limits: [{name: per-client, per: [client], rate: 300/min, burst: 50}]");
  const DoorAnswer allowed = api.Check(Client("alice"));
  EXPECT_EQ(
      allowed.head,
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Mon, 30 Nov 2026 20:00:00 GMT\r\n"
      "Content-Length: " +
          std::to_string(allowed.body.size()) + "\r\n");
  EXPECT_EQ(
      allowed.body,
      R"({"allowed":true,"denied_by":[],"source":"memory","retry_after_ms":0,"reservation":null,)"
      R"("limits":[{"name":"per-client","unit":"requests","allowed":true,"quota":50,"remaining":49,)"
      R"("reset_after_ms":200,"retry_after_ms":0,"shadow":false}]})");
  for (int i = 1; i < 50; ++i) api.Check(Client("alice"));
  EXPECT_EQ(
      api.Check(Client("alice")).body,
      R"({"allowed":false,"denied_by":["per-client"],"source":"memory","retry_after_ms":200,"reservation":null,)"
      R"("limits":[{"name":"per-client","unit":"requests","allowed":false,"quota":50,"remaining":0,)"
      R"("reset_after_ms":10000,"retry_after_ms":200,"shadow":false}]})");
}

TEST(CheckApiTest, AStatusThatIsNotOfferedIsRefused) {
  Api api("limits: [{name: a, per: [client], rate: 1/hour}]");
  for (const char* query : {"?status=403", "?status=200", "?status=", "?status"}) {
    const DoorAnswer answer = api.Check(Client("x"), query);
    EXPECT_EQ(answer.status, 400) << query;
    EXPECT_TRUE(answer.Has("status: must be 429")) << answer.body;
  }
  EXPECT_EQ(api.Check(Client("x"), "?status=429&status=429").status, 400);
  EXPECT_EQ(api.Check(Client("x"), "?status=429").status, 200);  // None of these was charged.
  EXPECT_EQ(api.Check(Client("x"), "?status=429").status, 429);
}

TEST(CheckApiTest, ABodyThatIsNoObjectIsToldWhatIsMeant) {
  Api api("limits: [{name: a, per: [client], rate: 1/hour}]");
  for (const char* body : {"", "client=alice", "[]", "not json"}) {
    const DoorAnswer answer = api.Check(body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_TRUE(
        answer.Has(R"(a JSON object is meant, as in {\"attributes\":{\"client\":\"alice\"})"))
        << answer.body;
  }
}

TEST(CheckApiTest, Case4_WaitAndHeaderOverHttp) {
  Api api("limits: [{name: a, per: [client], rate: 1/s}]");
  api.Check(Client("x"));
  api.weir.Advance(milliseconds(200));
  const DoorAnswer denied = api.Check(Client("x"), "?status=429");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("Retry-After"), "1");
  EXPECT_EQ(denied.Field("retry-after-ms"), "800");
  EXPECT_EQ(denied.Field("Cache-Control"), "no-store");
  EXPECT_TRUE(denied.Has(R"("retry_after_ms":800)"));
}

TEST(CheckApiTest, Case16_NegativeCostIs400AndChangesNothing) {
  Api api("limits: [{name: a, per: [client], rate: 10/hour}]");
  EXPECT_TRUE(api.Check(R"({"attributes":{"client":"x"},"cost":3})").Has(R"("remaining":7)"));
  const DoorAnswer wrong = api.Check(R"({"attributes":{"client":"x"},"cost":-5})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_TRUE(wrong.Has(R"("code":"invalid_argument")"));
  EXPECT_TRUE(api.Check(R"({"attributes":{"client":"x"},"cost":1})").Has(R"("remaining":6)"));
}

TEST(CheckApiTest, Case19_ResetCountsTheWholeCost) {
  Api api("limits: [{name: a, per: [client], rate: 10/60s}]");
  EXPECT_TRUE(
      api.Check(R"({"attributes":{"client":"x"},"cost":5})").Has(R"("reset_after_ms":30000)"));
}

TEST(CheckApiTest, Case29_FractionsWordsAndHugeCostsAre400NamingTheField) {
  Api api("limits: [{name: a, per: [client], rate: 10 tokens/hour}]");
  for (const char* cost :
       {R"({"tokens":1.5})", R"({"tokens":"abc"})", R"({"tokens":1e30})", R"({"tokens":-1})"}) {
    const DoorAnswer answer =
        api.Check(std::string(R"({"attributes":{"client":"x"},"cost":)") + cost + "}");
    EXPECT_EQ(answer.status, 400) << cost;
    EXPECT_TRUE(answer.Has("cost.tokens")) << answer.body;
  }
  EXPECT_TRUE(
      api.Check(R"({"attributes":{"client":"x"},"cost":{"tokens":1}})").Has(R"("remaining":9)"));
}

TEST(CheckApiTest, Case32a_RefusedBySpecialSpendsNothingOfGroup) {
  Api api(
      "limits: [{name: group, rate: 10/min}, {name: special, rate: 3/min, match: {path: "
      "/special}}]");
  int special = 0;
  int group = 0;
  for (int i = 0; i < 5; ++i)
    special +=
        api.Check(R"({"attributes":{"path":"/special"}})").Has(R"("allowed":true,"denied_by)");
  for (int i = 0; i < 8; ++i)
    group += api.Check(R"({"attributes":{"path":"/x"}})").Has(R"("allowed":true,"denied_by)");
  EXPECT_EQ(special, 3);
  EXPECT_EQ(group, 7);
}

TEST(CheckApiTest, Case40_ACallWithoutAnAttributeOfAnotherLimit) {
  Api api(
      "attributes: [tenant]\nlimits: [{name: t, per: [tenant], rate: 1/hour}, {name: c, per: "
      "[client], rate: 2/hour}]");
  EXPECT_TRUE(api.Check(Client("x")).Has(R"("remaining":1)"));
  EXPECT_TRUE(api.Check(Client("x")).Has(R"("remaining":0)"));
  EXPECT_TRUE(api.Check(Client("x")).Has(R"("denied_by":["c"])"));
}

TEST(CheckApiTest, Case52_FixedWindowAndBucketWaits) {
  Api api(R"(
limits:
  - {name: w, per: [client], rate: 5/min, algorithm: fixed_window, align: calendar, match: {client: w}}
  - {name: b, per: [client], rate: 10/s, burst: 1, match: {client: b}}
)");
  api.weir.Advance(milliseconds(2400));  // The clock began on a whole minute.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(api.Check(Client("w"), "?status=429").status, 200);
  const DoorAnswer window = api.Check(Client("w"), "?status=429");
  EXPECT_EQ(window.status, 429);
  EXPECT_EQ(window.Field("Retry-After"), "58");
  api.Check(Client("b"));
  EXPECT_EQ(api.Check(Client("b"), "?status=429").Field("Retry-After"), "1");
  api.weir.Advance(seconds(58));
  EXPECT_EQ(api.Check(Client("w"), "?status=429").status, 200);
}

TEST(CheckApiTest, Case53_TheResetStaysWhenNothingRemains) {
  Api api(
      "answers: {x_ratelimit_reset: seconds}\nlimits: [{name: w, rate: 2/min, algorithm: "
      "fixed_window, align: calendar}]");
  api.weir.Advance(seconds(10));
  const char* remaining[] = {"1", "0", "0", "0"};
  for (const char* left : remaining) {
    const DoorAnswer answer = api.Check(R"({"attributes":{}})", "?status=429");
    EXPECT_TRUE(answer.Has(R"("reset_after_ms":50000)")) << answer.body;
    EXPECT_EQ(answer.Field("X-RateLimit-Reset"), "50");
    EXPECT_EQ(answer.Field("X-RateLimit-Remaining"), left);
  }
}

TEST(CheckApiTest, Case54_And55_TheDenialShowsTheMinuteAndOneDelta) {
  Api api("limits: [{name: year, rate: 100000/year}, {name: min, rate: 5/min}]");
  for (int i = 0; i < 5; ++i) api.Check(R"({"attributes":{}})");
  const DoorAnswer denied = api.Check(R"({"attributes":{}})", "?status=429");
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("Retry-After"), "12");
  EXPECT_NE(denied.Field("RateLimit").find("\"min\";r=0;t=12"), std::string::npos) << denied.head;
  EXPECT_EQ(denied.Field("X-RateLimit-Reset"), "1796068860");
}

TEST(CheckApiTest, Case63_PortsAndSpellingsOfOneAddress) {
  Api api("limits: [{name: ip, per: [ip], rate: 5/hour}]");
  int allowed = 0;
  for (int port = 52241; port <= 52252; ++port) {
    allowed += api.Check(R"({"attributes":{"ip":"203.0.113.7:)" + std::to_string(port) + R"("}})")
                   .Has(R"("denied_by":[])");
  }
  EXPECT_EQ(allowed, 5);
  EXPECT_TRUE(api.Check(R"({"attributes":{"ip":"[2001:db8::1]:443"}})").Has(R"("remaining":4)"));
  EXPECT_TRUE(api.Check(R"({"attributes":{"ip":"2001:db8::1"}})").Has(R"("remaining":3)"));
  EXPECT_EQ(api.Check(R"({"attributes":{"ip":"nowhere"}})").status, 400);
}

TEST(CheckApiTest, Case70_NoTwoTuplesShareACounter) {
  Api api("attributes: [user]\nlimits: [{name: a, per: [client, user], rate: 1/hour}]");
  const std::pair<const char*, const char*> tuples[] = {{"ab", "c"},  {"a", "bc"},  {"a|b", "c"},
                                                        {"a", "b|c"}, {"a:b", "c"}, {"a", "b:c"},
                                                        {"a_b", ""},  {"a", "b"},   {"x}{y", ""}};
  for (const auto& [client, user] : tuples) {
    const std::string body =
        std::string(R"({"attributes":{"client":")") + client + R"(","user":")" + user + R"("}})";
    EXPECT_TRUE(api.Check(body).Has(R"("denied_by":[])")) << body;
    EXPECT_TRUE(api.Check(body).Has(R"("denied_by":["a"])")) << body;
  }
}

TEST(CheckApiTest, Case71_OddKeysAreDistinctOrRefused) {
  Api api("limits: [{name: a, per: [client], rate: 1/hour}]");
  const std::string keys[] = {"",
                              "a\\r\\nb",
                              "a\\u0000b",
                              "\xc3\xa9",
                              "e\xcc\x81",
                              std::string(4096, 'k'),
                              std::string(1 << 19, 'k')};
  for (const std::string& key : keys) {
    EXPECT_TRUE(api.Check(Client(key)).Has(R"("denied_by":[])")) << key.substr(0, 20);
    EXPECT_TRUE(api.Check(Client(key)).Has(R"("denied_by":["a"])")) << key.substr(0, 20);
  }
  EXPECT_EQ(api.Check(Client("\xff")).status, 400);
}

TEST(CheckApiTest, ApiKeysBecomeTheClientThatTheGatewayNames) {
  Api api("limits: [{name: a, per: [client], rate: 2/hour}]");
  EXPECT_TRUE(api.Check(R"({"attributes":{"api_key":"sk-1"}})").Has(R"("remaining":1)"));
  const std::string id(api.weir.worker->ApiKeyId("sk-1").view());
  EXPECT_TRUE(api.Check(Client(id)).Has(R"("remaining":0)"));
  const DoorAnswer both = api.Check(R"({"attributes":{"client":"x","api_key":"sk-secret"}})");
  EXPECT_EQ(both.status, 400);
  EXPECT_FALSE(both.Has("sk-secret"));
}

TEST(CheckApiTest, BatchesAnswerItemByItem) {
  Api api("limits: [{name: a, per: [client], rate: 1/hour}]");
  const DoorAnswer answer = api.Check(
      R"({"checks":[{"attributes":{"client":"x"}},{"attributes":{"client":"x"}},{"attributes":{"nope":"y"}}]})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body.starts_with(R"({"results":[{"allowed":true)")) << answer.body;
  EXPECT_TRUE(answer.Has(R"(,{"allowed":false,"denied_by":["a"])"));
  EXPECT_TRUE(answer.Has(R"(,{"error":{"code":"invalid_argument","message":")"));
  const DoorAnswer with_status =
      api.Check(R"({"checks":[{"attributes":{"client":"y"}}]})", "?status=429");
  EXPECT_EQ(with_status.status, 400);
  EXPECT_TRUE(with_status.Has("status: not with a batch"));
}

TEST(CheckApiTest, PeekChangesNothing) {
  Api api("limits: [{name: a, per: [client], rate: 1/hour}]");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(api.Check(R"({"attributes":{"client":"x"},"peek":true})")
                    .Has(R"("allowed":true,"denied_by":[])"));
  }
}

TEST(CheckApiTest, UsdIsShownInMicros) {
  Api api("limits: [{name: m, per: [client], rate: 50 usd/day}]");
  const DoorAnswer answer = api.Check(R"({"attributes":{"client":"x"},"cost":{"usd":0.25}})");
  EXPECT_TRUE(
      answer.Has(R"("unit":"usd_micros","allowed":true,"quota":50000000,"remaining":49750000)"))
      << answer.body;
}

TEST(CheckApiTest, PathsAreCanonicalAndMistakesAreNamed) {
  Api api("limits: [{name: a, rate: 5/hour, match: {path: /v1/chat}}]");
  EXPECT_TRUE(api.Check(R"({"attributes":{"path":"/v1//%63hat?x=1"}})").Has(R"("name":"a")"));
  EXPECT_EQ(api.Check(R"({"attributes":{"path":"/../x"}})").status, 400);
  const DoorAnswer unknown = api.Check(R"({"attributes":{"cleint":"x"}})");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_TRUE(unknown.Has("cleint"));
  EXPECT_EQ(api.Check("{").status, 400);
}

TEST(CheckApiTest, UnknownPathsAndMethods) {
  Api api("limits: []");
  const DoorAnswer missing = api.client.Get("/v1/chekc");
  EXPECT_EQ(missing.status, 404);
  EXPECT_TRUE(missing.Has("POST /v1/check; "));
  const DoorAnswer wrong = api.client.Get("/v1/check");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.Field("Allow"), "POST");
  EXPECT_EQ(api.client.Get("/v1/limits").status, 200);
  EXPECT_EQ(api.client.Ask("HEAD", "/v1/limits", "", "").status, 200);
}

TEST(CheckApiTest, TheTokenIsAskedForAndCompared) {
  Api api("listen: {api: {address: 127.0.0.1:0, token: open-sesame-0123456789}}\nlimits: []");
  EXPECT_EQ(api.Check("{}").status, 401);
  EXPECT_EQ(api.client
                .Post("/v1/check", R"({"attributes":{}})",
                      "Authorization: Bearer open-sesame-012345678X\r\n")
                .status,
            401);
  EXPECT_EQ(api.client
                .Post("/v1/check", R"({"attributes":{}})",
                      "Authorization: Bearer open-sesame-0123456789\r\n")
                .status,
            200);
}

}  // namespace
}  // namespace weir::doors
