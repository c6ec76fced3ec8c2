// Calls that come as descriptors, the way Envoy asks: a domain, and lists of (key, value) pairs in
// place of attributes. Limits that bind to descriptors (policy::DescriptorPattern) apply to these
// calls and to no others.
//
//   const decide::DescriptorEntry entries[] = {{"database", "users"}};
//   const decide::Descriptor descriptors[] = {{.entries = entries, .hits = 1}};
//   auto verdict = worker.DecideDescriptors({"mongo_cps", descriptors}, {.door = door}, now);
//   if (!verdict) return Refuse(verdict.error());            // kInvalidArgument
//   for (const decide::DescriptorStatus& status : (*verdict)->descriptors) Add(status);
//
// Thread safety: plain values. Ownership: a call is views that need to live through
// DecideDescriptors or BeginDescriptors only. What is said of each: DescriptorStatus, verdict.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "policy/descriptor_pattern.h"

namespace weir::decide {

// Beyond these a call is refused: what one call may cost is bounded.
inline constexpr size_t kMaxDescriptors = 256;
using policy::kMaxDescriptorEntries;

using policy::DescriptorEntry;

// A rate that came with the descriptor and stands in place of the policy's. Where the descriptor
// has a limit, that limit keeps its name, algorithm and enforcement; where it has none, the rate is
// a token bucket of its own. A rate that changes from call to call finds the units used before.
struct RateOverride {
  int64_t units = 0;                   // 0 to kMaxUnits; 0 denies all.
  std::chrono::nanoseconds period{0};  // Above 0.
};

struct Descriptor {
  std::span<const DescriptorEntry> entries;  // At least one.
  // 0 to kMaxUnits. 0: a look. The status then says whether one more unit would pass, and denies
  // the call if not; nothing is charged for it.
  int64_t hits = 1;
  std::optional<RateOverride> own_rate;
};

struct DescriptorCall {
  std::string_view domain;                  // Not empty.
  std::span<const Descriptor> descriptors;  // At least one.
};

}  // namespace weir::decide
