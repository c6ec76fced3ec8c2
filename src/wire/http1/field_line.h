// The one reader of "name: value" lines, for heads and trailers alike, so that both refuse the same
// shapes. Internal to this folder; users include request_head.h, response_head.h or body.h.
//
//   HeaderField field;
//   FieldLine line = ReadFieldLine(at, end, /*first=*/true, field);
//   if (line.kind == FieldLine::Kind::kField) at = line.next;
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "wire/http1/fields.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace weir::http1 {

namespace internal {

constexpr std::array<bool, 256> MakeTokenTable() {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[c] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[c] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[c] = true;
  for (char c : {'!', '#', '$', '%', '&', '\'', '*', '+', '-', '.', '^', '_', '`', '|', '~'}) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}
inline constexpr std::array<bool, 256> kTokenTable = MakeTokenTable();

inline bool IsTokenByte(char c) { return kTokenTable[static_cast<unsigned char>(c)]; }

// Control characters other than tab end a field value or spoil it.
inline bool IsValueByte(char c) {
  const unsigned char u = static_cast<unsigned char>(c);
  return (u >= 0x20 && u != 0x7f) || u == '\t';
}

// The first byte from `at` that cannot stand in a token, or end.
inline const char* SkipTokenBytes(const char* at, const char* end) {
#if defined(__SSE2__)
  // Letters, digits and '-' are what names are made of; the rest is left to the table.
  const __m128i bit5 = _mm_set1_epi8(0x20);
  while (end - at >= 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i lower = _mm_or_si128(bytes, bit5);
    const __m128i letter = _mm_and_si128(_mm_cmpgt_epi8(lower, _mm_set1_epi8('a' - 1)),
                                         _mm_cmplt_epi8(lower, _mm_set1_epi8('z' + 1)));
    const __m128i digit = _mm_and_si128(_mm_cmpgt_epi8(bytes, _mm_set1_epi8('0' - 1)),
                                        _mm_cmplt_epi8(bytes, _mm_set1_epi8('9' + 1)));
    const __m128i dash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('-'));
    const __m128i good = _mm_or_si128(_mm_or_si128(letter, digit), dash);
    const unsigned mask = static_cast<unsigned>(_mm_movemask_epi8(good));
    at += std::countr_one(mask);
    if (mask == 0xffff) continue;
    if (!IsTokenByte(*at)) return at;
    ++at;
  }
#endif
  while (at != end && IsTokenByte(*at)) ++at;
  return at;
}

// The first byte from `at` that cannot stand in a field value, or end.
inline const char* SkipValueBytes(const char* at, const char* end) {
#if defined(__SSE2__)
  const __m128i last_control = _mm_set1_epi8(0x1f);
  const __m128i del = _mm_set1_epi8(0x7f);
  const __m128i tab = _mm_set1_epi8('\t');
  for (; end - at >= 16; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, last_control), bytes);
    const __m128i bad = _mm_or_si128(_mm_andnot_si128(_mm_cmpeq_epi8(bytes, tab), control),
                                     _mm_cmpeq_epi8(bytes, del));
    const unsigned mask = static_cast<unsigned>(_mm_movemask_epi8(bad));
    if (mask != 0) return at + std::countr_zero(mask);
  }
#endif
  while (at != end && IsValueByte(*at)) ++at;
  return at;
}

// IdentifyField for a name that is known to be a token.
FieldId IdentifyToken(std::string_view name);

}  // namespace internal

struct FieldLine {
  enum class Kind : uint8_t { kField, kEnd, kNeedMore, kError };
  Kind kind;
  const char* next = nullptr;  // After the line, when kField or kEnd (the empty line).
  const char* reason = "";
};

// Reads one line from `at`. `first`: no field came before it. Errors are found from left to right,
// so that a line that comes in pieces ends in the same error as a whole one.
inline FieldLine ReadFieldLine(const char* at, const char* end, bool first, HeaderField& field) {
  using Kind = FieldLine::Kind;
  const char* const name = at;
  at = internal::SkipTokenBytes(at, end);
  if (at == end) [[unlikely]] {
    return {Kind::kNeedMore};
  }
  if (*at != ':' || at == name) [[unlikely]] {
    if (at == name) {
      switch (*at) {
        case '\r':
          if (end - at < 2) return {Kind::kNeedMore};
          if (at[1] != '\n')
            return {Kind::kError, nullptr, "a carriage return without a line feed"};
          return {Kind::kEnd, at + 2};
        case '\n':
          return {Kind::kError, nullptr, "a line feed without a carriage return"};
        case ' ':
        case '\t':
          return {Kind::kError, nullptr,
                  first ? "white space before the first field" : "a folded field line"};
        case ':':
          return {Kind::kError, nullptr, "an empty field name"};
        default:
          return {Kind::kError, nullptr, "a character that no field name can hold"};
      }
    }
    switch (*at) {
      case ' ':
      case '\t':
        return {Kind::kError, nullptr, "white space before the colon of a field"};
      case '\r':
      case '\n':
        return {Kind::kError, nullptr, "a field line without a colon"};
      default:
        return {Kind::kError, nullptr, "a character that no field name can hold"};
    }
  }
  const std::string_view field_name(name, static_cast<size_t>(at - name));
  ++at;
  while (at != end && (*at == ' ' || *at == '\t')) ++at;
  const char* const value = at;
  at = internal::SkipValueBytes(at, end);
  if (end - at < 2) [[unlikely]] {
    if (at == end || *at == '\r') return {Kind::kNeedMore};
  } else if (at[0] == '\r' && at[1] == '\n') [[likely]] {
    const char* value_end = at;
    while (value_end != value && (value_end[-1] == ' ' || value_end[-1] == '\t')) --value_end;
    field.name = field_name;
    field.value = std::string_view(value, static_cast<size_t>(value_end - value));
    field.id = internal::IdentifyToken(field_name);
    return {Kind::kField, at + 2};
  }
  switch (*at) {
    case '\r':
      return {Kind::kError, nullptr, "a carriage return without a line feed"};
    case '\n':
      return {Kind::kError, nullptr, "a line feed without a carriage return"};
    default:
      return {Kind::kError, nullptr, "a control character in a field value"};
  }
}

// For a head that trickles in: whether the bytes after `progress` can end the head or show an error
// of line ends. When not, the head needs more input and there is nothing to parse yet.
bool WorthParsing(std::string_view head, const HeadProgress& progress);

// Content-Length: digits only, at most 18 of them.
bool ParseContentLength(std::string_view text, int64_t& length);

// What the fields of a head say about framing and the connection; shared by requests and responses.
struct Framing {
  bool has_content_length = false;
  bool chunked = false;
  bool close = false;
  bool keep_alive = false;
  bool upgrade_named = false;  // Connection: upgrade
  bool upgrade_field = false;  // Upgrade: ...
  int64_t content_length = 0;

  // Takes a Content-Length, Transfer-Encoding, Connection or Upgrade field; returns what is wrong
  // with it, or nullptr. Other fields are ignored.
  const char* Take(const HeaderField& field, int minor_version);
};

}  // namespace weir::http1
