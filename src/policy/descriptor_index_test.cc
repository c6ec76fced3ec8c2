// Which pattern wins: the index against the rule as it is written.
#include "policy/descriptor_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>

namespace weir::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Entries = std::vector<DescriptorEntry>;

EntryPattern Exact(std::string key, std::string value) {
  return {std::move(key), std::move(value), EntryPattern::Kind::kExact};
}
EntryPattern Like(std::string key, std::string value) {
  return {std::move(key), std::move(value), EntryPattern::Kind::kWildcard};
}
EntryPattern Any(std::string key) { return {.key = std::move(key)}; }

TEST(MatchesWildcard, StarsStandForAnyText) {
  EXPECT_TRUE(MatchesWildcard("*", ""));
  EXPECT_TRUE(MatchesWildcard("foo*", "foo"));
  EXPECT_TRUE(MatchesWildcard("*bar", "foobar"));
  EXPECT_TRUE(MatchesWildcard("a*b*c", "axxbyyc"));
  EXPECT_TRUE(MatchesWildcard("a*ab", "aab"));
  EXPECT_TRUE(MatchesWildcard("a*b*b", "abbb"));
  EXPECT_FALSE(MatchesWildcard("a*a", "a"));
  EXPECT_FALSE(MatchesWildcard("a*b*b", "ab"));
  EXPECT_FALSE(MatchesWildcard("foo*", "fo"));
  EXPECT_FALSE(MatchesWildcard("a*b", "abc"));
}

TEST(DescriptorIndex, TheMostSpecificPatternWinsAndAllItsLimitsApply) {
  DescriptorIndex index;
  index.Add({"d", {Any("k")}}, 0);
  index.Add({"d", {Like("k", "a*")}}, 1);
  index.Add({"d", {Like("k", "*")}}, 2);
  index.Add({"d", {Exact("k", "abc")}}, 3);
  index.Add({"d", {Exact("k", "abc")}}, 4);
  EXPECT_THAT(index.Find("d", Entries{{"k", "abc"}}), ElementsAre(3, 4));
  EXPECT_THAT(index.Find("d", Entries{{"k", "ab"}}), ElementsAre(1));
  EXPECT_THAT(index.Find("d", Entries{{"k", "x"}}), ElementsAre(2));
  EXPECT_THAT(index.Find("e", Entries{{"k", "abc"}}), IsEmpty());
  EXPECT_THAT(index.Find("d", Entries{{"l", "abc"}}), IsEmpty());
  EXPECT_THAT(index.Find("d", Entries{{"k", "abc"}, {"k", "abc"}}), IsEmpty());
  EXPECT_THAT(index.Find("d", Entries{}), IsEmpty());
  EXPECT_THAT(DescriptorIndex().Find("d", Entries{{"k", "abc"}}), IsEmpty());
}

TEST(DescriptorIndex, TheFirstEntryDecidesFirstAndAPatternThatEndsEarlyIsNoMatch) {
  DescriptorIndex index;
  index.Add({"d", {Exact("a", "1"), Any("b")}}, 0);
  index.Add({"d", {Any("a"), Exact("b", "2")}}, 1);
  index.Add({"d", {Exact("a", "1"), Exact("c", "3")}}, 2);
  index.Add({"d", {Any("a"), Any("c")}}, 3);
  EXPECT_THAT(index.Find("d", Entries{{"a", "1"}, {"b", "2"}}), ElementsAre(0));
  EXPECT_THAT(index.Find("d", Entries{{"a", "9"}, {"b", "2"}}), ElementsAre(1));
  EXPECT_THAT(index.Find("d", Entries{{"a", "1"}, {"c", "3"}}), ElementsAre(2));
  EXPECT_THAT(index.Find("d", Entries{{"a", "1"}, {"c", "4"}}), ElementsAre(3));
  EXPECT_THAT(index.Find("d", Entries{{"a", "1"}}), IsEmpty());
}

