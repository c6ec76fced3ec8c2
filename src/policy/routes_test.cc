#include "policy/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "policy/test_policy.h"

namespace weir::policy {
namespace {

using ::testing::ElementsAre;

const char kUpstreams[] =
    "listen: {gateway: 127.0.0.1:0}\n"
    "upstreams:\n"
    "- {name: a, urls: [http://127.0.0.1:1]}\n"
    "- {name: b, urls: [http://127.0.0.1:2]}\n"
    "- {name: c, urls: [http://127.0.0.1:3]}\n"
    "- {name: d, urls: [http://127.0.0.1:4]}\n";

std::string Chosen(const Policy& policy, std::string_view method, std::string_view host,
                   std::string_view path) {
  const Route* route = policy.routes().Find(method, host, path);
  if (route == nullptr) return "none";
  return policy.config().upstreams[static_cast<size_t>(route->upstream)].name;
}

TEST(RouteTable, ExactGoesFirstThenTheLongestPrefixInEveryOrder) {
  std::vector<std::string> lines = {
      "- {match: {path: /v1/*}, upstream: a}\n",
      "- {match: {path: /v1/chat/*}, upstream: b}\n",
      "- {match: {path: /v1/chat/completions}, upstream: c}\n",
      "- {match: {path: '/v1/{kind}/completions'}, upstream: d}\n",
  };
  std::ranges::sort(lines);
  do {
    std::string text = std::string(kUpstreams) + "routes:\n";
    for (const std::string& line : lines) text += line;
    const auto policy = MustLoad(text);
    ASSERT_TRUE(policy);
    EXPECT_EQ(Chosen(*policy, "GET", "h", "/v1/chat/completions"), "c");
    EXPECT_EQ(Chosen(*policy, "GET", "h", "/v1/chat/completions/"), "c");
    EXPECT_EQ(Chosen(*policy, "GET", "h", "/v1/text/completions"), "d");
    EXPECT_EQ(Chosen(*policy, "GET", "h", "/v1/chat/other"), "b");
    EXPECT_EQ(Chosen(*policy, "GET", "h", "/v1/chat"), "b");
    EXPECT_EQ(Chosen(*policy, "GET", "h", "/v1/models"), "a");
    EXPECT_EQ(Chosen(*policy, "GET", "h", "/v2"), "none");
    EXPECT_EQ(Chosen(*policy, "GET", "h", ""), "none");
  } while (std::ranges::next_permutation(lines).found);
}

TEST(RouteTable, HostAndMethodMakeARouteMoreExact) {
  const auto policy = MustLoad(std::string(kUpstreams) +
                               "routes:\n"
                               "- {match: {path: /x}, upstream: a}\n"
                               "- {match: {path: /x, method: POST}, upstream: b}\n"
                               "- {match: {path: /x, host: '*.example.com'}, upstream: c}\n"
                               "- {match: {path: /x, host: api.example.com}, upstream: d}\n");
  ASSERT_TRUE(policy);
  EXPECT_EQ(Chosen(*policy, "GET", "other", "/x"), "a");
  EXPECT_EQ(Chosen(*policy, "POST", "other", "/x"), "b");
  EXPECT_EQ(Chosen(*policy, "POST", "www.Example.com", "/x"), "c");
  EXPECT_EQ(Chosen(*policy, "GET", "API.example.com", "/x"), "d");
}

TEST(RouteTable, TwoRoutesForOneCallAreRefusedWithBothPlaces) {
  EXPECT_THAT(ErrorsOf(std::string(kUpstreams) + "routes:\n"
                                                 "- {match: {path: '/u/{a}'}, upstream: a}\n"
                                                 "- {match: {path: '/u/{b}'}, upstream: b}\n"),
              ElementsAre("test.yaml:9:3: this route and the one at test.yaml:8:3 match the same "
                          "calls (path `/u/{b}`); tell them apart by method or host"));
}

TEST(RouteTable, RewriteReplacesTheFixedPart) {
  const auto policy =
      MustLoad(std::string(kUpstreams) +
               "routes:\n"
               "- {match: {path: /v1/*}, upstream: a, rewrite: {prefix: /openai/v1}}\n"
               "- {match: {path: /strip/*}, upstream: a, rewrite: {prefix: /}}\n"
               "- {match: {path: '/t/{id}/*'}, upstream: a, rewrite: {prefix: /all/}}\n"
               "- {match: {path: /plain/*}, upstream: a}\n");
  ASSERT_TRUE(policy);
  const auto target = [&](std::string_view path) {
    std::string out;
    AppendUpstreamPath(*policy->routes().Find("GET", "h", path), path, out);
    return out;
  };
  EXPECT_EQ(target("/v1/chat/completions"), "/openai/v1/chat/completions");
  EXPECT_EQ(target("/v1"), "/openai/v1");
  EXPECT_EQ(target("/v1/"), "/openai/v1/");
  EXPECT_EQ(target("/strip/a/b"), "/a/b");
  EXPECT_EQ(target("/strip"), "/");
  EXPECT_EQ(target("/t/7/x"), "/all/x");
  EXPECT_EQ(target("/plain/x"), "/plain/x");
}

TEST(RouteTable, AgreesWithALinearSearchOnRandomTables) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 500; ++round) {
    std::vector<Route> routes;
    for (int i = 0; i < 6; ++i) {
      std::string text;
      for (int k = 1 + pick(3); k > 0; --k) text += pick(2) ? "/a" : "/b";
      if (pick(2)) text += "/*";
      Route route{.path = *ParsePathPattern(text), .upstream = i};
      const auto same = [&](const Route& other) { return other.path == route.path; };
      if (std::ranges::none_of(routes, same)) routes.push_back(std::move(route));
    }
    const RouteTable table(routes);
    std::string path;
    for (int k = 1 + pick(4); k > 0; --k) path += pick(2) ? "/a" : "/b";
    // The model: an exact spelling, else the longest one that ends in a star and matches.
    const Route* expected = nullptr;
    for (const Route& route : routes) {
      if (!route.path.Matches(path)) continue;
      const auto rank = [&](const Route& r) {
        return r.path.spelling() == path ? size_t{1000} : r.path.spelling().size();
      };
      if (expected == nullptr || rank(route) > rank(*expected)) expected = &route;
    }
    const Route* found = table.Find("GET", "h", path);
    ASSERT_EQ(found == nullptr, expected == nullptr) << path;
    if (found != nullptr) {
      ASSERT_EQ(found->upstream, expected->upstream) << path;
    }
  }
}

}  // namespace
}  // namespace weir::policy
