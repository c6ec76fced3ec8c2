#include "base/keyed_hash.h"

#include <sys/random.h>

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
  KeyHasher hasher;
  hasher.start_.a_ = RandomWord();
  hasher.start_.b_ = RandomWord();
  for (uint64_t& secret : hasher.start_.secret_) secret = RandomWord();
  return hasher;
}

KeyHasher::KeyHasher(uint64_t seed) {
  start_.a_ = Spread(&seed);
  start_.b_ = Spread(&seed);
  for (uint64_t& secret : start_.secret_) secret = Spread(&seed);
}

}  // namespace weir::base
