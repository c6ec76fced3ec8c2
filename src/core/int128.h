// 128-bit integers and the few divisions that rates need, so that no product of a rate, a burst and
// a period overflows.
//
//   int64_t ns = Clamp64(CeilDiv(Int128{units} * period_ns, per_period));
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <limits>

namespace weir::core {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

// Quotients towards minus and plus infinity. REQUIRES: divisor > 0.
constexpr Int128 FloorDiv(Int128 value, Int128 divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}
constexpr Int128 CeilDiv(Int128 value, Int128 divisor) {
  return value / divisor + (value % divisor > 0 ? 1 : 0);
}
constexpr int64_t FloorDiv64(int64_t value, int64_t divisor) {
  return value / divisor - (value % divisor < 0 ? 1 : 0);
}
constexpr int64_t CeilDiv64(int64_t value, int64_t divisor) {
  return value / divisor + (value % divisor > 0 ? 1 : 0);
}

constexpr int64_t Clamp64(Int128 value) {
  constexpr Int128 kMax = std::numeric_limits<int64_t>::max();
  constexpr Int128 kMin = std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value > kMax ? kMax : value < kMin ? kMin : value);
}

}  // namespace weir::core
