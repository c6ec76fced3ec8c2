// What a limit is made of: a unit, an algorithm and a rate. Plain values, valid once Validate says
// so.
//
//   weir::Rate rate{.units = 300, .period = std::chrono::minutes(1), .burst = 50};
//
// Thread safety: plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace weir {

// What a limit counts. usd is counted in micro-dollars (1 usd = 1'000'000 units).
enum class Unit : uint8_t {
  kRequests,
  kTokens,
  kInputTokens,
  kOutputTokens,
  kUsd,
  kBytes,
  kParallel
};
inline constexpr int kUnitCount = 7;

// "requests", "tokens", "input_tokens", "output_tokens", "usd", "bytes", "parallel".
std::string_view UnitName(Unit unit);

enum class Algorithm : uint8_t {
  kTokenBucket,     // GCRA: refills continuously, capacity `burst`. The default.
  kSlidingWindow,   // Exact log: at most N in every window of length P. Memory O(N) per key.
  kSlidingCounter,  // Two counts; a true window can see up to 2N - 1 (the strict variant: at most
                    // N).
  kFixedWindow,     // One count per window; up to 2N across an edge.
  kParallel,        // Calls in flight at once.
};

// "token_bucket", "sliding_window", "sliding_counter", "fixed_window", "parallel".
std::string_view AlgorithmName(Algorithm algorithm);

inline constexpr int64_t kMaxUnits = int64_t{1}
                                     << 53;  // The largest rate, burst or cost; exact in JSON.

struct Rate {
  int64_t units = 0;  // N: 0 denies every call that costs something.
  std::chrono::nanoseconds period = std::chrono::seconds(1);  // P > 0
  int64_t burst = 0;  // B: capacity; N for all but the token bucket.

  friend bool operator==(const Rate&, const Rate&) = default;
};

}  // namespace weir
