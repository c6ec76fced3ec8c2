// One round of AES (FIPS 197, section 5.1: SubBytes, ShiftRows, MixColumns, then the round key), as
// a building block of the keyed hash: by the processor's instruction where the build targets one
// that has it, else by the definition.
//
//   Block state = AesRound(state ^ data, round_key);
//
// Thread safety: pure functions. Both forms give the same bytes (keyed_hash_test holds them to FIPS
// 197).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#if defined(__AES__)
#include <wmmintrin.h>
#endif

namespace weir::base {

// 16 bytes; operators work on the two words.
using Block = uint64_t __attribute__((vector_size(16)));

namespace aes_detail {

constexpr uint8_t Double(uint8_t x) { return static_cast<uint8_t>(x << 1 ^ (x >> 7) * 0x1b); }

// The S-box: the inverse in GF(2^8), then an affine map (FIPS 197, section 5.1.1).
constexpr std::array<uint8_t, 256> MakeSBox() {
  std::array<uint8_t, 256> box{};
  uint8_t p = 1, q = 1;  // p runs over all units by 3, q over their inverses.
  do {
    p = static_cast<uint8_t>(p ^ Double(p));
    q = static_cast<uint8_t>(q ^ q << 1);
    q = static_cast<uint8_t>(q ^ q << 2);
    q = static_cast<uint8_t>(q ^ q << 4);
    if (q & 0x80) q ^= 0x09;
    box[p] = static_cast<uint8_t>(q ^ std::rotl(q, 1) ^ std::rotl(q, 2) ^ std::rotl(q, 3) ^
                                  std::rotl(q, 4) ^ 0x63);
  } while (p != 1);
  box[0] = 0x63;
  return box;
}
inline constexpr std::array<uint8_t, 256> kSBox = MakeSBox();

}  // namespace aes_detail

// For processors without the instruction; about 60 ns.
inline Block AesRoundPortable(Block block, Block key) {
  using Bytes = std::array<uint8_t, 16>;
  const auto in = std::bit_cast<Bytes>(block);
  Bytes out{};
  for (size_t column = 0; column < 4; ++column) {
    uint8_t s[4];
    for (size_t row = 0; row < 4; ++row)
      s[row] = aes_detail::kSBox[in[(column + row) % 4 * 4 + row]];
    const uint8_t all = s[0] ^ s[1] ^ s[2] ^ s[3];
    for (size_t row = 0; row < 4; ++row) {
      const auto pair = static_cast<uint8_t>(s[row] ^ s[(row + 1) % 4]);
      out[column * 4 + row] = static_cast<uint8_t>(s[row] ^ all ^ aes_detail::Double(pair));
    }
  }
  return std::bit_cast<Block>(out) ^ key;
}

inline Block AesRound(Block block, Block key) {
#if defined(__AES__)
  return std::bit_cast<Block>(
      _mm_aesenc_si128(std::bit_cast<__m128i>(block), std::bit_cast<__m128i>(key)));
#else
  return AesRoundPortable(block, key);
#endif
}

}  // namespace weir::base
