#include "doors/forward_auth/forward_auth.h"

#include <string>

#include "doors/check_api/check_api.h"
#include "gtest/gtest.h"
#include "testing/door_client.h"

namespace weir::doors {
namespace {

constexpr const char* kTrusting = R"(
identity: {trusted_proxies: [127.0.0.1/32]}
limits:
  - {name: chat, per: [client], rate: 2/hour, match: {method: [POST], path: /v1/chat/*}}
  - {name: per-ip, per: [ip], rate: 5/hour}
)";

struct Auth {
  explicit Auth(const std::string& yaml)
      : weir(yaml), service(*weir.worker, 1), client(service, weir) {}
  DoorAnswer Ask(const std::string& fields, const std::string& query = "") {
    return client.Get("/v1/authorize" + query, fields);
  }
  SimulatedEngine weir;
  CheckApi service;
  DoorClient client;
};

constexpr const char* kChat =
    "X-Forwarded-Method: POST\r\nX-Forwarded-Uri: /v1/chat/completions?x=1\r\nX-Forwarded-Host: "
    "ai.test\r\n"
    "X-Forwarded-For: 198.51.100.9\r\nAuthorization: Bearer sk-1\r\n";

TEST(ForwardAuthTest, DecidesTheOriginalCall) {
  Auth auth(kTrusting);
  const DoorAnswer allowed = auth.Ask(kChat);
  EXPECT_EQ(allowed.status, 200);
  EXPECT_EQ(allowed.body, "");
  EXPECT_EQ(allowed.Field("X-RateLimit-Limit"), "2");
  EXPECT_EQ(allowed.Field("X-RateLimit-Remaining"), "1");
  auth.Ask(kChat);
  const DoorAnswer denied = auth.Ask(kChat);
  EXPECT_EQ(denied.status, 429);
  EXPECT_EQ(denied.Field("Retry-After"), "1800");
  EXPECT_EQ(denied.Field("Content-Type"), "application/json");
  EXPECT_TRUE(denied.Has(R"("code":"rate_limit_exceeded","limit":"chat")")) << denied.body;
  EXPECT_EQ(auth.Ask(kChat, "?deny=403").status, 403);
  EXPECT_EQ(auth.Ask(kChat, "?deny=500").status, 400);
}

TEST(ForwardAuthTest, NginxNamesTheCallByXOriginal) {
  Auth auth(kTrusting);
  const std::string fields =
      "X-Original-Method: POST\r\nX-Original-URI: /v1/chat/x\r\nx-api-key: k\r\n";
  EXPECT_EQ(auth.Ask(fields).Field("X-RateLimit-Limit"), "2");
}

// nginx passes the client's X-Forwarded-Uri on beside the X-Original-URI that it sets.
TEST(ForwardAuthTest, AClientCannotNameAnotherCallThanTheProxyDoes) {
  Auth auth(kTrusting);
  const std::string fields = "X-Original-Method: POST\r\nX-Original-URI: /v1/chat/x\r\n";
  EXPECT_EQ(auth.Ask(fields + "X-Forwarded-Uri: /free\r\n").status, 400);
  EXPECT_EQ(auth.Ask("X-Forwarded-Method: GET\r\n" + fields).status, 400);
  EXPECT_EQ(auth.Ask("X-Forwarded-Uri: /a\r\nX-Forwarded-Uri: /b\r\n").status, 400);
  EXPECT_EQ(auth.Ask(fields + "X-Forwarded-Uri: /v1/chat/x\r\n").Field("X-RateLimit-Limit"), "2");
}

// Envoy puts the door's path before the call's, and sends the method and the Host of the call.
TEST(ForwardAuthTest, EnvoyAsksForThePathBehindTheDoors) {
  Auth auth(kTrusting);
  const std::string path = "/v1/authorize/v1/chat/completions";
  const auto post = [&](const std::string& target, const std::string& fields = "") {
    return auth.client.Post(target, "", fields);
  };
  EXPECT_EQ(post(path + "?deny=403").Field("X-RateLimit-Limit"), "2");
  EXPECT_EQ(auth.client.Get(path).Field("X-RateLimit-Limit"), "5");
  EXPECT_EQ(post(path, "X-Forwarded-Uri: /free\r\nX-Original-Method: GET\r\n").status, 200);
  EXPECT_EQ(post(path + "?deny=403").status, 429);
  EXPECT_EQ(post(path + "?deny=500").status, 429);
  EXPECT_EQ(post("/v1/authorize/../check").status, 400);
  EXPECT_EQ(post("/v1/authorized").status, 404);
}

TEST(ForwardAuthTest, OneHostAndOnePathHaveOneCounter) {
  Auth auth(R"(
identity: {trusted_proxies: [127.0.0.1/32]}
limits:
  - {name: host, rate: 1/hour, match: {host: a.test}}
  - {name: path, per: [path], rate: 1/hour, match: {host: b.test}}
)");
  EXPECT_EQ(auth.Ask("X-Forwarded-Host: a.test\r\n").status, 200);
  EXPECT_EQ(auth.Ask("X-Forwarded-Host: A.test.:443\r\n").status, 429);
  const std::string path = "X-Forwarded-Host: b.test\r\nX-Forwarded-Uri: /x";
  EXPECT_EQ(auth.Ask(path + "\r\n").status, 200);
  EXPECT_EQ(auth.Ask(path + "/\r\n").status, 429);
}

TEST(ForwardAuthTest, Case62_OnlyTrustedPeersNameAddresses) {
  Auth auth(kTrusting);
  int trusted = 0;
  for (int i = 0; i < 12; ++i) {
    trusted +=
        auth.Ask("X-Forwarded-For: 10.9.8." + std::to_string(i) + ", 198.51.100.9\r\n").status ==
                200
            ? 1
            : 0;
  }
  EXPECT_EQ(trusted, 5);
  auth.client.SetPeer("203.0.113.50:1000");
  int untrusted = 0;
  for (int i = 0; i < 12; ++i) {
    untrusted +=
        auth.Ask("X-Forwarded-For: 10.9.8." + std::to_string(i) + "\r\n").status == 200 ? 1 : 0;
  }
  EXPECT_EQ(untrusted, 5);
}

TEST(ForwardAuthTest, AnInvalidCredentialIs401AndChargedToTheAddress) {
  Auth auth("identity: {require: api_key}\nlimits: [{name: per-ip, per: [ip], rate: 3/hour}]");
  const DoorAnswer missing = auth.Ask("");
  EXPECT_EQ(missing.status, 401);
  EXPECT_EQ(missing.Field("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(auth.Ask("").status, 401);
  EXPECT_EQ(auth.Ask("").status, 401);
  EXPECT_EQ(auth.Ask("").status, 429);
}

TEST(ForwardAuthTest, TheDoorsTokenDoesNotUseTheClientsAuthorization) {
  Auth auth(
      "listen: {api: {address: 127.0.0.1:0, token: open-sesame-0123456789}}\nlimits: [{name: a, "
      "rate: 9/hour}]");
  EXPECT_EQ(auth.Ask("Authorization: Bearer sk-1\r\n").status, 401);
  EXPECT_EQ(
      auth.Ask("Authorization: Bearer sk-1\r\nX-Weir-Token: open-sesame-0123456789\r\n").status,
      200);
}

}  // namespace
}  // namespace weir::doors