TEST(DescriptorIndex, ManyKeysAndValuesAreEachFound) {
  DescriptorIndex index;
  constexpr int kMany = 1000;
  for (int i = 0; i < kMany; ++i) {
    index.Add({"d", {Exact("k", std::to_string(i))}}, 2 * i);
    index.Add({"d" + std::to_string(i), {Any("k" + std::to_string(i % 10)), Any("l")}}, 2 * i + 1);
  }
  for (int i = 0; i < kMany; ++i) {
    const std::string value = std::to_string(i);
    const std::string key = "k" + std::to_string(i % 10);
    EXPECT_THAT(index.Find("d", Entries{{"k", value}}), ElementsAre(2 * i));
    EXPECT_THAT(index.Find("d" + value, Entries{{key, ""}, {"l", value}}), ElementsAre(2 * i + 1));
    EXPECT_THAT(index.Find("d" + value, Entries{{key, ""}, {"m", value}}), IsEmpty());
  }
  EXPECT_THAT(index.Find("d", Entries{{"k", "1000"}}), IsEmpty());
}

// Joined texts do not collide.
TEST(DescriptorIndex, Case70_KeysAndValuesThatAreSpeltAlikeAreNotOne) {
  DescriptorIndex index;
  index.Add({"d", {Exact("a_b", "c")}}, 0);
  EXPECT_THAT(index.Find("d", Entries{{"a", "b_c"}}), IsEmpty());
  index.Add({"d", {Exact("a", "")}}, 1);
  EXPECT_THAT(index.Find("d", Entries{{"a", ""}}), ElementsAre(1));
  EXPECT_THAT(index.Find("da", Entries{{"_b", "c"}}), IsEmpty());
}

// Smaller is more specific; `rank` of a wildcard is where its text first stood under this prefix.
std::vector<std::pair<int, size_t>> RankOf(const std::vector<DescriptorPattern>& all,
                                           const DescriptorPattern& pattern) {
  std::vector<std::pair<int, size_t>> rank;
  for (size_t depth = 0; depth < pattern.entries.size(); ++depth) {
    const auto first = std::ranges::find_if(all, [&](const DescriptorPattern& other) {
      return other.domain == pattern.domain && other.entries.size() > depth &&
             std::equal(pattern.entries.begin(),
                        pattern.entries.begin() + static_cast<std::ptrdiff_t>(depth) + 1,
                        other.entries.begin());
    });
    const EntryPattern::Kind kind = pattern.entries[depth].kind;
    const bool wildcard = kind == EntryPattern::Kind::kWildcard;
    rank.emplace_back(static_cast<int>(kind),
                      wildcard ? static_cast<size_t>(first - all.begin()) : 0);
  }
  return rank;
}

TEST(DescriptorIndex, FindsWhatTheRuleSays) {
  std::mt19937 random(20261201);
  const auto pick = [&](auto... texts) {
    const std::string all[] = {texts...};
    return all[random() % sizeof...(texts)];
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<DescriptorPattern> patterns;
    DescriptorIndex index;
    for (size_t i = 0, count = 1 + random() % 12; i < count; ++i) {
      DescriptorPattern& pattern = patterns.emplace_back();
      pattern.domain = pick("d", "e");
      for (size_t depth = 1 + random() % 3; depth > 0; --depth) {
        const int kind = static_cast<int>(random() % 3);
        const std::string key = pick("j", "k");
        pattern.entries.push_back(kind == 0   ? Any(key)
                                  : kind == 1 ? Exact(key, pick("x", "xy", ""))
                                              : Like(key, pick("*", "x*", "*y")));
      }
      index.Add(pattern, static_cast<int>(i));
    }
    for (int call = 0; call < 20; ++call) {
      const std::string domain = pick("d", "e");
      std::vector<std::pair<std::string, std::string>> texts;
      for (size_t depth = 1 + random() % 3; depth > 0; --depth)
        texts.emplace_back(pick("j", "k"), pick("x", "xy", "", "z"));
      Entries entries;
      for (const auto& [key, value] : texts) entries.push_back({key, value});
      const DescriptorPattern* best = nullptr;
      for (const DescriptorPattern& pattern : patterns) {
        if (!pattern.Matches(domain, entries)) continue;
        if (best == nullptr || RankOf(patterns, pattern) < RankOf(patterns, *best)) best = &pattern;
      }
      std::vector<int> expected;
      for (size_t i = 0; best != nullptr && i < patterns.size(); ++i) {
        if (patterns[i] == *best) expected.push_back(static_cast<int>(i));
      }
      EXPECT_THAT(index.Find(domain, entries), ::testing::ElementsAreArray(expected))
          << ToString(entries);
    }
  }
}

}  // namespace
}  // namespace weir::policy
