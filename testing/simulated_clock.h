// A clock that stands still until a test moves it.
//
// Thread safety: any thread may read while one thread moves it.
//
//   SimulatedClock clock;
//   limiter.Check(clock.MonotonicNs());
//   clock.Advance(std::chrono::milliseconds(200));
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace weir {

class SimulatedClock final : public Clock {
 public:
  // 2026-11-30T20:00:00Z unless told; the monotonic side starts elsewhere on purpose, so that a
  // mix-up shows.
  explicit SimulatedClock(int64_t realtime_ns = 1'796'068'800'000'000'000,
                          int64_t monotonic_ns = 1'000'000'000'000)
      : monotonic_ns_(monotonic_ns), realtime_ns_(realtime_ns) {}

  int64_t MonotonicNs() const override { return monotonic_ns_.load(std::memory_order_acquire); }
  int64_t RealtimeNs() const override { return realtime_ns_.load(std::memory_order_acquire); }

  // Moves both sides forward.
  void Advance(std::chrono::nanoseconds by) {
    monotonic_ns_.fetch_add(by.count(), std::memory_order_acq_rel);
    realtime_ns_.fetch_add(by.count(), std::memory_order_acq_rel);
  }

  // Sets the wall clock alone, forward or back, as an operator or NTP would.
  void SetRealtimeNs(int64_t realtime_ns) {
    realtime_ns_.store(realtime_ns, std::memory_order_release);
  }

 private:
  std::atomic<int64_t> monotonic_ns_;
  std::atomic<int64_t> realtime_ns_;
};

}  // namespace weir
