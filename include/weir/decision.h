// The answer to one call: allowed or not, and what each limit that applied says.
//
// Thread safety: plain values. Views point into the policy that decided; a Decision keeps that
// policy alive only as long as the limiter does, so copy the names out if they must outlive a
// reload.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/limit.h"

namespace weir {

// Who answered.
enum class Source : uint8_t { kMemory, kRedis, kLease, kDenyCache, kFallback };

// "memory", "redis", "lease", "deny_cache", "fallback".
std::string_view SourceName(Source source);

// What one limit says of one call.
struct LimitResult {
  std::string_view name;  // As in the policy.
  Unit unit = Unit::kRequests;
  bool allowed = true;
  bool shadow = false;                      // Evaluated and counted, never denying.
  int64_t quota = 0;                        // The capacity B, in units.
  int64_t remaining = 0;                    // Units left after this call; never below 0.
  std::chrono::nanoseconds reset_after{0};  // Until the full quota is there again.
  // Until this same call would pass, 0 when it was allowed; nothing when waiting never helps.
  std::optional<std::chrono::nanoseconds> retry_after = std::chrono::nanoseconds(0);
};

}  // namespace weir
