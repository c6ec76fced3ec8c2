// The configuration of envoyproxy/ratelimit, the common Go service behind Envoy's rate limit
// filter: one domain with a tree of descriptors a file.
//
//   YamlReader reader(no_variables);
//   std::vector<ServiceDomain> domains;
//   ReadServiceFile(reader, "config/mongo.yaml", domains);
//   if (reader.has_errors()) return reader.TakeErrors();
//
// Thread safety: plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/config.h"
#include "policy/descriptor_pattern.h"
#include "policy/yaml_reader.h"

namespace weir::policy::envoy_ratelimit {

struct ServiceRate {
  bool unlimited = false;
  int64_t requests = 0;
  std::string period;  // "s", "min", "hour", "day", "week", "month", "year"; "" when unlimited.
  std::string name;    // "" without one.
};

// What Weir has no equivalent for, and where it stands.
struct Leftover {
  Place place;
  std::string what;
};

struct ServiceNode {
  EntryPattern entry;  // Of the root: empty.
  std::optional<ServiceRate> rate;
  bool shadow = false;
  Place place;
  std::vector<std::unique_ptr<ServiceNode>> children;  // In the order written.
};

struct ServiceDomain {
  std::string name;
  ServiceNode root;
};

// Adds a file's domain, or its descriptors where the domain is there already. Mistakes, unknown
// keys among them, are noted in the reader. Blocks on the read.
void ReadServiceFile(YamlReader& reader, const std::string& path,
                     std::vector<ServiceDomain>& domains, std::vector<Leftover>& leftovers);
// The same from a text.
void ReadServiceText(YamlReader& reader, const std::string& text, const std::string& name,
                     std::vector<ServiceDomain>& domains, std::vector<Leftover>& leftovers);

}  // namespace weir::policy::envoy_ratelimit
