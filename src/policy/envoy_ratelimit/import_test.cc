// The import against a plain model of the service's own matching, and what it says of the rest.
#include "policy/envoy_ratelimit/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <memory>

#include "policy/test_policy.h"

namespace weir::policy::envoy_ratelimit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> NotesOf(const std::string& text) {
  return Texts(ImportText(text, "d.yaml").notes);
}
std::vector<std::string> ErrorsOfImport(const std::string& text) {
  const Imported imported = ImportText(text, "d.yaml");
  EXPECT_EQ(imported.yaml, "");
  return Texts(imported.errors);
}

constexpr const char* kExample = R"(
domain: mongo_cps
descriptors:
  - key: database
    value: users
    rate_limit: {unit: second, requests_per_unit: 500}
  - key: database
    value: "test-*"
    rate_limit: {unlimited: true}
  - key: database
    rate_limit: {name: per.database, unit: MINUTE, requests_per_unit: 100}
    shadow_mode: true
  - key: path
    value: /users
    descriptors:
      - key: remote_address
        rate_limit: {unit: month, requests_per_unit: 0}
)";

TEST(ImportEnvoyRatelimit, WritesWhatThePolicyReads) {
  const Imported imported = ImportText(kExample, "d.yaml");
  EXPECT_THAT(Texts(imported.notes), ElementsAre());
  EXPECT_THAT(imported.yaml, ::testing::EndsWith(
                                 R"(limits:
  - {name: "mongo_cps.database-users", domain: "mongo_cps", descriptor: [{key: "database", value: "users"}], rate: 500/s, algorithm: fixed_window}
  - {name: "mongo_cps.database-test-_", domain: "mongo_cps", descriptor: [{key: "database", value: "test-*"}], rate: unlimited}
  - {name: "per.database", domain: "mongo_cps", descriptor: [{key: "database"}], rate: 100/min, algorithm: fixed_window, align: calendar, enforce: shadow}
  - {name: "mongo_cps.path-_users.remote_address", domain: "mongo_cps", descriptor: [{key: "path", value: "/users"}, {key: "remote_address"}], rate: 0/month, algorithm: fixed_window}
)"));
  const auto policy = MustLoad(imported.yaml);
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->limits().size(), 4u);
  EXPECT_EQ(policy->limits()[2].enforce, Enforce::kShadow);
}

TEST(ImportEnvoyRatelimit, SaysWhatHasNoEquivalentAndWhere) {
  const std::string text =
      "domain: d\n"
      "descriptors:\n"
      "- key: a\n"
      "  quota_mode: true\n"
      "  detailed_metric: true\n"
      "  value_to_metric: false\n"
      "  share_threshold: true\n"
      "  metadata: {x: y}\n"
      "  rate_limit: {unit: day, requests_per_unit: 1, replaces: [{name: b}]}\n";
  EXPECT_THAT(NotesOf(text),
              ElementsAre("d.yaml:9:59: `replaces` has no equivalent: the limits that it names go "
                          "on to apply",
                          HasSubstr("d.yaml:4:15: `quota_mode` has no equivalent"),
                          HasSubstr("d.yaml:5:20: `detailed_metric` has no equivalent"),
                          HasSubstr("d.yaml:7:20: `share_threshold` has no equivalent"),
                          HasSubstr("d.yaml:8:13: `metadata` has no equivalent")));
  const std::string yaml = ImportText(text, "d.yaml").yaml;
  EXPECT_THAT(yaml, HasSubstr("\n# d.yaml:4:15: `quota_mode` has no equivalent"));
  EXPECT_TRUE(MustLoad(yaml));
}

TEST(ImportEnvoyRatelimit, WhatTheServiceRefusesIsRefusedWithItsPlace) {
  EXPECT_THAT(ErrorsOfImport("domain: d\ndescriptors: [{key: a, ratelimit: {}}]\n"),
              ElementsAre(HasSubstr("d.yaml:2:24: unknown key `descriptors[].ratelimit`; did you "
                                    "mean `rate_limit`?")));
  EXPECT_THAT(ErrorsOfImport("descriptors: []\n"), ElementsAre(HasSubstr("`domain` is missing")));
  EXPECT_THAT(ErrorsOfImport("domain: d\ndescriptors: [{value: a}]\n"),
              ElementsAre(HasSubstr("`descriptors[].key` is missing")));
  EXPECT_THAT(ErrorsOfImport("domain: d\ndescriptors: [{key: a}, {key: a}]\n"),
              ElementsAre("d.yaml:2:25: descriptor `a` is defined twice: here and at d.yaml:2:15"));
  EXPECT_THAT(ErrorsOfImport("domain: d\ndescriptors: [{key: a, rate_limit: {unit: fortnight, "
                             "requests_per_unit: 1}}]\n"),
              ElementsAre(HasSubstr("d.yaml:2:43: rate_limit.unit must be `second`, `minute`")));
  EXPECT_THAT(ErrorsOfImport("domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, "
                             "requests_per_unit: 4294967296}}]\n"),
              ElementsAre(HasSubstr("rate_limit.requests_per_unit")));
  EXPECT_THAT(ErrorsOfImport("domain: d\ndescriptors: [{key: a, rate_limit: {unlimited: true, "
                             "unit: day}}]\n"),
              ElementsAre(HasSubstr("`unlimited: true` goes without `unit`")));
  EXPECT_THAT(Texts(Import({"/none/at/all.yaml"}).errors),
              ElementsAre(HasSubstr("/none/at/all.yaml")));
}

