// How long to wait before the next try: doubling from the least to the most, half of it by lot, so
// that many clients of one server do not come back at the same instant.
//
//   Backoff backoff(10'000'000, 400'000'000, seed);
//   co_await loop.SleepFor(backoff.NextNs());      // after a failure
//   backoff.Reset();                               // after a success
//
// Thread safety: none; one owner.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::redis {

class Backoff {
 public:
  // REQUIRES: 0 < min_ns <= max_ns.
  Backoff(int64_t min_ns, int64_t max_ns, uint64_t seed)
      : min_ns_(min_ns), max_ns_(max_ns), bound_ns_(min_ns), random_(seed | 1) {}

  // Between half of the bound and the bound, which doubles up to the most.
  int64_t NextNs() {
    const int64_t bound_ns = bound_ns_;
    bound_ns_ = std::min(max_ns_, bound_ns_ * 2);
    random_ ^= random_ << 13;  // xorshift64: spreads load, guards nothing.
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    const int64_t half_ns = bound_ns / 2;
    return bound_ns - half_ns + static_cast<int64_t>(random_ % static_cast<uint64_t>(half_ns + 1));
  }
  void Reset() { bound_ns_ = min_ns_; }

 private:
  const int64_t min_ns_;
  const int64_t max_ns_;
  int64_t bound_ns_;
  uint64_t random_;
};

}  // namespace weir::redis
