// The hash slot of a key, as a Redis Cluster has it: CRC16 modulo 16384, of the hash tag alone when
// the key has one.
//
//   uint16_t slot = KeySlot("weir:1:{00112233}:4455");   // That of "00112233".
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::redis {

inline constexpr int kSlots = 16384;

// CRC-16/XMODEM: polynomial 0x1021, initial value 0.
uint16_t Crc16(std::string_view bytes);

// The part that counts: what stands between the first '{' and the first '}' after it, unless that
// is nothing; else the whole key.
std::string_view HashTagOf(std::string_view key);

uint16_t KeySlot(std::string_view key);

}  // namespace weir::redis
