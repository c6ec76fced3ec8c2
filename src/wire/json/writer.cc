#include "wire/json/writer.h"

#include <array>
#include <cstring>

#include "wire/json/utf8.h"

namespace weir::json {
namespace {

// Bytes that can be copied as they are.
constexpr std::array<bool, 256> MakePlainTable() {
  std::array<bool, 256> table{};
  for (int c = 0x20; c < 0x80; ++c) table[c] = c != '"' && c != '\\' && c != 0x7f;
  return table;
}
constexpr std::array<bool, 256> kPlain = MakePlainTable();

// Appends the escape of one ASCII byte that needs one; at most 6 bytes.
char* PutEscape(char* to, unsigned char c) {
  constexpr char kDigits[] = "0123456789abcdef";
  *to++ = '\\';
  switch (c) {
    case '"':
      *to++ = '"';
      return to;
    case '\\':
      *to++ = '\\';
      return to;
    case '\b':
      *to++ = 'b';
      return to;
    case '\f':
      *to++ = 'f';
      return to;
    case '\n':
      *to++ = 'n';
      return to;
    case '\r':
      *to++ = 'r';
      return to;
    case '\t':
      *to++ = 't';
      return to;
    default:
      std::memcpy(to, "u00", 3);
      to[3] = kDigits[c >> 4];
      to[4] = kDigits[c & 15];
      return to + 5;
  }
}

}  // namespace

void AppendString(wire::Buffer& out, std::string_view text) {
  char* const begin = out.Prepare(text.size() * 6 + 2);  // Every byte can become \u00XX.
  char* to = begin;
  *to++ = '"';
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    const char* const run = at;
    while (at != end && kPlain[static_cast<unsigned char>(*at)]) ++at;
    std::memcpy(to, run, static_cast<size_t>(at - run));
    to += at - run;
    if (at == end) break;
    const unsigned char c = static_cast<unsigned char>(*at);
    if (c < 0x80) {
      to = PutEscape(to, c);
      ++at;
    } else if (const size_t bytes = ValidUtf8Length(at, end); bytes > 0) {
      std::memcpy(to, at, bytes);
      to += bytes;
      at += bytes;
    } else {
      std::memcpy(to, "\xEF\xBF\xBD", 3);
      to += 3;
      ++at;
    }
  }
  *to++ = '"';
  out.Commit(static_cast<size_t>(to - begin));
}

}  // namespace weir::json
