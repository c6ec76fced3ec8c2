#include "base/keyed_hash.h"

#include <sys/random.h>

#include <cstdio>
#include <cstdlib>

namespace weir::base {
namespace {

uint64_t RandomWord() {
  uint64_t word = 0;
  if (getrandom(&word, sizeof(word), 0) != sizeof(word)) std::abort();
  return word;
}

// SplitMix64: spreads a small seed over all bits.
uint64_t Spread(uint64_t* seed) {
  uint64_t z = (*seed += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

KeyHasher KeyHasher::Random() {
#if defined(__AES__)
  // Said here, since the alternative is to die of an illegal instruction at the first key.
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("aes")) {
    std::fputs("weir: this build needs a processor with AES instructions\n", stderr);
    std::abort();
  }
#endif
  KeyHasher hasher;
  hasher.start_.state_ = Block{RandomWord(), RandomWord()};
  hasher.start_.odd_lane_ = Block{RandomWord(), RandomWord()};
  return hasher;
}

KeyHasher::KeyHasher(uint64_t seed) {
  for (Block* secret : {&start_.state_, &start_.odd_lane_}) {
    const uint64_t low = Spread(&seed);
    *secret = Block{low, Spread(&seed)};
  }
}

}  // namespace weir::base
