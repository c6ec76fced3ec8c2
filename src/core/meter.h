// A Meter is a limit's rate, compiled: checked once, so that a decision multiplies without a thought of overflow.
//
//   Result<std::unique_ptr<const Meter>> meter = Meter::Compile(
//       {.algorithm = Algorithm::kTokenBucket, .rate = {.units = 300, .period = 1min, .burst = 50}});
//   if (!meter) return std::unexpected(meter.error());   // "rate.period: must be ..."
//
// Thread safety: immutable; every method may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/now.h"
#include "core/step.h"
#include "weir/limit.h"
#include "weir/result.h"

namespace weir::core {

// Fixed windows that follow the calendar of a time zone: real month lengths, days of 23 to 25 hours. Weeks start on
// Monday.
enum class Alignment : uint8_t { kNone, kMinute, kHour, kDay, kWeek, kMonth, kYear };

struct MeterSpec {
  Algorithm algorithm = Algorithm::kTokenBucket;
  // units 0 denies every call that costs something. burst: the token bucket's capacity, at least 1 (REQUIRED there);
  // elsewhere units or 0. parallel: units is the number of slots, and the period has no meaning.
  Rate rate;
  bool strict = false;                     // sliding_counter only: at most N in every true window.
  int buckets = 10;                        // sliding_counter with strict only: 2 to 64.
  Alignment alignment = Alignment::kNone;  // fixed_window only: one window per calendar period; rate.period must be
                                           // the nominal length (day 24 h, month 30 d, year 365 d).
  std::string timezone = "UTC";            // IANA name; read with an alignment only.

  friend bool operator==(const MeterSpec&, const MeterSpec&) = default;
};

}  // namespace weir::core
