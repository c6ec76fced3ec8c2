// The one judge of UTF-8 for the JSON readers and the writer (Unicode 15, table 3-7: no overlong
// forms, no surrogates, nothing above U+10FFFF).
//
//   size_t bytes = json::ValidUtf8Length(at, end);   // 0: not valid
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::json {

// The length of the valid sequence at `at` (1 to 4), or 0. at < end.
inline size_t ValidUtf8Length(const char* at, const char* end) {
  const auto byte = [at](size_t i) { return static_cast<uint8_t>(at[i]); };
  const auto follows = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xBF) {
    return static_cast<size_t>(end - at) > i && byte(i) >= low && byte(i) <= high;
  };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return follows(1) ? 2 : 0;
  if (lead < 0xF0) {
    const uint8_t low = lead == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = lead == 0xED ? 0x9F : 0xBF;
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (lead < 0xF5) {
    const uint8_t low = lead == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = lead == 0xF4 ? 0x8F : 0xBF;
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace weir::json
