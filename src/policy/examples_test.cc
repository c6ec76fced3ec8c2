// Every policy in examples/ loads, and the quick start keeps its promises.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "policy/describe.h"
#include "policy/test_policy.h"

namespace weir::policy {
namespace {

const std::filesystem::path kExamples = WEIR_EXAMPLES_DIR;

Env ExampleEnv() {
  return EnvOf({{"OPENAI_API_KEY", "sk-example"},
                {"WEIR_SECRET", "0123456789abcdef"},
                {"REDIS_PASSWORD", "pa55word"}});
}

// Configurations of other programs.
bool IsForeign(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path().filename();
  return folder == "envoy" || folder == "traefik";
}

TEST(Examples, AllLoad) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kExamples)) {
    if (entry.path().extension() != ".yaml" || IsForeign(entry.path())) continue;
    ++count;
    const auto loaded = Policy::Load(entry.path().string(), ExampleEnv());
    if (!loaded) {
      for (const std::string& error : Texts(loaded.error())) ADD_FAILURE() << error;
      continue;
    }
    EXPECT_TRUE((*loaded)->warnings().empty()) << entry.path();
    for (const char* secret : {"sk-example", "pa55word", "0123456789abcdef"}) {
      EXPECT_EQ(Describe(**loaded).find(secret), std::string::npos) << entry.path();
      EXPECT_EQ(ToJson(**loaded).find(secret), std::string::npos) << entry.path();
    }
  }
  EXPECT_GE(count, 9);
}

TEST(Examples, QuickStartKeepsItsPromises) {
  const auto loaded = Policy::Load((kExamples / "quickstart.yaml").string(), ExampleEnv());
  ASSERT_TRUE(loaded);
  const Policy& policy = **loaded;
  EXPECT_EQ(policy.config().listen.gateway->address, "127.0.0.1:8080");
  EXPECT_EQ(policy.config().listen.api->address, "127.0.0.1:8081");
  EXPECT_EQ(policy.config().listen.admin->address, "127.0.0.1:8082");
  EXPECT_EQ(policy.config().listen.ops->address, "127.0.0.1:9090");
  EXPECT_FALSE(policy.config().identity.require);
  EXPECT_EQ(policy.config().upstreams.at(0).urls.at(0).port, 8090);
  const auto has_ip = [](const Limit& limit) { return limit.layer == Layer::kIp; };
  EXPECT_TRUE(std::ranges::any_of(policy.limits(), has_ip));
  const Limit* client = policy.FindLimit("per-client");
  ASSERT_NE(client, nullptr);
  EXPECT_LT(client->variants[0].spec.rate.burst, 100);
}

TEST(Documentation, BeginsWithAConfigurationThatLoads) {
  std::ifstream file(std::filesystem::path(WEIR_DOCS_DIR) / "configuration.md");
  std::ostringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  const std::string fence = "```yaml\n";
  const size_t begin = text.find(fence);
  ASSERT_NE(begin, std::string::npos);
  const size_t end = text.find("```", begin + fence.size());
  const auto policy = MustLoad(text.substr(begin + fence.size(), end - begin - fence.size()));
  ASSERT_TRUE(policy);
  EXPECT_EQ(policy->limits().size(), 1u);
  EXPECT_TRUE(policy->warnings().empty());
}

}  // namespace
}  // namespace weir::policy
