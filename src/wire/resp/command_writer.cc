#include "wire/resp/command_writer.h"

#include <charconv>

namespace weir::resp {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

void AppendCount(wire::Buffer& out, char type, size_t count) {
  char line[24];
  line[0] = type;
  const char* end = std::to_chars(line + 1, line + sizeof line, count).ptr;
  out.Append(std::string_view(line, end));
  out.Append(kLineEnd);
}

}  // namespace

void BeginCommand(wire::Buffer& out, size_t words) { AppendCount(out, '*', words); }

void AppendWord(wire::Buffer& out, std::string_view word) {
  AppendCount(out, '$', word.size());
  out.Append(word);
  out.Append(kLineEnd);
}

void AppendWord(wire::Buffer& out, int64_t number) {
  char digits[24];
  const char* end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  AppendWord(out, std::string_view(digits, end));
}

void AppendCommand(wire::Buffer& out, std::span<const std::string_view> words) {
  BeginCommand(out, words.size());
  for (const std::string_view word : words) AppendWord(out, word);
}

size_t WordBytes(std::string_view word) {
  size_t digits = 1;
  for (size_t rest = word.size(); rest >= 10; rest /= 10) ++digits;
  return 1 + digits + 2 + word.size() + 2;
}

}  // namespace weir::resp
