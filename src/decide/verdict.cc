#include "decide/verdict.h"

namespace weir::decide {

std::array<char, 32> ToText(ReservationId id) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::array<char, 32> text;
  for (size_t i = 0; i < 16; ++i) {
    text[i] = kDigits[id.high >> (60 - 4 * i) & 15];
    text[16 + i] = kDigits[id.low >> (60 - 4 * i) & 15];
  }
  return text;
}

std::optional<ReservationId> ParseReservationId(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  uint64_t halves[2] = {};
  for (size_t i = 0; i < 32; ++i) {
    const char c = text[i];
    uint64_t digit;
    if (c >= '0' && c <= '9') {
      digit = static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<uint64_t>(c - 'a' + 10);
    } else {
      return std::nullopt;
    }
    halves[i / 16] = halves[i / 16] << 4 | digit;
  }
  return ReservationId{halves[0], halves[1]};
}

}  // namespace weir::decide
