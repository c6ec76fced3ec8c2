#include "core/calendar.h"

#include <date/date.h>
#include <date/tz.h>

#include <algorithm>
#include <exception>

namespace weir::core {
namespace {

using date::local_days;
using std::chrono::seconds;

// The first day of the period that holds `day`, and of the one after it.
local_days FirstDay(Alignment alignment, local_days day) {
  const date::year_month_day ymd(day);
  switch (alignment) {
    case Alignment::kWeek:
      return day - (date::weekday(day) - date::Monday);
    case Alignment::kMonth:
      return local_days(ymd.year() / ymd.month() / 1);
    case Alignment::kYear:
      return local_days(ymd.year() / 1 / 1);
    default:
      return day;
  }
}

local_days NextFirstDay(Alignment alignment, local_days first) {
  const date::year_month_day ymd(first);
  switch (alignment) {
    case Alignment::kWeek:
      return first + date::days(7);
    case Alignment::kMonth:
      return local_days(ymd.year() / ymd.month() / 1 + date::months(1));
    case Alignment::kYear:
      return local_days((ymd.year() + date::years(1)) / 1 / 1);
    default:
      return first + date::days(1);
  }
}

// Where a clock change swallows or repeats midnight, the day starts at the earliest instant that is
// not before it.
int64_t StartSec(const date::time_zone* zone, local_days day) {
  return zone->to_sys(date::local_seconds(day), date::choose::earliest).time_since_epoch().count();
}

}  // namespace

Result<std::unique_ptr<CalendarWindows>> CalendarWindows::Make(Alignment alignment,
                                                               const std::string& timezone) {
  try {
    const date::time_zone* zone = date::locate_zone(timezone);
    std::unique_ptr<CalendarWindows> windows(new CalendarWindows(alignment, zone));
    windows->At(0);  // Reads the zone's transitions now rather than at the first decision.
    return windows;
  } catch (const std::exception&) {
    return InvalidArgument("timezone: \"" + timezone +
                           "\" is not in this machine's zone database; use an IANA name such as "
                           "Europe/Berlin");
  }
}

CalendarWindows::Window CalendarWindows::Compute(int64_t unix_sec) const {
  const date::sys_seconds instant{seconds(unix_sec)};
  Window window{};
  if (alignment_ == Alignment::kMinute || alignment_ == Alignment::kHour) {
    const int64_t length = alignment_ == Alignment::kMinute ? 60 : 3600;
    const date::sys_info info = zone_->get_info(instant);
    const int64_t local = unix_sec + info.offset.count();
    const int64_t start = unix_sec - (local % length + length) % length;
    // A change of the offset by a part of the length cuts the window there.
    window = {std::max(start, info.begin.time_since_epoch().count()),
              std::min(start + length, info.end.time_since_epoch().count())};
  } else {
    local_days first = FirstDay(alignment_, date::floor<date::days>(zone_->to_local(instant)));
    local_days next = NextFirstDay(alignment_, first);
    // Where the clock goes back over midnight, the old day's last hour comes again in the new day.
    while (StartSec(zone_, next) <= unix_sec) {
      first = next;
      next = NextFirstDay(alignment_, first);
    }
    window = {StartSec(zone_, first), StartSec(zone_, next)};
  }
  if (window.start_sec >= 0) {
    cached_.store(static_cast<uint64_t>(window.start_sec) << kLengthBits |
                      static_cast<uint64_t>(window.end_sec - window.start_sec),
                  std::memory_order_relaxed);
  }
  return window;
}

}  // namespace weir::core
