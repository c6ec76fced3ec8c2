// The RateLimit and RateLimit-Policy field values (draft-ietf-httpapi-ratelimit-headers), which are
// Structured Field lists (RFC 9651): "burst";q=20;w=1, "daily";q=100000;w=86400
//
//   wire::AppendPolicyItem(out, /*first=*/true, {.name = "burst", .quota = 20, .window_seconds =
//   1}); wire::AppendRateLimitItem(out, /*first=*/true, {.name = "burst", .remaining = 0,
//   .reset_seconds = 3});
//
// Integers are cut to the 15 digits that Structured Fields allow. No allocation once the buffer has
// grown. Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "wire/buffer.h"

namespace weir::wire {

inline constexpr int64_t kStructuredIntegerMax = 999'999'999'999'999;

// "text" with \ and " escaped. Only printable ASCII can stand in an sf-string: other bytes become
// '?'.
void AppendStructuredString(Buffer& out, std::string_view text);
// At most 15 digits; beyond, the nearest that fits.
void AppendStructuredInteger(Buffer& out, int64_t value);

struct PolicyItem {
  std::string_view name;
  int64_t quota = 0;
  int64_t window_seconds = 0;
  std::string_view unit;           // Written as qu; leave empty for requests.
  std::string_view partition_key;  // Written as pk, a byte sequence given in base64; empty: none.
};
void AppendPolicyItem(Buffer& out, bool first, const PolicyItem& item);

struct RateLimitItem {
  std::string_view name;
  int64_t remaining = 0;
  int64_t reset_seconds = -1;  // Below 0: no t.
  std::string_view partition_key;
};
void AppendRateLimitItem(Buffer& out, bool first, const RateLimitItem& item);

}  // namespace weir::wire
