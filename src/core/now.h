// The instant of a decision, as the caller read it: never read inside an algorithm.
//
//   core::Now now{.mono_ns = clock.SinceStartNs(), .wall_ns = clock.UnixNs()};
//
// Thread safety: plain value.
#pragma once

#include <cstdint>

namespace weir::core {

struct Now {
  // Nanoseconds since a fixed instant that this process chose, best its own start: at least 0, and
  // exact for kHorizonNs from there on. Every interval is measured with it.
  int64_t mono_ns = 0;
  // Unix time in nanoseconds. Used for calendar windows only.
  int64_t wall_ns = 0;

  friend bool operator==(const Now&, const Now&) = default;
};

// How long mono_ns may run: 2^56 ns, 2.28 years. Packed state (gcra.h, fixed_window.h) is exact up
// to here and free of overflow up to twice as long; a process that means to run longer restarts
// before.
inline constexpr int64_t kHorizonNs = int64_t{1} << 56;

}  // namespace weir::core
