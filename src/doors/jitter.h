// Random bits for announced waits (answers.retry_jitter): SplitMix64 (Steele, Lea, Flood, "Fast
// splittable pseudorandom number generators", OOPSLA 2014). Spread is all that is asked of them;
// they guard nothing.
//
//   uint64_t state = seed;
//   uint64_t bits = NextRandom(state);
//
// Thread safety: none; one owner of the state.
#pragma once

#include <cstdint>

namespace weir::doors {

inline uint64_t NextRandom(uint64_t& state) {
  uint64_t bits = state += 0x9e3779b97f4a7c15u;
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
  return bits ^ bits >> 31;
}

}  // namespace weir::doors
