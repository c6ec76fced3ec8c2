// Where the service's walk ends without a limit though a less specific pattern would match.
//
//   std::map<const ServiceNode*, Guards> guards = FindGuards(domain.root);
//   if (guards[node].here) ...                      // The node itself, which has no rate.
//   for (const auto& rest : guards[node].below) ... // Patterns that go on from the node.
//
// At each node the service takes the most specific child that matches and stays there. Guards make
// a search for the most specific pattern end in the same place.
//
// Pure functions.
#pragma once

#include <map>
#include <vector>

#include "policy/envoy_ratelimit/service_config.h"

namespace weir::policy::envoy_ratelimit {

using Entries = std::vector<EntryPattern>;

struct Guards {
  bool here = false;
  std::vector<Entries> below;
};

std::map<const ServiceNode*, Guards> FindGuards(const ServiceNode& root);

// The child that the service goes to for this entry, or null.
const ServiceNode* ChildFor(const ServiceNode& node, const DescriptorEntry& entry);

}  // namespace weir::policy::envoy_ratelimit
