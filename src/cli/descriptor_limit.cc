#include "cli/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

#include "cli/connection_bound.h"

namespace weir::cli {
namespace {

// For files, loops, listeners, and the doors of operators.
constexpr int64_t kSpare = 128 + ConnectionBound::kForOperators;

}  // namespace

int64_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return INT64_MAX;
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  return limit.rlim_cur > INT64_MAX ? INT64_MAX : static_cast<int64_t>(limit.rlim_cur);
}

DescriptorPlan PlanDescriptors(const policy::Config& config, int64_t allowed) {
  const int64_t each = config.listen.gateway ? 2 : 1;
  const int64_t asked = config.bounds.connections;
  DescriptorPlan plan{.connections = asked, .needed = asked * each + kSpare};
  if (allowed >= plan.needed) return plan;
  plan.connections = std::max<int64_t>((allowed - kSpare) / each, 1);
  plan.short_of_them = asked != policy::BoundsConfig().connections;
  return plan;
}

}  // namespace weir::cli
