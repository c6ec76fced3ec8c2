// The grammar of rates, durations and sizes in the configuration and in ad-hoc rules.
//
//   auto rate = policy::ParseRate("100000 tokens/min");    // units 100000, kTokens, one minute
//   auto money = policy::ParseRate("0.25 usd/day");        // 250000 micro-dollars
//   auto length = policy::ParseDuration("1h30m");
//   auto bytes = policy::ParseSize("64KiB");
//
// Pure functions, exact integers; errors say what is wrong and what is meant.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/limit.h"
#include "weir/result.h"

namespace weir::policy {

// The calendar unit that a period was written in; the calendar windows need it. kNone for a bare
// duration (`7/60s`).
enum class PeriodName : uint8_t { kNone, kSecond, kMinute, kHour, kDay, kWeek, kMonth, kYear };

// "s", "min", "hour", "day", "week", "month", "year"
std::string_view ShortName(PeriodName name);

struct RateText {
  bool unlimited = false;    // The word `unlimited`; nothing else is set then.
  int64_t units = 0;         // 0 .. kMaxUnits; micro-dollars for usd.
  std::optional<Unit> unit;  // As written; nothing when left out (requests).
  std::chrono::nanoseconds period{
      0};  // A month is 30 days, a year 365, unless aligned to the calendar.
  PeriodName period_name = PeriodName::kNone;
};

// N [unit]/PERIOD, or `unlimited`. N is a whole number, digits only; for usd up to six decimals.
// PERIOD is s, min, hour, day, week, month, year (with the usual spellings: sec, minute, h, d), or
// a duration.
Result<RateText> ParseRate(std::string_view text);

// One or more of NUMBER UNIT, units ns, us, ms, s, m (or min), h, d, largest first: `1h30m`,
// `20ms`, `0s`. Whole numbers.
Result<std::chrono::nanoseconds> ParseDuration(std::string_view text);

// NUMBER with B, KiB, MiB, GiB or TiB (1024s), kB, MB, GB, TB (1000s), or none (bytes).
Result<int64_t> ParseSize(std::string_view text);

// Digits only, 0 .. kMaxUnits; `what` names the field in errors.
Result<int64_t> ParseWholeNumber(std::string_view text, std::string_view what);

// Up to six decimals, 0 .. kMaxUnits micro-dollars: "0.25" is 250000.
Result<int64_t> ParseUsd(std::string_view text);

// Shortest exact form: "1h30m", "20ms", "0s".
std::string DurationText(std::chrono::nanoseconds duration);

// "50", "0.25" for micro-dollars.
std::string UsdText(int64_t micro_usd);

}  // namespace weir::policy
