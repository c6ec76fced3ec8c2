// Which limit binds: the one that an answer shows when several apply. The order of the file has no
// say in it.
//
//   if (best == nullptr || (admitted ? BindsPass(limit, *best) : BindsDenial(limit, *best)))
//     best = &limit;
//
// Pure functions.
#pragma once

#include <algorithm>

#include "core/int128.h"
#include "core/step.h"
#include "decide/verdict.h"

namespace weir::decide {

// The longer wait, where core::kNever is the longest.
inline int64_t LongerWait(int64_t a, int64_t b) {
  if (a == core::kNever || b == core::kNever) return core::kNever;
  return std::max(a, b);
}

// Whether `a` binds a denied call rather than `b`: never before any wait, then the longer wait,
// then the name.
inline bool BindsDenial(const LimitVerdict& a, const LimitVerdict& b) {
  if (a.retry_after_ns != b.retry_after_ns)
    return LongerWait(a.retry_after_ns, b.retry_after_ns) == a.retry_after_ns;
  return a.name < b.name;
}

// Whether `a` has the smaller share left than `b`.
inline bool BindsPass(const LimitVerdict& a, const LimitVerdict& b) {
  const core::Int128 left_a = core::Int128{a.remaining} * b.quota;
  const core::Int128 left_b = core::Int128{b.remaining} * a.quota;
  if (left_a != left_b) return left_a < left_b;
  if (a.quota != b.quota) return a.quota < b.quota;
  return a.name < b.name;
}

}  // namespace weir::decide
