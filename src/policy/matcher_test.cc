#include "policy/matcher.h"

#include <gtest/gtest.h>

#include <random>

#include "policy/test_policy.h"

namespace weir::policy {
namespace {

bool PathMatches(std::string_view pattern, std::string_view path) {
  const auto parsed = ParsePathPattern(pattern);
  EXPECT_TRUE(parsed) << pattern;
  return parsed && parsed->Matches(path);
}

std::string PathError(std::string_view pattern) {
  const auto parsed = ParsePathPattern(pattern);
  return parsed ? "no error" : parsed.error().message;
}

TEST(PathPattern, StarMeansThePathItselfAndAllBelow) {
  EXPECT_TRUE(PathMatches("/v1/*", "/v1"));
  EXPECT_TRUE(PathMatches("/v1/*", "/v1/"));
  EXPECT_TRUE(PathMatches("/v1/*", "/v1/chat/completions"));
  EXPECT_FALSE(PathMatches("/v1/*", "/v1x"));
  EXPECT_FALSE(PathMatches("/v1/*", "/"));
  EXPECT_TRUE(PathMatches("/*", "/"));
  EXPECT_TRUE(PathMatches("/*", "/anything/at/all"));
  EXPECT_FALSE(PathMatches("/*", ""));
  EXPECT_FALSE(PathMatches("/*", "*"));
}

TEST(PathPattern, ExactPrefixAndSegment) {
  EXPECT_TRUE(PathMatches("/v1/models", "/v1/models/"));
  EXPECT_TRUE(PathMatches("/v1/models/", "/v1/models"));
  EXPECT_FALSE(PathMatches("/v1/models", "/v1/models/x"));
  EXPECT_TRUE(PathMatches("/v1/mod*", "/v1/models/x"));
  EXPECT_FALSE(PathMatches("/v1/mod*", "/v1/mo"));
  EXPECT_TRUE(PathMatches("/users/{id}/keys", "/users/7/keys"));
  EXPECT_FALSE(PathMatches("/users/{id}/keys", "/users//keys"));
  EXPECT_FALSE(PathMatches("/users/{id}/keys", "/users/7/8/keys"));
  EXPECT_TRUE(PathMatches("/users/{id}/*", "/users/7"));
  EXPECT_FALSE(PathMatches("/users/{id}/*", "/users"));
  EXPECT_TRUE(PathMatches("/users/{id}/k*", "/users/7/keys/3"));
  EXPECT_TRUE(PathMatches("/", "/"));
  EXPECT_FALSE(PathMatches("/", "/x"));
}

TEST(PathPattern, RefusesWhatCanMatchNothing) {
  EXPECT_EQ(PathError("v1"), "path `v1`: a path begins with `/`");
  EXPECT_EQ(PathError("/a//b"), "path `/a//b`: `//` matches no canonical path");
  EXPECT_EQ(PathError("/a/../b"), "path `/a/../b`: dot segments match no canonical path");
  EXPECT_EQ(PathError("/a/*/b"),
            "path `/a/*/b`: `*` may stand at the end only; `{name}` stands for one segment");
  EXPECT_EQ(PathError("/a/x{id}"),
            "path `/a/x{id}`: braces stand for one whole segment, as in `/users/{id}`");
  EXPECT_EQ(PathError("/a/{}"), "path `/a/{}`: name the segment between the braces, as in `{id}`");
  EXPECT_EQ(PathError("/a?b"), "path `/a?b`: a pattern holds no query, fragment or blank");
  EXPECT_EQ(PathError("/%7Euser"), "path `/%7Euser`: write `~`, not its escape");
  EXPECT_EQ(PathError("/a%2fb"), "path `/a%2fb`: write `%` with two upper-case hex digits");
  EXPECT_TRUE(PathMatches("/a%2Fb", "/a%2Fb"));
}

Matcher Only(int attribute, std::vector<std::string_view> patterns) {
  Condition condition{.attribute = attribute};
  for (std::string_view text : patterns)
    condition.patterns.push_back(*ParsePattern(attribute, text));
  Matcher matcher;
  matcher.Add(std::move(condition));
  return matcher;
}

TEST(Matcher, HostsCompareWithoutCase) {
  Attributes call;
  call.Set(kHostAttribute, "API.Example.com");
  EXPECT_TRUE(Only(kHostAttribute, {"api.example.COM"}).Matches(call));
  EXPECT_TRUE(Only(kHostAttribute, {"*.example.com"}).Matches(call));
  EXPECT_FALSE(Only(kHostAttribute, {"*.api.example.com"}).Matches(call));
  call.Set(kHostAttribute, "example.com");
  EXPECT_FALSE(Only(kHostAttribute, {"*.example.com"}).Matches(call));
}

TEST(Matcher, AddressBitsGoBeforeText) {
  Attributes call;
  call.Set(kIpAttribute, "2001:db8::/64");
  call.SetAddress(*base::ParseIp("2001:db8::5"));
  EXPECT_TRUE(Only(kIpAttribute, {"2001:db8::5"}).Matches(call));
  EXPECT_FALSE(Only(kIpAttribute, {"2001:db8::6"}).Matches(call));
}

TEST(Matcher, AGroupedClientMatchesByItsRange) {
  Attributes call;
  call.Set(kIpAttribute, "2001:db8::/64");
  EXPECT_TRUE(Only(kIpAttribute, {"2001:db8::/32"}).Matches(call));
  EXPECT_FALSE(Only(kIpAttribute, {"2001:db9::/32"}).Matches(call));
}

TEST(Matcher, PatternsThatMeanNothingAreRefused) {
  const auto error = [](int attribute, std::string_view text) {
    const auto pattern = ParsePattern(attribute, text);
    return pattern ? std::string("no error") : pattern.error().message;
  };
  EXPECT_EQ(
      error(kIpAttribute, "10.*"),
      "`10.*`: addresses match by range, not by spelling; write a range such as `10.0.0.0/8`");
  EXPECT_EQ(error(kMethodAttribute, "post"),
            "method `post`: methods are upper-case words such as `POST`");
  EXPECT_EQ(error(kHostAttribute, "example.com:80"),
            "host `example.com:80`: write a name without a port, or `*.example.com` for all below "
            "one");
  EXPECT_EQ(error(kClientAttribute, "a*b"),
            "`a*b`: `*` may stand at the end only, where it makes a prefix");
}

// A model with nothing in common with the code under test: patterns as (text, is prefix), checked
// by comparing character by character.
struct ModelPattern {
  std::string text;
  bool prefix;
};
struct ModelCondition {
  int attribute;
  std::vector<ModelPattern> patterns;
};

bool ModelHolds(const ModelCondition& condition, const std::vector<std::string>& values) {
  for (const ModelPattern& pattern : condition.patterns) {
    const std::string& value = values[static_cast<size_t>(condition.attribute)];
    bool same =
        pattern.prefix ? value.size() >= pattern.text.size() : value.size() == pattern.text.size();
    for (size_t i = 0; same && i < pattern.text.size(); ++i) same = value[i] == pattern.text[i];
    if (same) return true;
  }
  return false;
}

TEST(Matcher, AgreesWithAPlainModelOnRandomConditions) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  const auto word = [&] {
    std::string out;
    for (int i = pick(4); i > 0; --i) out += static_cast<char>('a' + pick(2));
    return out;
  };
  constexpr int kFirst = kModelAttribute;  // model, plan: matched as plain text
  for (int round = 0; round < 20'000; ++round) {
    Matcher matcher;
    std::vector<ModelCondition> model;
    std::vector<ModelCondition> negated;
    const auto make = [&](std::vector<ModelCondition>& into) {
      ModelCondition plain{kFirst + pick(2), {}};
      Condition condition{.attribute = plain.attribute};
      for (int i = 1 + pick(2); i > 0; --i) {
        plain.patterns.push_back({word(), pick(2) == 0});
        condition.patterns.push_back(
            *ParsePattern(plain.attribute,
                          plain.patterns.back().text + (plain.patterns.back().prefix ? "*" : "")));
      }
      into.push_back(std::move(plain));
      return condition;
    };
    for (int i = pick(3); i > 0; --i) matcher.Add(make(model));
    if (pick(2) == 0) {
      std::vector<Condition> group;
      for (int i = 1 + pick(2); i > 0; --i) group.push_back(make(negated));
      matcher.AddNegated(std::move(group));
    }
    std::vector<std::string> values(kWellKnownAttributes);
    Attributes call;
    for (int i = kFirst; i < kFirst + 2; ++i) {
      values[static_cast<size_t>(i)] = word();
      if (pick(8) != 0) {
        call.Set(i, values[static_cast<size_t>(i)]);
      } else {
        values[static_cast<size_t>(i)].clear();
      }
    }
    bool expected = true;
    for (const ModelCondition& condition : model)
      expected = expected && ModelHolds(condition, values);
    bool all = !negated.empty();
    for (const ModelCondition& condition : negated) all = all && ModelHolds(condition, values);
    expected = expected && !all;
    ASSERT_EQ(matcher.Matches(call), expected) << "round " << round;
    ASSERT_EQ(WhyNot(matcher, call, AttributeTable()).has_value(), !expected) << "round " << round;
  }
}

TEST(PathPattern, AgreesWithAPlainModelOnRandomPaths) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> pattern;
    std::vector<std::string> path;
    for (int i = pick(4); i > 0; --i) pattern.push_back(pick(3) == 0 ? "{x}" : pick(2) ? "a" : "b");
    for (int i = pick(5); i > 0; --i) path.push_back(pick(2) ? "a" : "b");
    const bool below = pick(2) == 0;
    std::string pattern_text;
    for (const std::string& segment : pattern) pattern_text += "/" + segment;
    if (below) pattern_text += "/*";
    std::string path_text;
    for (const std::string& segment : path) path_text += "/" + segment;
    if (pattern_text.empty()) pattern_text = "/";
    if (path_text.empty()) path_text = "/";
    bool expected = below ? path.size() >= pattern.size() : path.size() == pattern.size();
    for (size_t i = 0; expected && i < pattern.size(); ++i) {
      expected = pattern[i] == "{x}" || pattern[i] == path[i];
    }
    ASSERT_EQ(PathMatches(pattern_text, path_text), expected) << pattern_text << " " << path_text;
  }
}

}  // namespace
}  // namespace weir::policy
