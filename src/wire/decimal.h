// ParseDecimal: a whole number in decimal digits, as protocols write them; faster than from_chars
// on the short ones that they mostly are.
//
//   std::optional<int64_t> count = wire::ParseDecimal("-12");
//
// Thread safety: pure function.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::wire {

// Digits with a minus in front or none; nothing when there is anything else, or no room for it.
inline std::optional<int64_t> ParseDecimal(std::string_view text) {
  constexpr size_t kAlwaysFits = 18;
  if (!text.empty() && text.size() <= kAlwaysFits) [[likely]] {
    int64_t value = 0;
    size_t at = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
      value = value * 10 + (text[at] - '0');
    if (at == text.size()) return value;
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace weir::wire
