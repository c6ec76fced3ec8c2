// What one algorithm says of one charge, and what it hands out to take the charge back later.
//
//   Step step = bucket.Charge(state, cost, now_ns, &receipt);
//   if (!step.allowed && step.retry_after_ns == kNever) ...   // Waiting never helps.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>

namespace weir::core {

// Waiting never helps (retry_after_ns), or no instant is known (reset_after_ns).
inline constexpr int64_t kNever = -1;

struct Step {
  bool allowed = false;
  int64_t remaining = 0;  // Units left after this step, at least 0.
  int64_t reset_after_ns =
      0;  // Until the full quota is there again; kNever when unknown (parallel).
  int64_t retry_after_ns =
      0;  // Until this same cost would pass: 0 when allowed, kNever when it never will.

  friend bool operator==(const Step&, const Step&) = default;
};

// Where a charge stands in the state it was made on, so that a settle gives back only what time has
// not given back already. Opaque to callers: keep it with the reservation and hand it back
// unchanged. {0, 0} is "nothing to give back".
struct Receipt {
  int64_t a = 0;
  int64_t b = 0;
  int64_t at_ns = 0;  // When a token bucket was charged, for settles under another rate.
  int64_t mark = -1;  // What had come back before, refund_total.h. Below 0: not known.

  friend bool operator==(const Receipt&, const Receipt&) = default;
};

}  // namespace weir::core
