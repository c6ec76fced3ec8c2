// What clients are told: refusals, limit headers, identity, CORS, models.

#include "gateway/gateway_world_test.h"

namespace weir::gateway {
namespace {

std::string Policy(std::string_view limits, std::string_view more = "") {
  return std::string(R"(
listen: {gateway: 127.0.0.1:0}
upstreams: [{name: up, urls: ["http://UPSTREAM0"]}]
routes: [{match: {path: /*}, upstream: up}]
)") + std::string(more) +
         "\nlimits:\n" + std::string(limits);
}

constexpr char kIpFive[] = "  - {name: ip, per: [ip], rate: 5/hour}\n";
constexpr char kTrusting[] = "identity: {trusted_proxies: [127.0.0.1/32]}";

TEST(LimitsTest, Case56_EachHeaderOnceAndTheUpstreamsDropped) {
  World world(Policy(
      "  - {name: a, per: [ip], rate: 20/min}\n  - {name: b, per: [client], rate: 100/min}\n"));
  world.upstream().answer =
      "HTTP/1.1 200 OK\r\nX-RateLimit-Limit: 9\r\nx-ratelimit-remaining-tokens: 9\r\nRateLimit: "
      "\"up\";r=9\r\n"
      "RateLimit-Policy: \"up\";q=9\r\nanthropic-ratelimit-requests-limit: 9\r\nRetry-After: "
      "9\r\nContent-Length: 0\r\n\r\n";
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer answer = co_await client.Ask(Get("/"));
    EXPECT_EQ(answer.Count("x-ratelimit-limit"), 1);
    EXPECT_EQ(answer.Field("x-ratelimit-limit"), "20");
    EXPECT_EQ(answer.Field("x-ratelimit-remaining"), "19");
    EXPECT_EQ(answer.Count("ratelimit"), 1);
    EXPECT_EQ(answer.Count("ratelimit-policy"), 1);
    EXPECT_EQ(answer.head.find("\"up\""), std::string::npos) << answer.head;
    EXPECT_EQ(answer.Count("anthropic-ratelimit-requests-limit"), 0);
    EXPECT_EQ(answer.Count("retry-after"), 0);
    world.upstream().answer =
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 9\r\nContent-Length: 0\r\n\r\n";
    const Answer theirs = co_await client.Ask(Get("/"));
    EXPECT_EQ(theirs.status, 429);
    EXPECT_EQ(theirs.Field("retry-after"), "9");
  }());
}

TEST(LimitsTest, Case57_RefusalsAreJsonInTheShapeOfThePath) {
  World world(Policy("  - {name: one, per: [ip], rate: 1/min}\n"));
  const std::vector<std::string> bodies = {R"({"model":"m","messages":[]})",
                                           R"({"model":"m","stream":true,"messages":[]})"};
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer first = co_await client.Ask(Get("/v1/models"));
    EXPECT_EQ(first.status, 200);
    for (const std::string& body : bodies) {
      const Answer denied = co_await client.Ask(Post("/v1/chat/completions", body));
      EXPECT_EQ(denied.status, 429);
      EXPECT_EQ(denied.Field("content-type"), "application/json");
      EXPECT_NE(denied.body.find(R"("error":{"message":)"), std::string::npos) << denied.body;
      EXPECT_NE(denied.body.find(R"("code":"rate_limit_exceeded")"), std::string::npos)
          << denied.body;
      EXPECT_NE(denied.body.find(R"("limit":"one")"), std::string::npos) << denied.body;
      EXPECT_EQ(denied.Field("retry-after"), "60");
      EXPECT_EQ(denied.Field("x-ratelimit-remaining"), "0");
      EXPECT_EQ(denied.Count("connection"), 0);  // The body had arrived: the connection stays.
    }
    const Answer anthropic = co_await client.Ask(Post("/v1/messages", "{}"));
    EXPECT_NE(anthropic.body.find(R"("type":"rate_limit_error")"), std::string::npos)
        << anthropic.body;
    const Answer plain = co_await client.Ask(Get("/other"));
    EXPECT_EQ(plain.Field("content-type"), "application/problem+json");
    EXPECT_EQ(world.upstream().requests.size(), 1u);
  }());
}

TEST(LimitsTest, Case58_PreflightsAreNotChargedAndRefusalsAreReadable) {
  World world(Policy("  - {name: ip, per: [ip], rate: 40/hour}\n",
                     "cors: {origins: [\"https://app.test\"]}"));
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const std::string origin = "Origin: https://app.test\r\n";
    for (int i = 0; i < 40; ++i) {
      const Answer preflight =
          co_await client.Ask("OPTIONS /v1/x HTTP/1.1\r\nHost: a\r\n" + origin +
                              "Access-Control-Request-Method: "
                              "POST\r\nAccess-Control-Request-Headers: authorization\r\n\r\n");
      EXPECT_EQ(preflight.status, 204);
      EXPECT_EQ(preflight.Field("access-control-allow-origin"), "https://app.test");
      EXPECT_EQ(preflight.Field("access-control-allow-headers"), "authorization");
      const Answer post = co_await client.Ask(Post("/v1/x", "{}", origin));
      EXPECT_EQ(post.status, 200) << i;
      EXPECT_EQ(post.Field("access-control-allow-origin"), "https://app.test");
    }
    const Answer denied = co_await client.Ask(Post("/v1/x", "{}", origin));
    EXPECT_EQ(denied.status, 429);
    EXPECT_EQ(denied.Field("access-control-allow-origin"), "https://app.test");
    EXPECT_NE(denied.Field("access-control-expose-headers").find("Retry-After"), std::string::npos);
    const Answer stranger =
        co_await client.Ask(Post("/v1/x", "{}", "Origin: https://evil.test\r\n"));
    EXPECT_EQ(stranger.Count("access-control-allow-origin"), 0);
    EXPECT_EQ(world.upstream().requests.size(), 40u);
  }());
}

TEST(IdentityTest, Case62_OnlyTheTrustedProxysEntryCounts) {
  World world(Policy(kIpFive, kTrusting));
  World untrusting(Policy(kIpFive));
  for (const bool two_lines : {false, true}) {
    World fresh(Policy(kIpFive, kTrusting));
    fresh.Run([&]() -> Task<void> {
      RawClient client(fresh);
      int allowed = 0;
      for (int i = 0; i < 12; ++i) {
        const std::string made_up = "10.0.0." + std::to_string(i);
        const std::string fields = "X-Forwarded-For: " + made_up +
                                   (two_lines ? "\r\nX-Forwarded-For: " : ", ") +
                                   "198.51.100.9\r\n";
        const Answer answer = co_await client.Ask(Get("/", fields));
        allowed += answer.status == 200;
        EXPECT_TRUE(answer.status == 200 || answer.status == 429);
      }
      EXPECT_EQ(allowed, 5);
      EXPECT_EQ(fresh.upstream().requests.at(0).Field("x-forwarded-for"),
                "10.0.0.0, 198.51.100.9, 127.0.0.1");
    }());
  }
  untrusting.Run([&]() -> Task<void> {
    RawClient client(untrusting);
    int allowed = 0;
    for (int i = 0; i < 12; ++i) {
      const Answer answer =
          co_await client.Ask(Get("/", "X-Forwarded-For: 10.0.0." + std::to_string(i) +
                                           "\r\nX-Forwarded-Proto: https\r\n"));
      allowed += answer.status == 200;
    }
    EXPECT_EQ(allowed, 5);
    EXPECT_EQ(untrusting.upstream().requests.at(0).Field("x-forwarded-for"), "127.0.0.1");
    EXPECT_EQ(untrusting.upstream().requests.at(0).Field("x-forwarded-proto"), "http");
  }());
}

Task<int> AllowedOf(World& world, std::vector<std::string> addresses) {
  RawClient client(world);
  int allowed = 0;
  for (const std::string& address : addresses) {
    const Answer answer = co_await client.Ask(Get("/", "X-Forwarded-For: " + address + "\r\n"));
    allowed += answer.status == 200;
  }
  co_return allowed;
}

TEST(IdentityTest, Case63_PortsDoNotMakeClients) {
  World world(Policy(kIpFive, kTrusting));
  const std::vector<std::string> v6 = {"[2001:db8::1]:443", "2001:db8::1",     "[2001:db8::1]:1",
                                       "2001:db8::1",       "[2001:db8::1]:2", "2001:db8::1"};
  const std::vector<std::string> another = {"203.0.113.8"};
  world.Run([&]() -> Task<void> {
    std::vector<std::string> v4;
    for (int port = 52241; port <= 52252; ++port)
      v4.push_back("203.0.113.7:" + std::to_string(port));
    const int v4_allowed = co_await AllowedOf(world, v4);
    EXPECT_EQ(v4_allowed, 5);
    const int v6_allowed = co_await AllowedOf(world, v6);
    EXPECT_EQ(v6_allowed, 5);
    const int other = co_await AllowedOf(world, another);
    EXPECT_EQ(other, 1);
  }());
}

TEST(IdentityTest, Case65_OneV6NetworkIsOneClient) {
  World world(Policy(kIpFive, kTrusting));
  world.Run([&]() -> Task<void> {
    std::vector<std::string> addresses;
    for (int i = 0; i < 20; ++i) addresses.push_back("2001:db8:1:2::" + std::to_string(i + 1));
    const int allowed = co_await AllowedOf(world, addresses);
    EXPECT_EQ(allowed, 5);
  }());
}

TEST(IdentityTest, Case68_OneKeyInAnySpellingIsOneClient) {
  World world(
      Policy("  - {name: key, per: [client], rate: 3/hour}\n", "identity: {require: api_key}"));
  const std::vector<std::string> values = {"Bearer K", "bearer K", "Bearer  K", "x Bearer K"};
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    int allowed = 0;
    for (size_t i = 0; i < 12; ++i) {
      const std::string& value = values[i % 4];
      const Answer answer = co_await client.Ask(Get("/v1/m", "Authorization: " + value + "\r\n"));
      allowed += answer.status == 200;
      EXPECT_TRUE(answer.status == 200 || answer.status == 401 || answer.status == 429)
          << answer.status;
      EXPECT_FALSE(value == "x Bearer K" && answer.status == 200);
    }
    EXPECT_EQ(allowed, 3);
    RawClient anonymous(world);
    const Answer missing = co_await anonymous.Ask(Get("/v1/m", "X-Forwarded-For: 1.2.3.4\r\n"));
    EXPECT_TRUE(missing.status == 401 || missing.status == 429) << missing.status;
  }());
}

TEST(IdentityTest, MissingKeyIs401InTheAiShapeAndCharged) {
  World world(Policy(kIpFive, "identity: {require: api_key}"));
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    for (int i = 0; i < 5; ++i) {
      const Answer answer = co_await client.Ask(Get("/v1/models"));
      EXPECT_EQ(answer.status, 401);
      EXPECT_NE(answer.body.find(R"("code":"invalid_api_key")"), std::string::npos) << answer.body;
    }
    const Answer denied = co_await client.Ask(Get("/v1/models"));
    EXPECT_EQ(denied.status, 429);
  }());
}

TEST(IdentityTest, Case87_AKeyPerCallDoesNotEscapeTheAddressLimit) {
  World world(
      Policy("  - {name: client, per: [client], rate: 5/min}\n  - {name: ip, per: [ip], rate: "
             "100/hour}\n"));
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    int allowed = 0;
    for (int i = 0; i < 1000; ++i) {
      const Answer answer =
          co_await client.Ask(Get("/", "Authorization: Bearer key-" + std::to_string(i) + "\r\n"));
      allowed += answer.status == 200;
    }
    EXPECT_EQ(allowed, 100);
  }());
}

TEST(ModelTest, Case83g_AmbiguousBodiesAreRefusedAndNotForwarded) {
  World world(
      Policy("  - {name: m, per: [client, model], rate: 1000/min, match: {path: /v1/*}}\n"));
  const std::vector<std::string> bodies = {
      R"({"model":"cheap","x":1,"model":"dear"})", R"({"mod\u0065l":"dear"})",
      R"({"model":"a"}{"model":"b"})", "tru", R"({"model":"a")"};
  world.Run([&]() -> Task<void> {
    for (const std::string& body : bodies) {
      RawClient client(world);
      const Answer answer = co_await client.Ask(Post("/v1/chat/completions", body));
      EXPECT_EQ(answer.status, 400) << body;
      EXPECT_EQ(answer.Field("content-type"), "application/json");
      EXPECT_NE(answer.body.find(R"("type":"invalid_request_error")"), std::string::npos)
          << answer.body;
    }
    EXPECT_EQ(world.upstream().accepted, 0);
    RawClient client(world);
    const Answer unmetered = co_await client.Ask(Post("/other", "tru"));
    EXPECT_EQ(unmetered.status, 200);  // No limit that could apply there reads the model.
  }());
}

// Upstreams that read JSON whatever the type says, or guess its encoding, would serve these under a
// model that no limit saw.
TEST(ModelTest, ATypeOrAnEncodingDoesNotHideTheModel) {
  World world(Policy("  - {name: m, per: [model], rate: 1/hour}\n", "bounds: {inspect: 4KiB}"));
  world.Run([&]() -> Task<void> {
    const std::string body = R"({"model":"dear"})";
    const auto post = [](std::string fields, const std::string& text) {
      return "POST /v1/c HTTP/1.1\r\nHost: a\r\n" + fields +
             "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
    };
    RawClient client(world);
    const Answer first = co_await client.Ask(post("Content-Type: image/png\r\n", " " + body));
    EXPECT_EQ(first.status, 200);
    for (const char* type : {"image/png", "multipart/form-data; boundary=x", "application/json"}) {
      RawClient again(world);
      const Answer denied =
          co_await again.Ask(post("Content-Type: " + std::string(type) + "\r\n", body));
      EXPECT_EQ(denied.status, 429) << type;
    }
    for (const std::string& text :
         {"\xef\xbb\xbf" + body, std::string("\0{\0}", 4), std::string("\xff\xfe{\0}\0", 6)}) {
      RawClient guessed(world);
      const Answer refused = co_await guessed.Ask(post("", text));
      EXPECT_EQ(refused.status, 400);
    }
    RawClient twice(world);
    const Answer types = co_await twice.Ask(
        post("Content-Type: image/png\r\nContent-Type: application/json\r\n", body));
    EXPECT_EQ(types.status, 400);
    // An upload larger than `inspect` passes, whole, under the empty model.
    RawClient uploader(world);
    const std::string image = "\x89PNG" + std::string(50'000, 'x');
    const Answer upload = co_await uploader.Ask(post("Content-Type: image/png\r\n", image));
    EXPECT_EQ(upload.status, 200);
    EXPECT_EQ(world.upstream().requests.back().body, image);
  }());
}

TEST(ModelTest, CountsByModelHoweverTheBodyComes) {
  World world(Policy("  - {name: m, per: [model], rate: 2/hour}\n", "bounds: {inspect: 4KiB}"));
  world.Run([&]() -> Task<void> {
    const std::string body = R"({"model":"a","messages":[]})";
    RawClient client(world);
    const Answer whole = co_await client.Ask(Post("/v1/c", body));
    EXPECT_EQ(whole.status, 200);
    const std::string head =
        "POST /v1/c HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nTransfer-Encoding: "
        "chunked\r\n\r\n";
    const Answer chunked = co_await client.Ask(head + "5\r\n" + body.substr(0, 5) + "\r\n16\r\n" +
                                               body.substr(5) + "\r\n0\r\n\r\n");
    EXPECT_EQ(chunked.status, 200);
    EXPECT_EQ(world.upstream().requests.at(1).body, body);
    EXPECT_EQ(world.upstream().requests.at(1).Field("content-length"), "27");
    const Answer third = co_await client.Ask(Post("/v1/c", body));
    EXPECT_EQ(third.status, 429);
    const Answer other = co_await client.Ask(Post("/v1/c", R"({"model":"b"})"));
    EXPECT_EQ(other.status, 200);
    const Answer large = co_await client.Ask(
        Post("/v1/c", R"({"model":"c","x":")" + std::string(5000, 'x') + "\"}"));
    EXPECT_EQ(large.status, 413);
    RawClient packer(world);
    const Answer packed = co_await packer.Ask(Post("/v1/c", body, "Content-Encoding: gzip\r\n"));
    EXPECT_EQ(packed.status, 415);
  }());
}

TEST(LimitsTest, PathsThatMeanTheSameShareACounter) {
  World world(Policy("  - {name: p, per: [path, host], rate: 3/hour}\n"));
  const std::vector<std::string> hosts = {"A.test:80", "a.test."};
  const std::vector<std::string> paths = {"/a/b",   "/a/b/",  "/a//b",
                                          "/a/./b", "/a/%62", "/x/../a/b"};
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    int allowed = 0;
    for (const std::string& path : paths) {
      const Answer answer = co_await client.Ask(
          "GET " + path + " HTTP/1.1\r\nHost: " + hosts[static_cast<size_t>(allowed % 2)] +
          "\r\n\r\n");
      allowed += answer.status == 200;
    }
    EXPECT_EQ(allowed, 3);
  }());
}

TEST(LimitsTest, ReloadReachesOpenConnections) {
  World world(Policy("  - {name: ip, per: [ip], rate: 100/min}\n"));
  world.Run([&]() -> Task<void> {
    RawClient client(world);
    const Answer before = co_await client.Ask(Get("/"));
    EXPECT_EQ(before.Field("x-ratelimit-limit"), "100");
    const std::string next =
        Replaced(Policy("  - {name: ip, per: [ip], rate: 50/min}\n"), "UPSTREAM0",
                 "127.0.0.1:" + std::to_string(world.upstream().port()));
    auto loaded = policy::Policy::FromText(
        next, "next.yaml", [](std::string_view) { return std::optional<std::string>(); });
    const auto reloaded = world.engine->Reload(*loaded);
    EXPECT_TRUE(reloaded.has_value());
    const Answer after = co_await client.Ask(Get("/"));
    EXPECT_EQ(after.Field("x-ratelimit-limit"), "50");
    EXPECT_EQ(world.upstream().accepted, 1);  // The pool was kept.
  }());
}

}  // namespace
}  // namespace weir::gateway
