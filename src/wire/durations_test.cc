#include "wire/durations.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace weir::wire {
namespace {

using namespace std::chrono_literals;

TEST(Durations, AreReadExactly) {
  EXPECT_EQ(ParseDuration("20ms").value(), 20ms);
  EXPECT_EQ(ParseDuration("1h30m").value(), 90min);
  EXPECT_EQ(ParseDuration("7d").value(), 168h);
  EXPECT_EQ(ParseDuration("0").value(), 0ns);
  EXPECT_EQ(ParseDuration("0s").value(), 0ns);
  EXPECT_EQ(ParseDuration("1.5s").value(), 1500ms);
  EXPECT_EQ(ParseDuration("2m59.56s").value(), 179'560ms);
  EXPECT_EQ(ParseDuration("1.000000001s").value(), 1'000'000'001ns);
  EXPECT_EQ(ParseDuration("1.5000s").value(), 1500ms);
  EXPECT_EQ(ParseDuration("3us").value(), 3us);
  EXPECT_EQ(ParseDuration("3\xC2\xB5s").value(), 3us);
  EXPECT_EQ(ParseDuration("3\xCE\xBCs").value(), 3us);
  EXPECT_EQ(ParseDuration("9223372036854775807ns").value(), std::chrono::nanoseconds::max());
}

TEST(Durations, AreRefusedWithAReason) {
  const auto why = [](std::string_view text) {
    const auto result = ParseDuration(text);
    return result ? "" : result.error().message;
  };
  const std::string kMeant = "; a duration like 20ms, 1.5s, 1h30m or 7d is meant";
  EXPECT_EQ(why(""), "\"\": no duration" + kMeant);
  EXPECT_EQ(why("20"), "\"20\": a unit is missing" + kMeant);
  EXPECT_EQ(why("ms"), "\"ms\": a number is missing" + kMeant);
  EXPECT_EQ(why("-1s"), "\"-1s\": a number is missing" + kMeant);
  EXPECT_EQ(why("1 s"), "\"1 s\": an unknown unit" + kMeant);
  EXPECT_EQ(why("1w"), "\"1w\": an unknown unit" + kMeant);
  EXPECT_EQ(why("1.s"), "\"1.s\": digits are missing after the point" + kMeant);
  EXPECT_EQ(why("1m1h"), "\"1m1h\": larger units come first, each once" + kMeant);
  EXPECT_EQ(why("1s1s"), "\"1s1s\": larger units come first, each once" + kMeant);
  EXPECT_EQ(why("0.5ns"), "\"0.5ns\": finer than a nanosecond" + kMeant);
  EXPECT_EQ(why("9223372036854775808ns"), "\"9223372036854775808ns\": too long" + kMeant);
  EXPECT_EQ(why("106752d"), "\"106752d\": too long" + kMeant);
  EXPECT_EQ(ParseDuration("1x").error().code, ErrorCode::kInvalidArgument);
}

TEST(Durations, AreWrittenAsGoWritesThem) {
  EXPECT_EQ(FormatDuration(0ns), "0s");
  EXPECT_EQ(FormatDuration(1ns), "1ns");
  EXPECT_EQ(FormatDuration(1500ns), "1.5\xC2\xB5s");
  EXPECT_EQ(FormatDuration(12ms), "12ms");
  EXPECT_EQ(FormatDuration(1s), "1s");
  EXPECT_EQ(FormatDuration(6min), "6m0s");
  EXPECT_EQ(FormatDuration(179'560ms), "2m59.56s");
  EXPECT_EQ(FormatDuration(100h), "100h0m0s");
  EXPECT_EQ(FormatDuration(-1500ms), "-1.5s");
  EXPECT_EQ(FormatDuration(std::chrono::nanoseconds::max()), "2562047h47m16.854775807s");
  EXPECT_EQ(FormatDuration(std::chrono::nanoseconds::min()), "-2562047h47m16.854775808s");
}

TEST(Durations, SurviveARoundTrip) {
  const bool ok = rc::check("written and read again", [] {
    const auto ns = std::chrono::nanoseconds(*rc::gen::nonNegative<int64_t>());
    RC_ASSERT(ParseDuration(FormatDuration(ns)).value() == ns);
  });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace weir::wire
