// Durations as text: Go's spelling, which AI APIs use in x-ratelimit-reset-* ("6m0s", "12ms",
// "2m59.56s") and configurations use for timeouts ("20ms", "1h30m", "7d").
//
//   wire::ParseDuration("1h30m")             // 90 min
//   wire::FormatDuration(179'560ms)          // "2m59.56s"
//
// Thread safety: pure functions.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "weir/result.h"
#include "wire/buffer.h"

namespace weir::wire {

// One or more numbers with a unit each (ns, us, µs, ms, s, m, h, d; a day is 24 h), or "0".
// Decimals are allowed and must come to whole nanoseconds. Each unit at most once, larger ones
// first. No sign, no white space. At most 2^63 - 1 ns. Errors: kInvalidArgument, with what is wrong
// and what is meant.
Result<std::chrono::nanoseconds> ParseDuration(std::string_view text);

// As Go's Duration.String: "0s", "1.5µs", "12ms", "2m59.56s", "100h0m0s".
void AppendDuration(Buffer& out, std::chrono::nanoseconds duration);
std::string FormatDuration(std::chrono::nanoseconds duration);

}  // namespace weir::wire
