#include "policy/rate_text.h"

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

std::string RateError(std::string_view text) {
  const auto rate = ParseRate(text);
  return rate ? "no error" : rate.error().message;
}

TEST(ParseRate, ReadsTheSpellingsOfTheContract) {
  struct Row {
    std::string_view text;
    int64_t units;
    std::optional<Unit> unit;
    nanoseconds period;
    PeriodName name;
  };
  const Row rows[] = {
      {"300/min", 300, std::nullopt, minutes(1), PeriodName::kMinute},
      {"300 / min", 300, std::nullopt, minutes(1), PeriodName::kMinute},
      {"100000 tokens/min", 100000, Unit::kTokens, minutes(1), PeriodName::kMinute},
      {"50 usd/month", 50'000'000, Unit::kUsd, hours(30 * 24), PeriodName::kMonth},
      {"0.000001 usd/day", 1, Unit::kUsd, hours(24), PeriodName::kDay},
      {"7/60s", 7, std::nullopt, seconds(60), PeriodName::kNone},
      {"1/1h30m", 1, std::nullopt, minutes(90), PeriodName::kNone},
      {"0/min", 0, std::nullopt, minutes(1), PeriodName::kMinute},
      {"5/s", 5, std::nullopt, seconds(1), PeriodName::kSecond},
      {"5/week", 5, std::nullopt, hours(7 * 24), PeriodName::kWeek},
      {"5 requests/year", 5, Unit::kRequests, hours(365 * 24), PeriodName::kYear},
      {"1 bytes/hour", 1, Unit::kBytes, hours(1), PeriodName::kHour},
      {"9007199254740992/s", kMaxUnits, std::nullopt, seconds(1), PeriodName::kSecond},
  };
  for (const Row& row : rows) {
    const auto rate = ParseRate(row.text);
    ASSERT_TRUE(rate) << row.text << ": " << rate.error().message;
    EXPECT_EQ(rate->units, row.units) << row.text;
    EXPECT_EQ(rate->unit, row.unit) << row.text;
    EXPECT_EQ(rate->period, row.period) << row.text;
    EXPECT_EQ(rate->period_name, row.name) << row.text;
    EXPECT_FALSE(rate->unlimited) << row.text;
  }
  EXPECT_TRUE(ParseRate("unlimited")->unlimited);
}

TEST(ParseRate, SaysWhatIsWrongAndWhatIsMeant) {
  EXPECT_EQ(RateError("300"),
            "rate `300` has no period; write it like `300/min`, `100000 tokens/min` or "
            "`unlimited`");
  EXPECT_EQ(RateError("300/"), "rate `300/` has no period; write it like `300/min` or `7/60s`");
  EXPECT_EQ(RateError("300/m"),
            "rate `300/m`: `m` could be a minute or a month; write `min` or `month`");
  EXPECT_EQ(RateError("300/mont"),
            "rate `300/mont`: `mont` is no period; periods are s, min, hour, day, week, month, "
            "year, or a duration such as `90s`; did you mean `month`?");
  EXPECT_EQ(RateError("0.5/s"),
            "rate `0.5/s`: `0.5` is no whole number; lengthen the period instead, as in `1/2s` "
            "for half a call a second");
  EXPECT_EQ(RateError("-5/s"),
            "rate `-5/s`: the amount must be a whole number of at least 0, not `-5`");
  EXPECT_EQ(RateError("5 tokns/s"),
            "rate `5 tokns/s`: `tokns` is no unit; units are requests, tokens, input_tokens, "
            "output_tokens, usd and bytes; did you mean `tokens`?");
  EXPECT_EQ(RateError("5 parallel/s"),
            "rate `5 parallel/s`: calls in flight have no period; write `parallel: 10`");
  EXPECT_EQ(RateError("5/0s"), "rate `5/0s`: the period must be longer than 0");
  EXPECT_EQ(RateError("1.0000001 usd/s"),
            "rate `1.0000001 usd/s`: usd must be a number with at most six decimals, such as "
            "`0.25`, not `1.0000001`");
}

TEST(ParseRate, Case27_NothingIsCutTo32Bits) {
  EXPECT_EQ(ParseRate("30000000000/month")->units, 30'000'000'000);
  EXPECT_EQ(RateError("9007199254740993/month"),
            "rate `9007199254740993/month`: the amount `9007199254740993` is beyond "
            "9007199254740992 (2^53), up to which numbers are exact");
  EXPECT_EQ(RateError("99999999999999999999999/month"),
            "rate `99999999999999999999999/month`: the amount `99999999999999999999999` is beyond "
            "9007199254740992 (2^53), up to which numbers are exact");
}

TEST(ParseDuration, ReadsPartsLargestFirst) {
  EXPECT_EQ(*ParseDuration("1h30m"), minutes(90));
  EXPECT_EQ(*ParseDuration("20ms"), milliseconds(20));
  EXPECT_EQ(*ParseDuration("0s"), nanoseconds(0));
  EXPECT_EQ(*ParseDuration("2d3h4m5s6ms7us8ns"),
            hours(51) + minutes(4) + seconds(5) + nanoseconds(6'007'008));
  EXPECT_EQ(*ParseDuration("5min"), minutes(5));
  EXPECT_EQ(ParseDuration("5").error().message,
            "duration `5`: a unit is missing; write it like `5s`");
  EXPECT_EQ(ParseDuration("30m1h").error().message,
            "duration `30m1h`: the largest unit comes first, each once");
  EXPECT_EQ(ParseDuration("1.5s").error().message,
            "duration `1.5s`: write whole numbers with d, h, m, s, ms, us or ns, as in `1h30m` or "
            "`250ms`");
  EXPECT_EQ(ParseDuration("999999999999d").error().message,
            "duration `999999999999d`: at most 146 years can be told apart");
  EXPECT_FALSE(ParseDuration(""));
  EXPECT_FALSE(ParseDuration("-1s"));
}

TEST(DurationText, IsReadBackAsTheSame) {
  for (int64_t ns : {int64_t{0}, int64_t{1}, int64_t{90'000'000'000}, int64_t{5'400'000'000'000},
                     int64_t{86'400'000'000'000}, int64_t{123'456'789'012'345}}) {
    EXPECT_EQ(ParseDuration(DurationText(nanoseconds(ns)))->count(), ns);
  }
  EXPECT_EQ(DurationText(minutes(90)), "1h30m");
  EXPECT_EQ(DurationText(nanoseconds(0)), "0s");
}

TEST(ParseSize, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(*ParseSize("64KiB"), 65536);
  EXPECT_EQ(*ParseSize("32 MiB"), 32 << 20);
  EXPECT_EQ(*ParseSize("1kB"), 1000);
  EXPECT_EQ(*ParseSize("17"), 17);
  EXPECT_FALSE(ParseSize("64K"));
  EXPECT_FALSE(ParseSize("99999999TiB"));
  EXPECT_FALSE(ParseSize(""));
}

TEST(UsdText, DropsZerosOnly) {
  EXPECT_EQ(UsdText(50'000'000), "50");
  EXPECT_EQ(UsdText(250'000), "0.25");
  EXPECT_EQ(UsdText(1), "0.000001");
  EXPECT_EQ(*ParseUsd("0.25"), 250'000);
  EXPECT_FALSE(ParseUsd("."));
  EXPECT_FALSE(ParseUsd("1."));
  EXPECT_EQ(*ParseUsd("9007199254.740992"), kMaxUnits);
  EXPECT_FALSE(ParseUsd("9007199254.740993"));
}

}  // namespace
}  // namespace weir::policy
