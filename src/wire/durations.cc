#include "wire/durations.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

namespace weir::wire {
namespace {

using std::chrono::nanoseconds;
__extension__ typedef __int128 Wide;

struct TimeUnit {
  std::string_view name;
  int64_t ns;
};
// The spellings of micro are U+00B5 and U+03BC.
constexpr std::array<TimeUnit, 10> kUnits{{{"ns", 1},
                                           {"us", 1'000},
                                           {"\xC2\xB5s", 1'000},
                                           {"\xCE\xBCs", 1'000},
                                           {"ms", 1'000'000},
                                           {"s", 1'000'000'000},
                                           {"m", 60'000'000'000},
                                           {"h", 3'600'000'000'000},
                                           {"d", 86'400'000'000'000},
                                           {"", 0}}};
constexpr std::string_view kMeant = "a duration like 20ms, 1.5s, 1h30m or 7d is meant";

std::unexpected<Error> Bad(std::string_view text, std::string_view why) {
  constexpr size_t kShown = 40;
  std::string message = "\"";
  message.append(text.substr(0, kShown));
  if (text.size() > kShown) message.append("...");
  message.append("\": ").append(why).append("; ").append(kMeant);
  return InvalidArgument(std::move(message));
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Appends whole.fraction without trailing zeros, for value / 10^decimals.
char* PutDecimal(char* to, char* end, uint64_t value, int decimals) {
  uint64_t scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  to = std::to_chars(to, end, value / scale).ptr;
  uint64_t fraction = value % scale;
  if (fraction == 0) return to;
  *to++ = '.';
  for (scale /= 10; fraction != 0; scale /= 10) {
    *to++ = static_cast<char>('0' + fraction / scale);
    fraction %= scale;
  }
  return to;
}

char* PutDuration(char* to, char* end, nanoseconds duration) {
  uint64_t ns = static_cast<uint64_t>(duration.count());
  if (duration.count() < 0) {
    *to++ = '-';
    ns = 0 - ns;
  }
  if (ns == 0) {
    *to++ = '0';
    *to++ = 's';
    return to;
  }
  if (ns < 1'000) {
    to = std::to_chars(to, end, ns).ptr;
    *to++ = 'n';
  } else if (ns < 1'000'000) {
    to = PutDecimal(to, end, ns, 3);
    *to++ = '\xC2';
    *to++ = '\xB5';
  } else if (ns < 1'000'000'000) {
    to = PutDecimal(to, end, ns, 6);
    *to++ = 'm';
  } else {
    const uint64_t minutes = ns / 60'000'000'000;
    if (minutes >= 60) {
      to = std::to_chars(to, end, minutes / 60).ptr;
      *to++ = 'h';
    }
    if (minutes > 0) {
      to = std::to_chars(to, end, minutes % 60).ptr;
      *to++ = 'm';
    }
    to = PutDecimal(to, end, ns % 60'000'000'000, 9);
  }
  *to++ = 's';
  return to;
}

constexpr size_t kDurationTextMax = 40;

}  // namespace

Result<nanoseconds> ParseDuration(std::string_view text) {
  if (text == "0") return nanoseconds(0);
  if (text.empty()) return Bad(text, "no duration");
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  Wide total = 0;
  int64_t last_unit_ns = kMax;
  size_t at = 0;
  while (at < text.size()) {
    Wide whole = 0;
    const size_t digits_at = at;
    for (; at < text.size() && IsDigit(text[at]); ++at) {
      whole = whole * 10 + (text[at] - '0');
      if (whole > kMax) return Bad(text, "too long");
    }
    if (at == digits_at) return Bad(text, "a number is missing");
    std::string_view fraction;
    if (at < text.size() && text[at] == '.') {
      const size_t fraction_at = ++at;
      while (at < text.size() && IsDigit(text[at])) ++at;
      fraction = text.substr(fraction_at, at - fraction_at);
      if (fraction.empty()) return Bad(text, "digits are missing after the point");
    }
    size_t unit_end = at;
    while (unit_end < text.size() && !IsDigit(text[unit_end]) && text[unit_end] != '.') ++unit_end;
    const std::string_view name = text.substr(at, unit_end - at);
    if (name.empty()) return Bad(text, "a unit is missing");
    int64_t unit_ns = 0;
    for (const TimeUnit& unit : kUnits) {
      if (unit.name == name) unit_ns = unit.ns;
    }
    if (unit_ns == 0) return Bad(text, "an unknown unit");
    if (unit_ns >= last_unit_ns) return Bad(text, "larger units come first, each once");
    last_unit_ns = unit_ns;
    at = unit_end;

    total += whole * unit_ns;
    // The fraction, digit by digit: unit_ns * digit / 10^k must come out whole in the end.
    while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
    if (fraction.size() > 15) return Bad(text, "finer than a nanosecond");
    Wide numerator = 0;
    Wide denominator = 1;
    for (char digit : fraction) {
      numerator = numerator * 10 + (digit - '0');
      denominator *= 10;
    }
    if (numerator * unit_ns % denominator != 0) return Bad(text, "finer than a nanosecond");
    total += numerator * unit_ns / denominator;
    if (total > kMax) return Bad(text, "too long");
  }
  return nanoseconds(static_cast<int64_t>(total));
}

void AppendDuration(Buffer& out, nanoseconds duration) {
  char* const to = out.Prepare(kDurationTextMax);
  out.Commit(static_cast<size_t>(PutDuration(to, to + kDurationTextMax, duration) - to));
}

std::string FormatDuration(nanoseconds duration) {
  char text[kDurationTextMax];
  return std::string(text, PutDuration(text, text + kDurationTextMax, duration));
}

}  // namespace weir::wire
