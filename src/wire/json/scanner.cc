#include "wire/json/scanner.h"

#include "wire/json/utf8.h"

namespace weir::json {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool Scanner::ReadStringSlow(const char* start, std::string_view& out) {
  bool copying = false;
  size_t text_at = 0;
  const char* run = start;  // From here on nothing has been copied yet.
  const auto copy_run = [&] {
    std::memcpy(text_.data() + text_used_, run, static_cast<size_t>(at_ - run));
    text_used_ += static_cast<size_t>(at_ - run);
  };
  for (;;) {
    at_ = SkipPlain(at_, end_);
    if (at_ == end_) return Fail();
    const unsigned char c = static_cast<unsigned char>(*at_);
    if (c == '"') break;
    if (c < 0x20) return Fail();
    if (c >= 0x80) {
      const size_t bytes = ValidUtf8Length(at_, end_);
      if (bytes == 0) return Fail();
      at_ += bytes;
      continue;
    }
    if (!copying) {
      copying = true;
      // An escape is never shorter than what it stands for: the body's size is always enough.
      if (text_.size() < static_cast<size_t>(end_ - begin_) && text_used_ == 0) {
        text_.resize(static_cast<size_t>(end_ - begin_));
      }
      text_at = text_used_;
    }
    copy_run();
    ++at_;
    if (!ReadEscape()) return false;
    run = at_;
  }
  if (copying) {
    copy_run();
    out = std::string_view(text_.data() + text_at, text_used_ - text_at);
  } else {
    out = std::string_view(start, static_cast<size_t>(at_ - start));
  }
  ++at_;
  return true;
}

bool Scanner::ReadEscape() {
  if (at_ == end_) return Fail();
  char plain;
  switch (*at_++) {
    case '"':
      plain = '"';
      break;
    case '\\':
      plain = '\\';
      break;
    case '/':
      plain = '/';
      break;
    case 'b':
      plain = '\b';
      break;
    case 'f':
      plain = '\f';
      break;
    case 'n':
      plain = '\n';
      break;
    case 'r':
      plain = '\r';
      break;
    case 't':
      plain = '\t';
      break;
    case 'u': {
      uint32_t code_point = 0;
      if (!ReadHex4(code_point)) return false;
      if (code_point >= 0xDC00 && code_point < 0xE000) return Fail();  // A low half alone.
      if (code_point >= 0xD800 && code_point < 0xDC00) {
        uint32_t low = 0;
        if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') return Fail();
        at_ += 2;
        if (!ReadHex4(low)) return false;
        if (low < 0xDC00 || low >= 0xE000) return Fail();
        code_point = 0x10000 + ((code_point - 0xD800) << 10) + (low - 0xDC00);
      }
      AppendUtf8(code_point);
      return true;
    }
    default:
      return Fail();
  }
  text_[text_used_++] = plain;
  return true;
}

bool Scanner::ReadHex4(uint32_t& out) {
  if (end_ - at_ < 4) return Fail();
  for (int i = 0; i < 4; ++i) {
    const char c = *at_++;
    const char lower = static_cast<char>(c | 0x20);
    uint32_t digit;
    if (IsDigit(c)) {
      digit = static_cast<uint32_t>(c - '0');
    } else if (lower >= 'a' && lower <= 'f') {
      digit = static_cast<uint32_t>(lower - 'a' + 10);
    } else {
      return Fail();
    }
    out = out * 16 + digit;
  }
  return true;
}

void Scanner::AppendUtf8(uint32_t code_point) {
  const auto put = [this](uint32_t byte) { text_[text_used_++] = static_cast<char>(byte); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

NumberOutcome Scanner::ReadNumber(int decimals, int64_t max, int64_t& out) {
  const char* const start = at_;
  // Nearly always: one to fifteen digits, no leading zero, nothing else.
  if (decimals == 0 && *at_ >= '1' && *at_ <= '9') {
    int64_t value = 0;
    for (; at_ != end_ && IsDigit(*at_) && at_ - start < 15; ++at_)
      value = value * 10 + (*at_ - '0');
    if (at_ != end_ && (*at_ == ',' || *at_ == '}') && value <= max) {
      out = value;
      return NumberOutcome::kOk;
    }
    at_ = start;
  }
  if (*at_ != '-' && !IsDigit(*at_)) return NumberOutcome::kNotANumber;
  if (!SkipNumber()) return NumberOutcome::kNotANumber;
  const bool negative = *start == '-';

  // The number is digits * 10^exponent, digits without zeros at either end: at most 19 of them fit.
  uint64_t digits = 0;
  int64_t exponent = decimals;
  int significant = 0;
  int64_t pending_zeros = 0;
  bool after_point = false;
  const char* at = start + (negative ? 1 : 0);
  for (; at != at_ && *at != 'e' && *at != 'E'; ++at) {
    if (*at == '.') {
      after_point = true;
      continue;
    }
    if (after_point) --exponent;
    if (*at == '0') {
      if (significant > 0) ++pending_zeros;
      continue;
    }
    for (; pending_zeros > 0 && significant < 20; --pending_zeros, ++significant) digits *= 10;
    significant += static_cast<int>(pending_zeros > 0 ? 20 : 1);
    pending_zeros = 0;
    digits = digits * 10 + static_cast<uint64_t>(*at - '0');
    if (significant > 20) significant = 20;  // Too many to be exact; `digits` is not used then.
  }
  if (significant == 0) {
    out = 0;
    return NumberOutcome::kOk;
  }
  exponent += pending_zeros;
  if (at != at_) {
    ++at;
    const bool down = *at == '-';
    if (*at == '-' || *at == '+') ++at;
    int64_t power = 0;
    for (; at != at_; ++at) {
      if (power < 1'000'000'000) power = power * 10 + (*at - '0');
    }
    exponent += down ? -power : power;
  }
  if (negative) return NumberOutcome::kNegative;
  if (exponent < 0) return NumberOutcome::kNotWhole;
  if (significant > 19 || exponent > 18) return NumberOutcome::kTooLarge;
  const uint64_t bound = static_cast<uint64_t>(max);
  for (; exponent > 0; --exponent) {
    if (digits > bound / 10) return NumberOutcome::kTooLarge;
    digits *= 10;
  }
  if (digits > bound) return NumberOutcome::kTooLarge;
  out = static_cast<int64_t>(digits);
  return NumberOutcome::kOk;
}

bool Scanner::SkipNumber() {
  const auto digits = [this] {
    const char* const first = at_;
    while (at_ != end_ && IsDigit(*at_)) ++at_;
    return at_ != first || Fail();
  };
  if (*at_ == '-') ++at_;
  if (at_ != end_ && *at_ == '0') {
    ++at_;
    if (at_ != end_ && IsDigit(*at_)) return Fail();
  } else if (!digits()) {
    return false;
  }
  if (at_ != end_ && *at_ == '.') {
    ++at_;
    if (!digits()) return false;
  }
  if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    if (at_ != end_ && (*at_ == '-' || *at_ == '+')) ++at_;
    if (!digits()) return false;
  }
  return true;
}

bool Scanner::SkipValue(size_t depth_max) {
  std::string_view ignored;
  switch (*at_) {
    case '{':
      if (depth_max == 0) return Fail();
      return ReadObject([&](std::string_view) { return SkipValue(depth_max - 1); });
    case '[':
      if (depth_max == 0) return Fail();
      return ReadArray([&] { return SkipValue(depth_max - 1); });
    case '"':
      return ReadString(ignored);
    case 't':
      return TakeWord("true");
    case 'f':
      return TakeWord("false");
    case 'n':
      return TakeWord("null");
    default:
      if (*at_ != '-' && !IsDigit(*at_)) return Fail();
      return SkipNumber();
  }
}

}  // namespace weir::json
