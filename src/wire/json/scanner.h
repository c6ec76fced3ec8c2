// A strict pull scanner over one JSON document in memory: what check_request.cc is built from.
// Internal to this folder.
//
//   Scanner in(body, text);
//   if (!in.Begin()) return in.syntax_error();
//   in.ReadObject([&](std::string_view name) { return name == "a" ? in.ReadString(a) : false; });
//
// Every Read method expects `at` on the first byte of a value and leaves it right after the value.
// After a syntax error `failed()` is true and nothing may be read any more; a Read that finds a
// value of another type, or a callback that says false, leaves failed() false.
// Thread safety: none; one owner at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace weir::json {

enum class NumberOutcome : uint8_t { kOk, kNotANumber, kNegative, kNotWhole, kTooLarge };

class Scanner {
 public:
  // `text` takes unescaped strings; it is grown to the body's size before the first is written.
  Scanner(std::string_view body, std::vector<char>& text)
      : begin_(body.data()), at_(body.data()), end_(body.data() + body.size()), text_(text) {}

  bool failed() const { return failed_; }
  size_t offset() const { return static_cast<size_t>(at_ - begin_); }

  // A place to go back to. Going back frees the strings that were unescaped since: each byte of the
  // body is unescaped at most once at a time, which is why `text` never needs more than its size.
  struct Mark {
    size_t offset;
    size_t text_used;
  };
  Mark Here() const { return {offset(), text_used_}; }
  void Rewind(Mark mark) {
    at_ = begin_ + mark.offset;
    text_used_ = mark.text_used;
  }

  // Skips white space before the document; false when there is nothing.
  bool Begin() {
    SkipSpace();
    return at_ != end_ || Fail();
  }
  // Only white space may be left.
  bool End() {
    SkipSpace();
    return at_ == end_ || Fail();
  }

  char Peek() const { return *at_; }

  // Calls on_field(name) for each field, on the first byte of its value. Stops when it says false.
  template <typename OnField>
  bool ReadObject(OnField&& on_field) {
    if (*at_ != '{') return false;
    ++at_;
    SkipSpace();
    if (at_ != end_ && *at_ == '}') {
      ++at_;
      return true;
    }
    for (;;) {
      std::string_view name;
      if (at_ == end_ || *at_ != '"') return Fail();
      if (!ReadString(name)) return false;
      SkipSpace();
      if (at_ == end_ || *at_ != ':') return Fail();
      ++at_;
      SkipSpace();
      if (at_ == end_) return Fail();
      if (!on_field(name)) return false;
      if (!NextOrClose('}')) return !failed_;
    }
  }

  // Calls on_item() on the first byte of each item. Stops when it says false.
  template <typename OnItem>
  bool ReadArray(OnItem&& on_item) {
    if (*at_ != '[') return false;
    ++at_;
    SkipSpace();
    if (at_ != end_ && *at_ == ']') {
      ++at_;
      return true;
    }
    for (;;) {
      if (at_ == end_) return Fail();
      if (!on_item()) return false;
      if (!NextOrClose(']')) return !failed_;
    }
  }

  // False on another type, too (then failed() is false).
  bool ReadString(std::string_view& out) {
    if (*at_ != '"') return false;
    const char* const start = ++at_;
    at_ = SkipPlain(at_, end_);
    if (at_ != end_ && *at_ == '"') [[likely]] {
      out = std::string_view(start, static_cast<size_t>(at_ - start));
      ++at_;
      return true;
    }
    return ReadStringSlow(start, out);
  }

  bool ReadBool(bool& out) {
    if (*at_ == 't' && TakeWord("true")) return out = true;
    if (*at_ == 'f' && TakeWord("false")) {
      out = false;
      return true;
    }
    return false;
  }

  // The number times 10^decimals, exactly. Other outcomes than kOk leave `at` undefined.
  NumberOutcome ReadNumber(int decimals, int64_t max, int64_t& out);

  // Validates any value and steps over it; false (and failed) when it is malformed or nested deeper
  // than depth_max.
  bool SkipValue(size_t depth_max);

 private:
  bool Fail() {
    failed_ = true;
    return false;
  }
  void SkipSpace() {
    while (at_ != end_ && static_cast<unsigned char>(*at_) <= ' ' &&
           (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) {
      ++at_;
    }
  }
  // True: a comma, and `at` is on what follows it. False: closed, or failed.
  bool NextOrClose(char close) {
    SkipSpace();
    if (at_ == end_) return Fail();
    if (*at_ == ',') {
      ++at_;
      SkipSpace();
      return true;
    }
    if (*at_ != close) return Fail();
    ++at_;
    return false;
  }
  bool TakeWord(std::string_view word) {
    if (static_cast<size_t>(end_ - at_) < word.size() ||
        std::memcmp(at_, word.data(), word.size()) != 0) {
      return Fail();
    }
    at_ += word.size();
    return true;
  }
  // The first byte that ends a string or needs a closer look: quote, backslash, control, non-ASCII.
  static const char* SkipPlain(const char* at, const char* end) {
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(0x20);
    for (; end - at >= 16; at += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
      // Signed: bytes beyond ASCII are below the space, like controls.
      const __m128i stop =
          _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                       _mm_cmplt_epi8(bytes, space));
      const unsigned mask = static_cast<unsigned>(_mm_movemask_epi8(stop));
      if (mask != 0) return at + std::countr_zero(mask);
    }
#endif
    while (at != end && static_cast<signed char>(*at) >= 0x20 && *at != '"' && *at != '\\') ++at;
    return at;
  }

  bool ReadStringSlow(const char* start, std::string_view& out);
  bool ReadEscape();  // Appends what it stands for to text_.
  bool ReadHex4(uint32_t& out);
  void AppendUtf8(uint32_t code_point);
  bool SkipNumber();

  const char* begin_;
  const char* at_;
  const char* end_;
  std::vector<char>& text_;
  size_t text_used_ = 0;
  bool failed_ = false;
};

}  // namespace weir::json
