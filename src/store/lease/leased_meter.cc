#include "store/lease/leased_meter.h"

namespace weir::store::lease {
namespace {

constexpr int64_t kUsPerSecond = 1'000'000;
constexpr int64_t kNsPerSecond = 1'000'000'000;

// REQUIRES: the window follows a calendar.
WindowBounds CalendarAt(const core::FixedWindow& window, int64_t wall_ns) {
  const core::Now now{.wall_ns = wall_ns};
  const core::FixedWindowState used = window.FromUsed(1, now, 0);
  const int64_t end_ns = wall_ns + window.Test(used, 0, now, 0).reset_after_ns;
  return {used.index * kUsPerSecond, end_ns / 1000};
}

}  // namespace

Result<const LeasedMeter*> LeasedMeters::Intern(const core::Meter& meter, Unit unit,
                                                std::string_view per, LeaseKind kind) {
  const Result<LeaseTerms> terms =
      LeaseTerms::Compile({.spec = meter.spec(), .unit = unit, .per = per}, kind);
  if (!terms) return std::unexpected(terms.error());
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const LeasedMeter>& leased = meters_[{&meter, terms->fence}];
  if (!leased) leased = std::make_unique<const LeasedMeter>(LeasedMeter{&meter, *terms});
  return leased.get();
}

Windows WindowsOf(const LeasedMeter& leased, Key128 key, int64_t wall_ns, bool earlier) {
  Windows windows{.offset_us = OffsetOf(leased.terms, key)};
  if (!leased.terms.calendar) return windows;
  const core::FixedWindow& window = leased.meter->window();
  const WindowBounds here = CalendarAt(window, wall_ns);
  const int64_t other_ns = earlier ? (here.start_us / kUsPerSecond - 1) * kNsPerSecond
                                   : here.end_us / kUsPerSecond * kNsPerSecond;
  const WindowBounds other = CalendarAt(window, other_ns);
  windows.calendar = {earlier ? other : here, earlier ? here : other};
  return windows;
}

}  // namespace weir::store::lease
