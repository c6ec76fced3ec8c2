// Calls in flight at once: each holds a lease with an id and an expiry, so that a caller that
// crashed frees its slot.
//
//   Parallel parallel(/*limit=*/10);
//   Parallel::State state;
//   Step step = parallel.Acquire(&state, {.id = 7, .units = 1, .expires_ns = now.mono_ns + ttl_ns},
//   now.mono_ns); parallel.Release(&state, 7);
//
// Thread safety: immutable; a state is owned by its caller. Acquire may allocate. Memory: 24 bytes
// per lease.
#pragma once

#include <cstdint>
#include <vector>

#include "core/step.h"

namespace weir::core {

struct Lease {
  uint64_t id;
  int64_t units;
  int64_t expires_ns;  // On the monotonic clock.
};

struct ParallelState {
  std::vector<Lease> leases;
};

class Parallel {
 public:
  using State = ParallelState;
  // When a slot frees is not known: a refusal says to ask again after this.
  static constexpr int64_t kRetryNs = 1'000'000'000;

  Parallel() = default;
  explicit Parallel(int64_t limit) : limit_(limit) {}

  // An id that already holds a lease is allowed and holds it unchanged.
  Step Acquire(State* state, const Lease& lease, int64_t now_ns) const;
  // Drops expired leases, and changes nothing else.
  Step Test(State* state, int64_t units, int64_t now_ns) const;
  // False when the lease has expired or was released.
  bool Renew(State* state, uint64_t id, int64_t expires_ns, int64_t now_ns) const;
  bool Release(State* state, uint64_t id) const;

  int64_t Used(const State& state, int64_t now_ns) const;
  int64_t limit() const { return limit_; }

 private:
  int64_t limit_ = 1;
};

}  // namespace weir::core
