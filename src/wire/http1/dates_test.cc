#include "wire/http1/dates.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>

namespace weir::http1 {
namespace {

TEST(Dates, AreExact) {
  EXPECT_EQ(FormatHttpDate(0).view(), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(FormatHttpDate(1'796'068'803).view(), "Mon, 30 Nov 2026 20:00:03 GMT");
  EXPECT_EQ(FormatHttpDate(951'782'400).view(), "Tue, 29 Feb 2000 00:00:00 GMT");
  EXPECT_EQ(FormatHttpDate(-5).view(), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(FormatHttpDate(INT64_MAX).view(), "Fri, 31 Dec 9999 23:59:59 GMT");
  EXPECT_EQ(FormatRfc3339(1'796'068'803).view(), "2026-11-30T20:00:03Z");
  EXPECT_EQ(FormatRfc3339Millis(1'796'068'803'045).view(), "2026-11-30T20:00:03.045Z");
}

TEST(Dates, AgreeWithTheCLibrary) {
  for (int64_t seconds = 0; seconds < 8'000'000'000; seconds += 9'876'543) {
    const time_t time = seconds;
    struct tm utc;
    gmtime_r(&time, &utc);
    char expected[64];
    ASSERT_GT(strftime(expected, sizeof expected, "%a, %d %b %Y %H:%M:%S GMT", &utc), 0u);
    ASSERT_EQ(FormatHttpDate(seconds).view(), expected);
  }
}

}  // namespace
}  // namespace weir::http1
