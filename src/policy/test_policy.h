// Loading policies from text in tests.
//
//   auto policy = MustLoad("limits: [{name: a, rate: 1/s}]");
//   EXPECT_THAT(ErrorsOf("limit: []"), ElementsAre("test.yaml:1:1: unknown key `limit`; ..."));
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace weir::policy {

using Variables = std::map<std::string, std::string, std::less<>>;

inline Env EnvOf(Variables variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

inline std::vector<std::string> Texts(const std::vector<ConfigError>& errors) {
  std::vector<std::string> out;
  for (const ConfigError& error : errors) out.push_back(ToString(error));
  return out;
}

// The policy, or null after a test failure that shows what was wrong.
inline std::shared_ptr<const Policy> MustLoad(const std::string& text, Variables variables = {}) {
  auto loaded = Policy::FromText(text, "test.yaml", EnvOf(std::move(variables)));
  if (loaded) return *loaded;
  for (const std::string& error : Texts(loaded.error())) ADD_FAILURE() << error;
  return nullptr;
}

// The mistakes of a text that must not load; none after a failure.
inline std::vector<std::string> ErrorsOf(const std::string& text, Variables variables = {}) {
  auto loaded = Policy::FromText(text, "test.yaml", EnvOf(std::move(variables)));
  if (!loaded) return Texts(loaded.error());
  ADD_FAILURE() << "loaded, though it must not:\n" << text;
  return {};
}

// The mistakes in one limit that is written as a flow map: "rate: 1/s, burst: 0".
inline std::vector<std::string> LimitErrors(const std::string& keys) {
  return ErrorsOf("limits:\n- {name: a, " + keys + "}\n");
}

}  // namespace weir::policy
