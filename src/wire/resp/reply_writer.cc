#include "wire/resp/reply_writer.h"

#include <algorithm>
#include <charconv>
#include <string>

namespace weir::resp {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

}  // namespace

void ReplyWriter::Line(char type, std::string_view text) {
  out_.Append(type);
  out_.Append(text);
  out_.Append(kLineEnd);
}

void ReplyWriter::Count(char type, size_t count) {
  out_.Append(type);
  out_.AppendDecimal(static_cast<int64_t>(count));
  out_.Append(kLineEnd);
}

void ReplyWriter::Error(std::string_view text) {
  if (text.find_first_of(kLineEnd) == std::string_view::npos) return Line('-', text);
  std::string line(text);
  std::ranges::replace_if(line, [](char c) { return c == '\r' || c == '\n'; }, ' ');
  Line('-', line);
}

void ReplyWriter::Integer(int64_t value) {
  constexpr size_t kBytesMax = sizeof(":-9223372036854775808\r\n");
  char* const begin = out_.Prepare(kBytesMax);
  char* to = begin;
  *to++ = ':';
  to = std::to_chars(to, begin + kBytesMax, value).ptr;
  *to++ = '\r';
  *to++ = '\n';
  out_.Commit(static_cast<size_t>(to - begin));
}

void ReplyWriter::Bulk(std::string_view bytes) {
  Count('$', bytes.size());
  out_.Append(bytes);
  out_.Append(kLineEnd);
}

void ReplyWriter::Map(size_t pairs) {
  if (protocol_ == 3) {
    Count('%', pairs);
  } else {
    Count('*', 2 * pairs);
  }
}

}  // namespace weir::resp
