#include "policy/rate_text.h"

#include <algorithm>
#include <array>

#include "base/suggest.h"

namespace weir::policy {
namespace {

using std::chrono::nanoseconds;

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kMicroPerUsd = 1'000'000;
constexpr nanoseconds kLongestDuration{int64_t{1} << 62};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsBlank(char c) { return c == ' ' || c == '\t'; }

std::string_view Trim(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

std::string Quoted(std::string_view text) { return "`" + std::string(text) + "`"; }

// Digits to a number; nothing when there are none, other characters, or more than `limit`.
std::optional<int64_t> ReadDigits(std::string_view digits, int64_t limit) {
  if (digits.empty()) return std::nullopt;
  int64_t value = 0;
  for (char c : digits) {
    if (!IsDigit(c)) return std::nullopt;
    const int digit = c - '0';
    if (value > (limit - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  return value;
}

bool AllDigits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, IsDigit);
}

std::string_view TakeDigits(std::string_view& text) {
  const size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

std::string_view TakeLetters(std::string_view& text) {
  size_t count = 0;
  while (count < text.size() && !IsDigit(text[count]) && text[count] != '.') ++count;
  const std::string_view letters = text.substr(0, count);
  text.remove_prefix(count);
  return letters;
}

struct NamedPeriod {
  std::string_view spelling;
  PeriodName name;
};
constexpr NamedPeriod kPeriods[] = {
    {"s", PeriodName::kSecond},   {"sec", PeriodName::kSecond},    {"second", PeriodName::kSecond},
    {"min", PeriodName::kMinute}, {"minute", PeriodName::kMinute}, {"h", PeriodName::kHour},
    {"hour", PeriodName::kHour},  {"d", PeriodName::kDay},         {"day", PeriodName::kDay},
    {"week", PeriodName::kWeek},  {"month", PeriodName::kMonth},   {"year", PeriodName::kYear},
};

int64_t PeriodSeconds(PeriodName name) {
  switch (name) {
    case PeriodName::kNone:
      return 0;
    case PeriodName::kSecond:
      return 1;
    case PeriodName::kMinute:
      return 60;
    case PeriodName::kHour:
      return 3600;
    case PeriodName::kDay:
      return 86'400;
    case PeriodName::kWeek:
      return 7 * 86'400;
    case PeriodName::kMonth:
      return 30 * 86'400;
    case PeriodName::kYear:
      return 365 * 86'400;
  }
  return 0;
}

struct NamedUnit {
  std::string_view spelling;
  Unit unit;
};
constexpr NamedUnit kUnits[] = {
    {"requests", Unit::kRequests},
    {"request", Unit::kRequests},
    {"tokens", Unit::kTokens},
    {"token", Unit::kTokens},
    {"input_tokens", Unit::kInputTokens},
    {"output_tokens", Unit::kOutputTokens},
    {"usd", Unit::kUsd},
    {"bytes", Unit::kBytes},
};

Result<void> ReadPeriod(std::string_view text, std::string_view whole, RateText& rate) {
  for (const NamedPeriod& period : kPeriods) {
    if (period.spelling != text) continue;
    rate.period_name = period.name;
    rate.period = nanoseconds(PeriodSeconds(period.name) * kNsPerSecond);
    return {};
  }
  if (text.empty()) {
    return InvalidArgument("rate " + Quoted(whole) +
                           " has no period; write it like `300/min` or `7/60s`");
  }
  if (text == "m") {
    return InvalidArgument("rate " + Quoted(whole) +
                           ": `m` could be a minute or a month; write "
                           "`min` or `month`");
  }
  if (!IsDigit(text.front())) {
    std::array<std::string_view, std::size(kPeriods)> names;
    std::ranges::transform(kPeriods, names.begin(), &NamedPeriod::spelling);
    std::string hint = base::DidYouMean(text, names);
    return InvalidArgument("rate " + Quoted(whole) + ": " + Quoted(text) +
                           " is no period; periods are s, min, hour, day, week, month, year, or a "
                           "duration such as `90s`" +
                           hint);
  }
  auto duration = ParseDuration(text);
  if (!duration) {
    return InvalidArgument("rate " + Quoted(whole) + ": " + duration.error().message);
  }
  if (*duration == nanoseconds(0)) {
    return InvalidArgument("rate " + Quoted(whole) + ": the period must be longer than 0");
  }
  rate.period = *duration;
  return {};
}

Result<void> ReadUnit(std::string_view text, std::string_view whole, RateText& rate) {
  if (text.empty()) return {};
  for (const NamedUnit& unit : kUnits) {
    if (unit.spelling != text) continue;
    rate.unit = unit.unit;
    return {};
  }
  if (text == "parallel") {
    return InvalidArgument("rate " + Quoted(whole) +
                           ": calls in flight have no period; write `parallel: 10`");
  }
  std::array<std::string_view, std::size(kUnits)> names;
  std::ranges::transform(kUnits, names.begin(), &NamedUnit::spelling);
  return InvalidArgument(
      "rate " + Quoted(whole) + ": " + Quoted(text) +
      " is no unit; units are requests, tokens, input_tokens, output_tokens, usd "
      "and bytes" +
      base::DidYouMean(text, names));
}

Result<void> ReadAmount(std::string_view number, std::string_view whole, RateText& rate) {
  if (rate.unit == Unit::kUsd) {
    auto micro = ParseUsd(number);
    if (!micro) return InvalidArgument("rate " + Quoted(whole) + ": " + micro.error().message);
    rate.units = *micro;
    return {};
  }
  if (number.find('.') != std::string_view::npos) {
    return InvalidArgument("rate " + Quoted(whole) + ": " + Quoted(number) +
                           " is no whole number; lengthen the period instead, as in `1/2s` for "
                           "half a call a second");
  }
  auto units = ParseWholeNumber(number, "the amount");
  if (!units) return InvalidArgument("rate " + Quoted(whole) + ": " + units.error().message);
  rate.units = *units;
  return {};
}

struct NamedLength {
  std::string_view spelling;
  int64_t ns;
};
// Largest first, the order in which a duration's parts must stand.
constexpr NamedLength kLengths[] = {
    {"d", 86'400 * kNsPerSecond},
    {"h", 3600 * kNsPerSecond},
    {"m", 60 * kNsPerSecond},
    {"min", 60 * kNsPerSecond},
    {"s", kNsPerSecond},
    {"ms", 1'000'000},
    {"us", 1'000},
    {"ns", 1},
};

Error WrongDuration(std::string_view text, const std::string& what) {
  return Error{ErrorCode::kInvalidArgument, "duration " + Quoted(text) + ": " + what};
}

}  // namespace

std::string_view ShortName(PeriodName name) {
  switch (name) {
    case PeriodName::kNone:
      return "";
    case PeriodName::kSecond:
      return "s";
    case PeriodName::kMinute:
      return "min";
    case PeriodName::kHour:
      return "hour";
    case PeriodName::kDay:
      return "day";
    case PeriodName::kWeek:
      return "week";
    case PeriodName::kMonth:
      return "month";
    case PeriodName::kYear:
      return "year";
  }
  return "";
}

Result<RateText> ParseRate(std::string_view text) {
  const std::string_view whole = Trim(text);
  RateText rate;
  if (whole == "unlimited") {
    rate.unlimited = true;
    return rate;
  }
  const size_t slash = whole.find('/');
  if (slash == std::string_view::npos) {
    return InvalidArgument("rate " + Quoted(whole) +
                           " has no period; write it like `300/min`, `100000 tokens/min` or "
                           "`unlimited`");
  }
  std::string_view unit = Trim(whole.substr(0, slash));
  const size_t number_end = std::min(unit.find_first_of(" \t"), unit.size());
  const std::string_view number = unit.substr(0, number_end);
  unit = Trim(unit.substr(number_end));
  if (auto read = ReadUnit(unit, whole, rate); !read) return std::unexpected(read.error());
  if (auto read = ReadAmount(number, whole, rate); !read) return std::unexpected(read.error());
  if (auto read = ReadPeriod(Trim(whole.substr(slash + 1)), whole, rate); !read) {
    return std::unexpected(read.error());
  }
  return rate;
}

Result<nanoseconds> ParseDuration(std::string_view text) {
  std::string_view rest = text;
  if (AllDigits(rest)) {
    return std::unexpected(
        WrongDuration(text, "a unit is missing; write it like `" + std::string(text) + "s`"));
  }
  int64_t total = 0;
  int64_t last_length = INT64_MAX;
  do {
    const std::string_view digits = TakeDigits(rest);
    const std::string_view name = TakeLetters(rest);
    const auto length = std::ranges::find(kLengths, name, &NamedLength::spelling);
    if (digits.empty() || length == std::end(kLengths)) {
      return std::unexpected(WrongDuration(
          text, "write whole numbers with d, h, m, s, ms, us or ns, as in `1h30m` or `250ms`"));
    }
    if (length->ns >= last_length) {
      return std::unexpected(WrongDuration(text, "the largest unit comes first, each once"));
    }
    last_length = length->ns;
    const auto count = ReadDigits(digits, (kLongestDuration.count() - total) / length->ns);
    if (!count) return std::unexpected(WrongDuration(text, "at most 146 years can be told apart"));
    total += *count * length->ns;
  } while (!rest.empty());
  return nanoseconds(total);
}

Result<int64_t> ParseSize(std::string_view text) {
  struct NamedSize {
    std::string_view spelling;
    int64_t bytes;
  };
  static constexpr NamedSize kSizes[] = {{"", 1},
                                         {"B", 1},
                                         {"KiB", 1 << 10},
                                         {"MiB", 1 << 20},
                                         {"GiB", 1 << 30},
                                         {"TiB", int64_t{1} << 40},
                                         {"kB", 1'000},
                                         {"MB", 1'000'000},
                                         {"GB", 1'000'000'000},
                                         {"TB", 1'000'000'000'000}};
  std::string_view rest = text;
  const std::string_view digits = TakeDigits(rest);
  const auto size = std::ranges::find(kSizes, Trim(rest), &NamedSize::spelling);
  if (digits.empty() || size == std::end(kSizes)) {
    return InvalidArgument(
        "size " + Quoted(text) +
        ": write a whole number with B, KiB, MiB, GiB, TiB, kB, MB, GB or TB, as "
        "in `64KiB`");
  }
  const auto count = ReadDigits(digits, kMaxUnits / size->bytes);
  if (!count) return InvalidArgument("size " + Quoted(text) + " is beyond 2^53 bytes");
  return *count * size->bytes;
}

Result<int64_t> ParseWholeNumber(std::string_view text, std::string_view what) {
  const auto value = ReadDigits(text, kMaxUnits);
  if (value) return *value;
  if (AllDigits(text)) {
    return InvalidArgument(std::string(what) + " " + Quoted(text) +
                           " is beyond 9007199254740992 (2^53), up to which numbers are exact");
  }
  return InvalidArgument(std::string(what) + " must be a whole number of at least 0, not " +
                         Quoted(text));
}

Result<int64_t> ParseUsd(std::string_view text) {
  const size_t point = std::min(text.find('.'), text.size());
  const std::string_view whole = text.substr(0, point);
  std::string fraction(text.substr(std::min(point + 1, text.size())));
  const bool has_fraction = point < text.size();
  if (!AllDigits(whole) || (has_fraction && !AllDigits(fraction)) || fraction.size() > 6) {
    return InvalidArgument("usd must be a number with at most six decimals, such as `0.25`, not " +
                           Quoted(text));
  }
  fraction.resize(6, '0');
  const auto dollars = ReadDigits(whole, kMaxUnits / kMicroPerUsd);
  const auto micro = ReadDigits(fraction, kMicroPerUsd);
  if (!dollars || *dollars * kMicroPerUsd + *micro > kMaxUnits) {
    return InvalidArgument("usd " + Quoted(text) +
                           " is beyond 9007199254.740992, up to which amounts are exact");
  }
  return *dollars * kMicroPerUsd + *micro;
}

std::string DurationText(nanoseconds duration) {
  if (duration == nanoseconds(0)) return "0s";
  std::string out;
  int64_t rest = duration.count();
  for (const NamedLength& length : kLengths) {
    if (length.spelling == "min") continue;
    if (rest / length.ns == 0) continue;
    out += std::to_string(rest / length.ns) + std::string(length.spelling);
    rest %= length.ns;
  }
  return out;
}

std::string UsdText(int64_t micro_usd) {
  std::string out = std::to_string(micro_usd / kMicroPerUsd);
  std::string fraction = std::to_string(kMicroPerUsd + micro_usd % kMicroPerUsd).substr(1);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  return fraction.empty() ? out : out + "." + fraction;
}

}  // namespace weir::policy
