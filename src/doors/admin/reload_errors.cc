#include "doors/admin/reload_errors.h"

#include <charconv>
#include <optional>

namespace weir::doors {
namespace {

// The number between `text`'s front and its first colon, which is taken off with it.
std::optional<int> TakeNumber(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const size_t digits = static_cast<size_t>(end - text.data());
  if (error != std::errc() || digits == text.size() || *end != ':') return std::nullopt;
  text.remove_prefix(digits + 1);
  return number;
}

ReloadError Split(std::string_view line) {
  // A file's name may hold colons: the place begins at the first one with two numbers behind it.
  for (size_t colon = line.find(':'); colon != std::string_view::npos;
       colon = line.find(':', colon + 1)) {
    std::string_view rest = line.substr(colon + 1);
    const std::optional<int> row = TakeNumber(rest);
    const std::optional<int> column = row ? TakeNumber(rest) : std::nullopt;
    if (!column) continue;
    if (rest.starts_with(' ')) rest.remove_prefix(1);
    return {line.substr(0, colon), *row, *column, rest};
  }
  return {.message = line};
}

}  // namespace

std::vector<ReloadError> SplitReloadErrors(std::string_view text) {
  std::vector<ReloadError> errors;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!line.empty()) errors.push_back(Split(line));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return errors;
}

}  // namespace weir::doors
