// A configuration of envoyproxy/ratelimit as limits of Weir.
//
//   const Imported imported = envoy_ratelimit::Import({"config/mongo.yaml"});
//   for (const ConfigError& error : imported.errors) Print(ToString(error));
//   std::cout << imported.yaml;
//
// The service walks its tree of descriptors and never turns back: a descriptor whose values lead to
// a node without a rate has no limit, though a less specific pattern would match. Weir looks for
// the most specific pattern that matches, so such places become limits of `rate: unlimited`.
//
// Thread safety: pure but for the reads of files.
#pragma once

#include <string>
#include <vector>

#include "policy/policy.h"

namespace weir::policy::envoy_ratelimit {

struct Imported {
  std::string yaml;                // "" after an error.
  std::vector<ConfigError> notes;  // What has no equivalent; said in the YAML too.
  std::vector<ConfigError> errors;
};

// Reads the files, in this order.
Imported Import(const std::vector<std::string>& paths);
// The same from one text, for tests.
Imported ImportText(const std::string& text, const std::string& name);

}  // namespace weir::policy::envoy_ratelimit
