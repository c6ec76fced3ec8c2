#include "base/hmac_key.h"

#include <gtest/gtest.h>

#include <array>

namespace weir::base {
namespace {

using Tuple = std::array<std::string_view, 2>;

// The values are those of Python's hmac module over the same bytes.
TEST(HmacKeys, AreTruncatedHmacsOfALengthPrefixedTuple) {
  const HmacKeys keys = HmacKeys::Create("0123456789abcdef").value();
  EXPECT_EQ(keys.Of(Tuple{"per-client", "alice"}),
            (Key128{0xcffa923682461306, 0x0a17adc0b5251caa}));
  EXPECT_EQ(keys.Of(Tuple{"", ""}), (Key128{0x60f34bd6bf1a2289, 0x8288ca8794f24780}));
  EXPECT_EQ(keys.Of({}), (Key128{0xfdf8ef497c4f7a9d, 0x40c91db64889a2f9}));
}

TEST(HmacKeys, Case70_NoTwoTuplesShareAName) {
  const HmacKeys keys = HmacKeys::Create("0123456789abcdef").value();
  EXPECT_NE(keys.Of(Tuple{"ab", "c"}), keys.Of(Tuple{"a", "bc"}));
  EXPECT_NE(keys.Of(Tuple{"a", "b"}), keys.Of(Tuple{"a_b", ""}));
  EXPECT_NE(keys.Of(Tuple{"a", "b"}), HmacKeys::Create("0123456789abcdeg")->Of(Tuple{"a", "b"}));
}

}  // namespace
}  // namespace weir::base
