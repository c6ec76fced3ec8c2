#include "redis/key_slot.h"

#include <array>
#include <cstddef>

namespace weir::redis {
namespace {

constexpr std::array<uint16_t, 256> MakeTable() {
  std::array<uint16_t, 256> table{};
  for (size_t byte = 0; byte < table.size(); ++byte) {
    unsigned crc = static_cast<unsigned>(byte) << 8;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1;
    table[byte] = static_cast<uint16_t>(crc);
  }
  return table;
}

constexpr std::array<uint16_t, 256> kTable = MakeTable();

}  // namespace

uint16_t Crc16(std::string_view bytes) {
  unsigned crc = 0;
  for (const char c : bytes) {
    const unsigned byte = static_cast<unsigned char>(c);
    crc = ((crc << 8) ^ kTable[((crc >> 8) ^ byte) & 0xff]) & 0xffff;
  }
  return static_cast<uint16_t>(crc);
}

std::string_view HashTagOf(std::string_view key) {
  const size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  const size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

uint16_t KeySlot(std::string_view key) { return Crc16(HashTagOf(key)) % kSlots; }

}  // namespace weir::redis
