#include "base/clock.h"

#include <ctime>

namespace weir {
namespace {

int64_t ReadNs(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);  // Cannot fail for these two clocks.
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

int64_t SystemClock::MonotonicNs() const { return ReadNs(CLOCK_MONOTONIC); }

int64_t SystemClock::RealtimeNs() const { return ReadNs(CLOCK_REALTIME); }

}  // namespace weir
