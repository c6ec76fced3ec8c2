#include "wire/resp/command_parser.h"

#include <algorithm>
#include <optional>

#include "wire/decimal.h"

namespace weir::resp {
namespace {

constexpr size_t kCountBytesMax = 32;

bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == '\0'; }

std::optional<int> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  if (lower >= 'a' && lower <= 'f') return lower - 'a' + 10;
  return std::nullopt;
}

// What follows a backslash between double quotes: \n \r \t \b \a, \xHH, or the character itself.
char Unescape(std::string_view line, size_t& at) {
  const char c = line[at];
  if (c == 'x' && at + 2 < line.size()) {
    const std::optional<int> high = HexDigit(line[at + 1]), low = HexDigit(line[at + 2]);
    if (high && low) {
      at += 2;
      return static_cast<char>(*high << 4 | *low);
    }
  }
  constexpr std::string_view kNames = "nrtba", kMeans = "\n\r\t\b\a";
  const size_t found = kNames.find(c);
  return found == std::string_view::npos ? c : kMeans[found];
}

}  // namespace

CommandParser::State CommandParser::Break(std::string_view fault) {
  fault_ = fault;
  return State::kBroken;
}

CommandParser::State CommandParser::Next(std::string_view input) {
  if (!fault_.empty()) return State::kBroken;
  if (whole_) {
    whole_ = false;
    at_ = searched_ = 0;
  }
  if (left_ > 0) return TakeWords(input);
  if (input.empty()) return State::kNeedMore;
  places_.clear();
  if (input[0] != '*') return TakeInline(input);
  std::string_view line;
  const Line got = TakeLine(input, kCountBytesMax, line);
  if (got == Line::kNeedMore) return State::kNeedMore;
  const std::optional<int64_t> count =
      got == Line::kWhole ? wire::ParseDecimal(line.substr(1)) : std::nullopt;
  if (!count || *count > static_cast<int64_t>(limits_.words_max))
    return Break("Protocol error: invalid multibulk length");
  left_ = *count > 0 ? static_cast<size_t>(*count) : 0;
  return TakeWords(input);
}

CommandParser::Line CommandParser::TakeLine(std::string_view input, size_t bytes_max,
                                            std::string_view& line) {
  const size_t feed = input.find('\n', std::max(searched_, at_));
  if (feed == std::string_view::npos) {
    searched_ = input.size();
    return input.size() - at_ > bytes_max ? Line::kBroken : Line::kNeedMore;
  }
  if (feed - at_ > bytes_max) return Line::kBroken;
  line = input.substr(at_, feed - at_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  at_ = searched_ = feed + 1;
  return Line::kWhole;
}

CommandParser::State CommandParser::TakeInline(std::string_view input) {
  std::string_view line;
  switch (TakeLine(input, limits_.inline_bytes_max, line)) {
    case Line::kNeedMore:
      return State::kNeedMore;
    case Line::kBroken:
      return Break("Protocol error: too big inline request");
    case Line::kWhole:
      break;
  }
  if (!SplitInline(line)) return Break("Protocol error: unbalanced quotes in request");
  words_.clear();
  for (const Place& place : places_)
    words_.push_back(std::string_view(unquoted_).substr(place.at, place.size));
  whole_ = true;
  return State::kCommand;
}

// As sdssplitargs of Redis: words between blanks, 'as is' with \' inside, or "with escapes".
bool CommandParser::SplitInline(std::string_view line) {
  unquoted_.clear();
  size_t at = 0;
  for (;;) {
    while (at < line.size() && IsBlank(line[at])) ++at;
    if (at == line.size()) return true;
    const size_t begin = unquoted_.size();
    char quote = 0;
    for (; at < line.size() && (quote != 0 || !IsBlank(line[at])); ++at) {
      const char c = line[at];
      if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (quote != 0 && c == quote) {
        if (at + 1 < line.size() && !IsBlank(line[at + 1])) return false;
        quote = 0;
      } else if (quote == '"' && c == '\\' && at + 1 < line.size()) {
        unquoted_.push_back(Unescape(line, ++at));
      } else if (quote == '\'' && c == '\\' && line.substr(at + 1).starts_with('\'')) {
        ++at;
        unquoted_.push_back('\'');
      } else {
        unquoted_.push_back(c);
      }
    }
    if (quote != 0) return false;
    places_.push_back({begin, unquoted_.size() - begin});
  }
}

// What words mostly are: whole, and with a size of one or two digits.
bool CommandParser::TakeShortWord(std::string_view input) {
  constexpr size_t kBytesMax = 99;
  if (limits_.word_bytes_max < kBytesMax || input.size() - at_ < sizeof("$99\r\n\r\n") + kBytesMax)
    return false;
  const char* at = input.data() + at_;
  const auto digit = [&at] { return static_cast<unsigned>(static_cast<unsigned char>(*at) - '0'); };
  if (*at++ != '$' || digit() > 9) return false;
  size_t size = digit();
  ++at;
  if (digit() <= 9) {
    size = size * 10 + digit();
    ++at;
  }
  if (at[0] != '\r' || at[1] != '\n' || at[2 + size] != '\r' || at[3 + size] != '\n') return false;
  const auto begin = static_cast<size_t>(at + 2 - input.data());
  if (begin + size > limits_.command_bytes_max) return false;
  places_.push_back({begin, size});
  at_ = searched_ = begin + size + 2;
  --left_;
  return true;
}

CommandParser::State CommandParser::TakeWords(std::string_view input) {
  while (left_ > 0) {
    if (word_left_ == 0) {
      if (at_ == input.size()) return State::kNeedMore;
      if (TakeShortWord(input)) continue;
      if (input[at_] != '$') return Break("Protocol error: expected '$'");
      std::string_view line;
      const Line got = TakeLine(input, kCountBytesMax, line);
      if (got == Line::kNeedMore) return State::kNeedMore;
      const std::optional<int64_t> size =
          got == Line::kWhole ? wire::ParseDecimal(line.substr(1)) : std::nullopt;
      if (!size || *size < 0 || *size > static_cast<int64_t>(limits_.word_bytes_max) ||
          at_ + static_cast<size_t>(*size) > limits_.command_bytes_max)
        return Break("Protocol error: invalid bulk length");
      word_left_ = static_cast<size_t>(*size) + 2;
    }
    if (input.size() - at_ < word_left_) return State::kNeedMore;
    if (input.substr(at_ + word_left_ - 2, 2) != "\r\n")
      return Break("Protocol error: a bulk string is longer than it announced");
    places_.push_back({at_, word_left_ - 2});
    at_ = searched_ = at_ + word_left_;
    word_left_ = 0;
    --left_;
  }
  words_.clear();
  for (const Place& place : places_) words_.push_back(input.substr(place.at, place.size));
  whole_ = true;
  return State::kCommand;
}

}  // namespace weir::resp
