#include "wire/resp/reply_parser.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace weir::resp {
namespace {

// An announced count reserves no more than this before its items are there.
constexpr size_t kReserveItems = 64;
constexpr size_t kReserveBytes = 64 << 10;

// Digits with an optional sign, and nothing else.
bool ParseInteger(std::string_view text, int64_t& value) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return false;
  }
  const auto [stop, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  return bad == std::errc() && stop == text.data() + text.size() && !text.empty();
}

bool ParseDouble(std::string_view text, double& value) {
  if (text == "inf" || text == "+inf") {
    value = std::numeric_limits<double>::infinity();
    return true;
  }
  if (text == "-inf") {
    value = -std::numeric_limits<double>::infinity();
    return true;
  }
  if (text == "nan" || text == "-nan") {
    value = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return false;
  const auto [stop, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  return bad == std::errc() && stop == text.data() + text.size() && !text.empty();
}

bool IsBigNumber(std::string_view text) {
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

ReplyParser::State ReplyParser::Break(std::string_view fault) {
  step_ = Step::kBroken;
  if (fault_.empty()) fault_ = fault;
  return State::kBroken;
}

ReplyParser::State ReplyParser::Next(std::string_view& input) {
  if (whole_) {  // The last reply was taken.
    whole_ = false;
    root_ = Value();
    reply_bytes_ = items_ = 0;
  }
  for (;;) {
    switch (step_) {
      case Step::kBroken:
        return State::kBroken;
      case Step::kLine: {
        std::string_view line;
        if (!TakeLine(input, line)) {
          return step_ == Step::kBroken ? State::kBroken : State::kNeedMore;
        }
        if (!BeginValue(line)) return Break("the bytes are not RESP");
        line_.clear();
        break;
      }
      case Step::kBulk: {
        const size_t part = std::min(string_left_, input.size());
        string_.text.append(input.substr(0, part));
        input.remove_prefix(part);
        string_left_ -= part;
        if (string_left_ > 0) return State::kNeedMore;
        string_left_ = 2;
        step_ = Step::kBulkEnd;
        break;
      }
      case Step::kBulkEnd:
        for (; string_left_ > 0 && !input.empty(); --string_left_, input.remove_prefix(1)) {
          if (input.front() != (string_left_ == 2 ? '\r' : '\n')) {
            return Break("a string is longer than it announced");
          }
        }
        if (string_left_ > 0) return State::kNeedMore;
        step_ = Step::kLine;
        if (!FinishString()) return State::kBroken;
        break;
    }
    if (whole_) return State::kValue;
  }
}

// True when `line` is whole, without its CRLF. It lies in the input, or in line_ when it began in
// an earlier piece.
bool ReplyParser::TakeLine(std::string_view& input, std::string_view& line) {
  const size_t feed = input.find('\n');
  const std::string_view part = input.substr(0, feed);
  if (line_.size() + part.size() > limits_.line_bytes_max) {
    Break("a line is too long");
    return false;
  }
  input.remove_prefix(feed == std::string_view::npos ? part.size() : part.size() + 1);
  if (feed == std::string_view::npos) {
    line_.append(part);
    return false;
  }
  line = part;
  if (!line_.empty()) line = line_.append(part);
  if (!line.ends_with('\r')) {
    Break("a line does not end in CRLF");
    return false;
  }
  line.remove_suffix(1);
  if (line.find('\r') != std::string_view::npos) {
    Break("a line holds a bare CR");
    return false;
  }
  return true;
}

bool ReplyParser::CountBytes(size_t bytes) {
  if (bytes > limits_.reply_bytes_max - reply_bytes_) {
    Break("a reply is too large");
    return false;
  }
  reply_bytes_ += bytes;
  return true;
}

bool ReplyParser::BeginValue(std::string_view line) {
  if (line.empty()) return false;
  const char type = line.front();
  const std::string_view rest = line.substr(1);
  if (++items_ > limits_.items_max) {
    Break("a reply has too many items");
    return false;
  }
  Value value;
  switch (type) {
    case '$':
    case '!':
    case '=':
      return BeginString(type, rest);
    case '*':
    case '~':
    case '%':
    case '>':
    case '|':
      return BeginList(type, rest);
    case '+':
    case '-':
      if (!CountBytes(rest.size())) return false;
      value.type = type == '+' ? Type::kSimpleString : Type::kError;
      value.text = rest;
      break;
    case ':':
      value.type = Type::kInteger;
      if (!ParseInteger(rest, value.integer)) return false;
      break;
    case '_':
      if (!rest.empty()) return false;
      break;
    case '#':
      value.type = Type::kBoolean;
      if (rest != "t" && rest != "f") return false;
      value.integer = rest == "t" ? 1 : 0;
      break;
    case ',':
      value.type = Type::kDouble;
      if (!CountBytes(rest.size()) || !ParseDouble(rest, value.real)) return false;
      value.text = rest;
      break;
    case '(':
      value.type = Type::kBigNumber;
      if (!CountBytes(rest.size()) || !IsBigNumber(rest)) return false;
      value.text = rest;
      break;
    default:
      return false;
  }
  return Place(std::move(value));
}

bool ReplyParser::BeginString(char type, std::string_view count) {
  if (type == '$' && count == "-1") return Place(Value());
  int64_t bytes = 0;
  if (!ParseInteger(count, bytes) || bytes < 0) return false;
  if (static_cast<uint64_t>(bytes) > limits_.bulk_bytes_max) {
    Break("a string is too long");
    return false;
  }
  if (!CountBytes(static_cast<size_t>(bytes))) return false;
  string_ = Value();
  string_type_ = type;
  string_left_ = static_cast<size_t>(bytes);
  string_.text.reserve(std::min(string_left_, kReserveBytes));
  step_ = Step::kBulk;
  return true;
}

bool ReplyParser::FinishString() {
  switch (string_type_) {
    case '$':
      string_.type = Type::kBulkString;
      break;
    case '!':
      string_.type = Type::kError;
      break;
    default:  // "txt:…", "mkd:…"
      if (string_.text.size() < 4 || string_.text[3] != ':') {
        Break("a verbatim string does not name its format");
        return false;
      }
      string_.type = Type::kVerbatim;
      string_.text.erase(0, 4);
      break;
  }
  return Place(std::exchange(string_, Value()));
}

bool ReplyParser::BeginList(char type, std::string_view count) {
  if (type == '*' && count == "-1") return Place(Value());
  int64_t announced = 0;
  if (!ParseInteger(count, announced) || announced < 0) return false;
  // Nothing but a whole reply may precede a push, or it would be taken for part of one.
  if (type == '>' && !open_.empty()) return false;
  const bool pairs = type == '%' || type == '|';
  if (static_cast<uint64_t>(announced) > limits_.items_max / (pairs ? 2 : 1)) {
    Break("a reply has too many items");
    return false;
  }
  const size_t items = static_cast<size_t>(announced) * (pairs ? 2 : 1);
  Open open;
  open.left = items;
  open.attribute = type == '|';
  switch (type) {
    case '*':
      open.list.type = Type::kArray;
      break;
    case '~':
      open.list.type = Type::kSet;
      break;
    case '>':
      open.list.type = Type::kPush;
      break;
    default:
      open.list.type = Type::kMap;
      break;
  }
  if (items == 0) return open.attribute || Place(std::move(open.list));
  if (open_.size() == limits_.depth_max) {
    Break("a reply is nested too deeply");
    return false;
  }
  open.list.items.reserve(std::min(items, kReserveItems));
  open_.push_back(std::move(open));
  return true;
}

// A list that becomes whole is placed in its turn.
bool ReplyParser::Place(Value value) {
  for (;;) {
    if (open_.empty()) {
      root_ = std::move(value);
      whole_ = true;
      return true;
    }
    Open& open = open_.back();
    open.list.items.push_back(std::move(value));
    if (--open.left > 0) return true;
    const bool attribute = open.attribute;
    value = std::move(open.list);
    open_.pop_back();
    if (attribute) return true;
  }
}

}  // namespace weir::resp
