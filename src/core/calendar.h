// Calendar windows of a time zone: which day, week, month ... an instant lies in, and when that
// ends.
//
//   Result<std::unique_ptr<CalendarWindows>> month = CalendarWindows::Make(Alignment::kMonth,
//   "Europe/Berlin"); CalendarWindows::Window window = (*month)->At(now.wall_ns / 1'000'000'000);
//
// Thread safety: At may be called from any thread; it keeps the current window in one atomic word,
// so the calendar is computed once per window and not once per decision.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "weir/result.h"

namespace date {
class time_zone;
}

namespace weir::core {

// Real month lengths, days of 23 to 25 hours. Weeks start on Monday.
enum class Alignment : uint8_t { kNone, kMinute, kHour, kDay, kWeek, kMonth, kYear };

class CalendarWindows {
 public:
  // Seconds of Unix time, [start, end). Windows follow each other without gap or overlap.
  struct Window {
    int64_t start_sec;
    int64_t end_sec;
  };

  // kInvalidArgument when there is no such zone. Reads the zone's file once.
  static Result<std::unique_ptr<CalendarWindows>> Make(Alignment alignment,
                                                       const std::string& timezone);

  // REQUIRES: unix_sec in [0, 2^33), that is before the year 2242.
  Window At(int64_t unix_sec) const {
    const uint64_t cached = cached_.load(std::memory_order_relaxed);  // One word: never torn.
    const int64_t start = static_cast<int64_t>(cached >> kLengthBits);
    const int64_t length = static_cast<int64_t>(cached & ((uint64_t{1} << kLengthBits) - 1));
    if (unix_sec - start >= 0 && unix_sec - start < length) return {start, start + length};
    return Compute(unix_sec);
  }

 private:
  static constexpr int kLengthBits = 25;  // 33.5 million seconds: a year fits.

  CalendarWindows(Alignment alignment, const date::time_zone* zone)
      : alignment_(alignment), zone_(zone) {}
  Window Compute(int64_t unix_sec) const;

  Alignment alignment_;
  const date::time_zone* zone_;  // Owned by the zone database, for the life of the process.
  mutable std::atomic<uint64_t> cached_{0};
};

}  // namespace weir::core