TEST(ImportEnvoyRatelimit, AnyTextSurvives) {
  const Imported imported = ImportText(
      "domain: \"d \\\"q\\\" ${HOME} \\\\ \\t\"\n"
      "descriptors: [{key: \"k\\n\", value: \"$${x}\", rate_limit: {unit: day, requests_per_unit: "
      "1}}, {key: é, rate_limit: {unit: day, requests_per_unit: 1}}]\n",
      "d.yaml");
  const auto policy = MustLoad(imported.yaml);
  ASSERT_TRUE(policy);
  const DescriptorPattern& pattern = *policy->limits()[0].descriptor;
  EXPECT_EQ(pattern.domain, "d \"q\" ${HOME} \\ \t");
  EXPECT_EQ(pattern.entries[0].key, "k\n");
  EXPECT_EQ(pattern.entries[0].value, "$${x}");
  EXPECT_EQ(policy->limits()[1].descriptor->entries[0].key, "é");
}

TEST(ImportEnvoyRatelimit, WithoutLimitsThereIsAnEmptyList) {
  EXPECT_TRUE(MustLoad(ImportText("domain: d\n", "d.yaml").yaml));
}

// --- The service's matching, as it is: at each level the entry with its value, then the wildcards
// in their order, then the key alone; whatever is taken is kept.

struct Model {
  std::string key;
  std::string value;  // "": any.
  std::string limit;  // "": none.
  std::vector<Model> children;
};

const Model* Step(const std::vector<Model>& level, const std::string& key,
                  const std::string& value) {
  for (const Model& node : level) {
    if (node.key == key && !node.value.empty() && node.value == value &&
        value.find('*') == std::string::npos)
      return &node;
  }
  for (const Model& node : level) {
    const size_t star = node.value.find('*');
    if (node.key != key || star == std::string::npos) continue;
    const std::string head = node.value.substr(0, star);
    const std::string tail = node.value.substr(star + 1);
    const bool long_enough = value.size() >= head.size() + tail.size();
    if (long_enough && value.starts_with(head) && value.ends_with(tail)) return &node;
  }
  for (const Model& node : level) {
    if (node.key == key && node.value.empty()) return &node;
  }
  return nullptr;
}

std::string LimitOf(const std::vector<Model>& root,
                    const std::vector<std::pair<std::string, std::string>>& call) {
  const std::vector<Model>* level = &root;
  const Model* node = nullptr;
  for (const auto& [key, value] : call) {
    node = Step(*level, key, value);
    if (node == nullptr) return "";
    level = &node->children;
  }
  return node->limit;
}

std::vector<Model> RandomLevel(int depth, int* names) {
  std::vector<Model> level;
  const int count = *rc::gen::inRange(0, depth == 0 ? 6 : 4);
  for (int i = 0; i < count; ++i) {
    Model node;
    node.key = *rc::gen::element<std::string>("j", "k");
    node.value = *rc::gen::element<std::string>("", "x", "xy", "*", "x*", "*y", "x*y");
    const bool twice = std::ranges::any_of(level, [&](const Model& other) {
      return other.key == node.key && other.value == node.value;
    });
    if (twice) continue;
    if (*rc::gen::inRange(0, 3) > 0) node.limit = "n" + std::to_string((*names)++);
    if (depth < 3) node.children = RandomLevel(depth + 1, names);
    level.push_back(std::move(node));
  }
  return level;
}

std::string YamlOf(const std::vector<Model>& level) {
  std::string out = "[";
  for (const Model& node : level) {
    out += out.size() > 1 ? ", {key: " : "{key: ";
    out += node.key;
    if (!node.value.empty()) out += ", value: '" + node.value + "'";
    if (!node.limit.empty())
      out += ", rate_limit: {unit: minute, requests_per_unit: 1, name: " + node.limit + "}";
    out += ", descriptors: " + YamlOf(node.children) + "}";
  }
  return out + "]";
}

TEST(ImportEnvoyRatelimit, AgreesWithTheServiceOnWhichLimitMatches) {
  EXPECT_TRUE(rc::check([] {
    int names = 0;
    const std::vector<Model> root = RandomLevel(0, &names);
    const std::string text = "domain: d\ndescriptors: " + YamlOf(root) + "\n";
    const Imported imported = ImportText(text, "d.yaml");
    RC_ASSERT(imported.errors.empty());
    const auto loaded = Policy::FromText(imported.yaml, "test.yaml", EnvOf({}));
    RC_ASSERT(loaded.has_value());
    for (int i = 0; i < 50; ++i) {
      const auto call = *rc::gen::resize(
          4, rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<std::string, std::string>>>(
                 rc::gen::pair(rc::gen::element<std::string>("j", "k"),
                               rc::gen::element<std::string>("", "x", "y", "xy", "xzy", "z")))));
      std::vector<DescriptorEntry> entries;
      for (const auto& [key, value] : call) entries.push_back({key, value});
      std::string found;
      for (const int index : (*loaded)->descriptors().Find("d", entries)) {
        const Limit& limit = (*loaded)->limits()[static_cast<size_t>(index)];
        if (!limit.variants[0].unlimited) found += limit.name;
      }
      RC_ASSERT(found == LimitOf(root, call));
    }
  }));
}

}  // namespace
}  // namespace weir::policy::envoy_ratelimit
