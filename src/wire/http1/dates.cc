#include "wire/http1/dates.h"

#include <algorithm>
#include <cstring>

namespace weir::http1 {
namespace {

constexpr int64_t kSecondsPerDay = 86'400;
constexpr int64_t kLastSecond = 253'402'300'799;  // 9999-12-31T23:59:59Z

struct Moment {
  int year, month, day, weekday, hour, minute, second;  // month 1..12, weekday 0 is Sunday
};

// Days to a civil date by counting 400-year eras that begin on 1 March (Howard Hinnant,
// "chrono-Compatible Low-Level Date Algorithms").
Moment Split(int64_t unix_seconds) {
  const int64_t days = unix_seconds / kSecondsPerDay;
  const int of_day = static_cast<int>(unix_seconds % kSecondsPerDay);
  const int64_t shifted = days + 719'468;
  const int64_t era = shifted / 146'097;
  const int day_of_era = static_cast<int>(shifted - era * 146'097);
  const int year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const int day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int month_from_march = (5 * day_of_year + 2) / 153;
  const int month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  return {.year = static_cast<int>(era) * 400 + year_of_era + (month <= 2 ? 1 : 0),
          .month = month,
          .day = day_of_year - (153 * month_from_march + 2) / 5 + 1,
          .weekday = static_cast<int>((days + 4) % 7),
          .hour = of_day / 3600,
          .minute = of_day / 60 % 60,
          .second = of_day % 60};
}

char* PutDigits(char* to, int value, int digits) {
  for (int i = digits - 1; i >= 0; --i) {
    to[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  return to + digits;
}

char* PutText(char* to, std::string_view text) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

char* PutDateAndTime(char* to, const Moment& moment) {
  to = PutDigits(to, moment.year, 4);
  *to++ = '-';
  to = PutDigits(to, moment.month, 2);
  *to++ = '-';
  to = PutDigits(to, moment.day, 2);
  *to++ = 'T';
  to = PutDigits(to, moment.hour, 2);
  *to++ = ':';
  to = PutDigits(to, moment.minute, 2);
  *to++ = ':';
  return PutDigits(to, moment.second, 2);
}

}  // namespace

HttpDate FormatHttpDate(int64_t unix_seconds) {
  static constexpr char kDays[] = "SunMonTueWedThuFriSat";
  static constexpr char kMonths[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const Moment moment = Split(std::clamp<int64_t>(unix_seconds, 0, kLastSecond));
  HttpDate date;
  char* to = date.text.data();
  to = PutText(to, std::string_view(kDays + 3 * moment.weekday, 3));
  to = PutText(to, ", ");
  to = PutDigits(to, moment.day, 2);
  *to++ = ' ';
  to = PutText(to, std::string_view(kMonths + 3 * (moment.month - 1), 3));
  *to++ = ' ';
  to = PutDigits(to, moment.year, 4);
  *to++ = ' ';
  to = PutDigits(to, moment.hour, 2);
  *to++ = ':';
  to = PutDigits(to, moment.minute, 2);
  *to++ = ':';
  to = PutDigits(to, moment.second, 2);
  PutText(to, " GMT");
  return date;
}

Rfc3339 FormatRfc3339(int64_t unix_seconds) {
  Rfc3339 out;
  char* to = out.text.data();
  to = PutDateAndTime(to, Split(std::clamp<int64_t>(unix_seconds, 0, kLastSecond)));
  *to++ = 'Z';
  out.size = static_cast<uint8_t>(to - out.text.data());
  return out;
}

Rfc3339 FormatRfc3339Millis(int64_t unix_milliseconds) {
  const int64_t milliseconds = std::clamp<int64_t>(unix_milliseconds, 0, kLastSecond * 1000 + 999);
  Rfc3339 out;
  char* to = out.text.data();
  to = PutDateAndTime(to, Split(milliseconds / 1000));
  *to++ = '.';
  to = PutDigits(to, static_cast<int>(milliseconds % 1000), 3);
  *to++ = 'Z';
  out.size = static_cast<uint8_t>(to - out.text.data());
  return out;
}

}  // namespace weir::http1
