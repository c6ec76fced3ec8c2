#include "store/lease/leased_meter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

namespace weir::store::lease {
namespace {

constexpr int64_t kNoonNs = 1'796'126'400'000'000'000;  // 2026-12-01 12:00 UTC.
constexpr int64_t kDayUs = 86'400'000'000;

std::unique_ptr<const core::Meter> MeterOf(int64_t units, Algorithm algorithm,
                                           core::Alignment alignment = core::Alignment::kNone) {
  core::MeterSpec spec{.algorithm = algorithm, .alignment = alignment};
  spec.rate = {.units = units, .period = std::chrono::hours(24), .burst = units};
  return core::Meter::Compile(spec).value();
}

TEST(LeasedMeters, OneOfEachDefinition) {
  const auto meter = MeterOf(1000, Algorithm::kTokenBucket);
  const auto other = MeterOf(2000, Algorithm::kTokenBucket);
  LeasedMeters leased;
  const auto intern = [&](const core::Meter& of, std::string_view per, LeaseKind kind) {
    return leased.Intern(of, Unit::kRequests, per, kind).value();
  };
  const LeasedMeter* const first = intern(*meter, "client", LeaseKind::kReserved);
  EXPECT_EQ(first->meter, meter.get());
  EXPECT_EQ(first->terms.burst, 1000);
  EXPECT_EQ(intern(*meter, "client", LeaseKind::kReserved), first);
  EXPECT_NE(intern(*meter, "ip", LeaseKind::kReserved), first);
  EXPECT_NE(intern(*meter, "client", LeaseKind::kFast), first);
  EXPECT_NE(intern(*other, "client", LeaseKind::kReserved), first);
  const auto log = MeterOf(10, Algorithm::kSlidingWindow);
  EXPECT_FALSE(leased.Intern(*log, Unit::kRequests, "", LeaseKind::kReserved));
}

TEST(LeasedMeters, WindowsAreShiftedByTheKey) {
  const auto meter = MeterOf(1000, Algorithm::kFixedWindow);
  LeasedMeters leased;
  const LeasedMeter& window =
      **leased.Intern(*meter, Unit::kRequests, "client", LeaseKind::kReserved);
  const Key128 half{.hi = 1, .lo = uint64_t{1} << 63};
  EXPECT_EQ(WindowsOf(window, half, kNoonNs, false).offset_us, kDayUs / 2);
}

TEST(LeasedMeters, CalendarWindowsAreTheOneAtHandAndANeighbour) {
  const auto meter = MeterOf(1000, Algorithm::kFixedWindow, core::Alignment::kDay);
  LeasedMeters leased;
  const LeasedMeter& day = **leased.Intern(*meter, Unit::kRequests, "client", LeaseKind::kReserved);
  const int64_t midnight_us = kNoonNs / 1000 - kDayUs / 2;
  const WindowBounds today{midnight_us, midnight_us + kDayUs};
  const WindowBounds tomorrow{midnight_us + kDayUs, midnight_us + 2 * kDayUs};
  const WindowBounds yesterday{midnight_us - kDayUs, midnight_us};
  const Windows later = WindowsOf(day, {}, kNoonNs, false);
  EXPECT_EQ(later.calendar[0], today);
  EXPECT_EQ(later.calendar[1], tomorrow);
  const Windows earlier = WindowsOf(day, {}, kNoonNs, true);
  EXPECT_EQ(earlier.calendar[0], yesterday);
  EXPECT_EQ(earlier.calendar[1], today);
}

}  // namespace
}  // namespace weir::store::lease
