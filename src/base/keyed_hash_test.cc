#include "base/keyed_hash.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weir::base {
namespace {

using Tuple = std::vector<std::string>;

std::pair<uint64_t, uint64_t> HashOf(const KeyHasher& hasher, const Tuple& tuple) {
  KeyHasher::State state = hasher.Begin("limit");
  for (const std::string& part : tuple) state.Add(part);
  const Key128 key = state.Finish();
  return {key.hi, key.lo};
}

TEST(KeyedHashTest, Case70_TuplesThatJoinAlikeDiffer) {
  const std::vector<Tuple> tuples = {{"ab", "c"},  {"a", "bc"},  {"a|b", "c"}, {"a", "b|c"},
                                     {"a:b", "c"}, {"a", "b:c"}, {"a_b", ""},  {"a", "b"},
                                     {"x}{y"},     {"abc"},      {"abc", ""},  {"", "abc"},
                                     {"a_b"},      {},           {""},         {"", ""}};
  const KeyHasher hasher = KeyHasher::Random();
  std::set<std::pair<uint64_t, uint64_t>> seen;
  for (const Tuple& tuple : tuples) {
    EXPECT_TRUE(seen.insert(HashOf(hasher, tuple)).second) << ::testing::PrintToString(tuple);
    EXPECT_EQ(HashOf(hasher, tuple), HashOf(hasher, tuple));
  }
}

TEST(KeyedHashTest, Case71_EveryByteAndEveryLengthCounts) {
  const KeyHasher hasher = KeyHasher::Random();
  std::set<std::pair<uint64_t, uint64_t>> seen;
  size_t tuples = 0;
  for (size_t length = 0; length <= 70; ++length) {
    std::string text(length, '\0');
    ++tuples;
    seen.insert(HashOf(hasher, {text}));
    for (size_t i = 0; i < length; ++i) {
      for (const char c : {'\n', '\xff'}) {
        std::string changed = text;
        changed[i] = c;
        ++tuples;
        seen.insert(HashOf(hasher, {changed}));
      }
    }
  }
  EXPECT_EQ(seen.size(), tuples);
}

// FIPS 197, appendix B: the state after round 1 of the example cipher.
TEST(KeyedHashTest, BothFormsOfARoundAreThatOfTheStandard) {
  const auto block = [](const std::array<uint8_t, 16>& bytes) {
    return std::bit_cast<Block>(bytes);
  };
  const Block start = block({0x19, 0x3d, 0xe3, 0xbe, 0xa0, 0xf4, 0xe2, 0x2b, 0x9a, 0xc6, 0x8d, 0x2a,
                             0xe9, 0xf8, 0x48, 0x08});
  const Block key = block({0xa0, 0xfa, 0xfe, 0x17, 0x88, 0x54, 0x2c, 0xb1, 0x23, 0xa3, 0x39, 0x39,
                           0x2a, 0x6c, 0x76, 0x05});
  const Block after = block({0xa4, 0x9c, 0x7f, 0xf2, 0x68, 0x9f, 0x35, 0x2b, 0x6b, 0x5b, 0xea, 0x43,
                             0x02, 0x6a, 0x50, 0x49});
  const auto words = [](Block b) { return std::pair(b[0], b[1]); };
  EXPECT_EQ(words(AesRoundPortable(start, key)), words(after));
  EXPECT_EQ(words(AesRound(start, key)), words(after));
}

TEST(KeyedHashTest, AnotherSecretGivesAnotherHash) {
  EXPECT_NE(HashOf(KeyHasher::Random(), {"a"}), HashOf(KeyHasher::Random(), {"a"}));
  EXPECT_EQ(HashOf(KeyHasher(7), {"a"}), HashOf(KeyHasher(7), {"a"}));
}

// Sequential keys must fill both words evenly: the table takes lines from one and fingerprints from
// the other.
TEST(KeyedHashTest, SequentialKeysSpread) {
  const KeyHasher hasher(1);
  std::vector<int> hi(256), lo(256);
  for (uint64_t i = 0; i < 256 * 1000; ++i) {
    const Key128 key = hasher.Begin("limit").Add(std::to_string(i)).Finish();
    ++hi[key.hi >> 56];
    ++lo[key.lo & 255];
  }
  for (int i = 0; i < 256; ++i) {  // Six standard deviations of a binomial of mean 1000.
    EXPECT_NEAR(hi[static_cast<size_t>(i)], 1000, 190) << i;
    EXPECT_NEAR(lo[static_cast<size_t>(i)], 1000, 190) << i;
  }
}

}  // namespace
}  // namespace weir::base
