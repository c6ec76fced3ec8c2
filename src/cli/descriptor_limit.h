// File descriptors: how many connections the process may hold with those that the system gives it.
//
//   const int64_t allowed = RaiseDescriptorLimit();               // Soft limit to the hard one.
//   const DescriptorPlan plan = PlanDescriptors(config, allowed);
//   if (plan.short_of_them) Warn(plan.needed);
//   bound.SetMost(plan.connections);
//
// Thread safety: RaiseDescriptorLimit before threads start; the rest is pure.
#pragma once

#include <cstdint>

#include "policy/config.h"

namespace weir::cli {

// Raises the soft limit to the hard one, which needs no privilege, and says what it is then;
// INT64_MAX: no limit.
int64_t RaiseDescriptorLimit();

struct DescriptorPlan {
  int64_t connections = 0;     // To be held at most: never more than there are descriptors for.
  int64_t needed = 0;          // For as many as bounds.connections says.
  bool short_of_them = false;  // Fewer connections than the operator asked for.
};

// A call through the gateway takes two descriptors, any other connection one. Bounds that nobody
// set are met by holding fewer connections; only a number that was asked for can be missed.
DescriptorPlan PlanDescriptors(const policy::Config& config, int64_t allowed);

}  // namespace weir::cli
