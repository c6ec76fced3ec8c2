// 128-bit keyed hash of a tuple of strings: the name under which a store keeps a counter.
//
// Every part goes in with its length, so no two different tuples share a spelling: ("ab","c") and
// ("a","bc") differ. The secret is drawn per process, so callers cannot aim for collisions: each
// block of 16 bytes is added to a secret state and passes three rounds of AES, over which no chosen
// difference survives with a chance above 2^-54 (the wide trail strategy: at least nine active
// S-boxes; Daemen and Rijmen, "The Design of Rijndael", chapter 9). Parts over 16 bytes run in two
// lanes with secrets of their own, since a decision waits for the rounds of one before the table
// can be looked at; the lanes are added up, and a difference cancels when both end alike: again
// 2^-54. It is fast, and it is no MAC: it never leaves the process, and names that do are HMACs
// made elsewhere (base/hmac_id.h).
//
//   KeyHasher hasher = KeyHasher::Random();
//   KeyHasher::State limit = hasher.Begin("per-client");       // Once per limit.
//   Key128 key = KeyHasher::State(limit).Add(client).Finish(); // Once per call.
//
// Thread safety: a KeyHasher is immutable; a State belongs to one thread. Nothing allocates.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/aes_round.h"

namespace weir::base {

struct Key128 {
  uint64_t hi = 0;
  uint64_t lo = 0;

  friend bool operator==(const Key128&, const Key128&) = default;
};

class KeyHasher {
 public:
  class State {
   public:
    // Adds one part of any length and content, empty and binary ones included.
    State& Add(std::string_view part) {
      const char* data = part.data();
      size_t size = part.size();
      if (size <= 16) {
        Mix(&state_, LoadTail(data, size), kLastBlock);
      } else {
        Block odd = state_ ^ odd_lane_;
        for (; size > 32; data += 32, size -= 32) {
          Mix(&state_, LoadBlock(data), kFullBlock);
          Mix(&odd, LoadBlock(data + 16), kFullBlock);
        }
        // 1 to 32 bytes are left of a part of 17 or more: its last 16, after the 16 before them
        // where more than 16 are left.
        if (size > 16) Mix(&state_, LoadBlock(data), kFullBlock);
        Mix(&odd, LoadBlock(data + size - 16), kLastBlock);
        state_ ^= odd;
      }
      // The length comes last, so a tuple can be read back from its end in one way only.
      state_ = AesRound(AesRound(state_ ^ Block{part.size(), kPartMark}, kLength[0]), kLength[1]);
      return *this;
    }

    // Adds a number, such as the index of a limit.
    State& Add(uint64_t number) {
      Mix(&state_, Block{number, kNumberMark}, kNumber);
      return *this;
    }

    Key128 Finish() const { return {state_[1], state_[0]}; }

   private:
    friend class KeyHasher;
    // Round keys tell the kinds of block apart. They are no secret: digits of pi, e and square
    // roots.
    static constexpr Block kFullBlock[3] = {{0x243f6a8885a308d3u, 0x13198a2e03707344u},
                                            {0xa4093822299f31d0u, 0x082efa98ec4e6c89u},
                                            {0x452821e638d01377u, 0xbe5466cf34e90c6cu}};
    static constexpr Block kLastBlock[3] = {{0xb7e151628aed2a6au, 0xbf7158809cf4f3c7u},
                                            {0x62e7160f38b4da56u, 0xa784d9045190cfefu},
                                            {0x324e7738926cfbe5u, 0xf4bf8d8d8c31d763u}};
    static constexpr Block kNumber[3] = {{0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu},
                                         {0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u},
                                         {0x510e527fade682d1u, 0x9b05688c2b3e6c1fu}};
    static constexpr Block kLength[2] = {{0x1f83d9abfb41bd6bu, 0x5be0cd19137e2179u},
                                         {0xcbbb9d5dc1059ed8u, 0x629a292a367cd507u}};
    static constexpr uint64_t kPartMark = 0x9e3779b97f4a7c15u;
    static constexpr uint64_t kNumberMark = 0xd1b54a32d192ed03u;

    template <typename Word>
    static Word Load(const char* data) {
      Word word;
      std::memcpy(&word, data, sizeof(word));
      return word;
    }
    static Block LoadBlock(const char* data) { return Load<Block>(data); }
    // 0 to 16 bytes as one block; the length is mixed in by Add.
    static Block LoadTail(const char* data, size_t size) {
      if (size >= 8) return Block{Load<uint64_t>(data), Load<uint64_t>(data + size - 8)};
      if (size >= 4) return Block{Load<uint32_t>(data), Load<uint32_t>(data + size - 4)};
      if (size == 0) return Block{};
      const auto byte = [&](size_t i) { return uint64_t{static_cast<unsigned char>(data[i])}; };
      return Block{byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16, 0};
    }
    static void Mix(Block* lane, Block block, const Block (&keys)[3]) {
      *lane = AesRound(AesRound(AesRound(*lane ^ block, keys[0]), keys[1]), keys[2]);
    }

    Block state_{};
    Block odd_lane_{};  // Secret; what the second lane's start differs by.
  };

  // A secret from the operating system. Aborts when there is none to be had.
  static KeyHasher Random();
  // A fixed secret, for tests.
  explicit KeyHasher(uint64_t seed);

  // The state after the tuple's first part.
  State Begin(std::string_view first) const { return State(start_).Add(first); }
  State Begin() const { return start_; }

 private:
  KeyHasher() = default;
  State start_;
};

}  // namespace weir::base
