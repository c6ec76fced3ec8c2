// Where time comes from. Nothing below the event loop reads a clock: the loop reads one per tick
// and passes the value on, so that every rule can be tested under a simulated clock
// (testing/simulated_clock.h).
//
// Thread safety: SystemClock may be shared by any threads. The owner keeps it alive as long as its
// users.
//
//   SystemClock clock;
//   int64_t start_ns = clock.MonotonicNs();
//   Serve();
//   int64_t took_ns = clock.MonotonicNs() - start_ns;
#pragma once

#include <cstdint>

namespace weir {

class Clock {
 public:
  virtual ~Clock() = default;

  // Nanoseconds since a fixed instant in the past. Never goes backwards. For intervals.
  virtual int64_t MonotonicNs() const = 0;

  // Nanoseconds since 1970-01-01T00:00:00Z. Can jump either way. For calendars, timestamps and
  // token expiry only.
  virtual int64_t RealtimeNs() const = 0;
};

// CLOCK_MONOTONIC and CLOCK_REALTIME through clock_gettime (about 25 ns each), so that libfaketime
// can move them.
class SystemClock final : public Clock {
 public:
  int64_t MonotonicNs() const override;
  int64_t RealtimeNs() const override;
};

}  // namespace weir
