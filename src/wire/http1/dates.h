// Dates as HTTP and JSON write them, from seconds since 1970-01-01T00:00:00Z. Pure arithmetic: no
// locale, no time zone.
//
//   http1::HttpDate date = http1::FormatHttpDate(1796068803);   // "Mon, 30 Nov 2026 20:00:03 GMT"
//   answer.Date(date.view());
//   http1::Rfc3339 text = http1::FormatRfc3339(1796068803);     // "2026-11-30T20:00:03Z"
//
// Seconds outside the years 1970 to 9999 are moved to the nearer end. No allocation. Thread safety:
// pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace weir::http1 {

struct HttpDate {
  std::array<char, 29> text;
  std::string_view view() const { return {text.data(), text.size()}; }
};
// IMF-fixdate, RFC 9110, 5.6.7.
HttpDate FormatHttpDate(int64_t unix_seconds);

struct Rfc3339 {
  std::array<char, 24> text;
  uint8_t size;
  std::string_view view() const { return {text.data(), size}; }
};
// In UTC with a Z.
Rfc3339 FormatRfc3339(int64_t unix_seconds);
// With three decimals; milliseconds: since 1970.
Rfc3339 FormatRfc3339Millis(int64_t unix_milliseconds);

}  // namespace weir::http1
