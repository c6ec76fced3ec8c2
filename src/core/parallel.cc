#include "core/parallel.h"

#include <algorithm>

namespace weir::core {

Step Parallel::Test(State* state, int64_t units, int64_t now_ns) const {
  std::erase_if(state->leases, [now_ns](const Lease& lease) { return lease.expires_ns <= now_ns; });
  const int64_t used = Used(*state, now_ns);
  Step step;
  step.allowed = units == 0 || used + units <= limit_;
  step.remaining = std::max<int64_t>(limit_ - used, 0);
  step.reset_after_ns = used > 0 ? kNever : 0;
  if (!step.allowed) step.retry_after_ns = units > limit_ ? kNever : kRetryNs;
  return step;
}

Step Parallel::Acquire(State* state, const Lease& lease, int64_t now_ns) const {
  Step step = Test(state, lease.units, now_ns);
  for (const Lease& held : state->leases) {
    if (held.id != lease.id) continue;
    step.allowed = true;
    step.retry_after_ns = 0;
    return step;
  }
  if (!step.allowed || lease.units == 0) return step;
  state->leases.push_back(lease);
  step.remaining -= lease.units;
  step.reset_after_ns = kNever;
  return step;
}

bool Parallel::Renew(State* state, uint64_t id, int64_t expires_ns, int64_t now_ns) const {
  for (Lease& lease : state->leases) {
    if (lease.id != id || lease.expires_ns <= now_ns) continue;
    lease.expires_ns = expires_ns;
    return true;
  }
  return false;
}

bool Parallel::Release(State* state, uint64_t id) const {
  return std::erase_if(state->leases, [id](const Lease& lease) { return lease.id == id; }) > 0;
}

int64_t Parallel::Used(const State& state, int64_t now_ns) const {
  int64_t used = 0;
  for (const Lease& lease : state.leases) {
    if (lease.expires_ns > now_ns) used += lease.units;
  }
  return used;
}

}  // namespace weir::core
