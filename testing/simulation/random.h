// The only source of chance in a simulation: the same seed gives the same numbers on every machine.
//
//   Random random(seed);
//   if (random.Chance(0.01)) ...   int64_t n = random.Between(1, 6);
//
// Thread safety: one thread.
#pragma once

#include <cmath>
#include <cstdint>

namespace weir::testing {

class Random {
 public:
  // Mixed first: else the numbers of one seed would be those of the next, moved by one.
  explicit Random(uint64_t seed) : state_(seed ^ 0x632be59bd9b4e019u) { state_ = Next(); }

  uint64_t Next() {  // SplitMix64.
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Both ends included. REQUIRES: low <= high.
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }
  // Small numbers as often as large ones.
  int64_t BetweenByScale(int64_t low, int64_t high) {
    const double ratio = static_cast<double>(high) / static_cast<double>(low);
    return static_cast<int64_t>(static_cast<double>(low) * std::pow(ratio, Share()));
  }
  double Share() { return static_cast<double>(Next() >> 11) * 0x1p-53; }  // [0, 1)
  bool Chance(double share) { return Share() < share; }

 private:
  uint64_t state_;
};

}  // namespace weir::testing
