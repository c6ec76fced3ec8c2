#include "base/ip_text.h"

#include <gtest/gtest.h>

namespace weir::base {
namespace {

TEST(IpRange, ComparesBitsOfBothFamilies) {
  const auto contains = [](std::string_view range, std::string_view address) {
    return Contains(*ParseIpRange(range), *ParseIp(address));
  };
  EXPECT_TRUE(contains("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(contains("10.0.0.0/8", "11.0.0.1"));
  EXPECT_TRUE(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_TRUE(contains("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(contains("2001:db8::/33", "2001:db8:8000::1"));
  EXPECT_TRUE(contains("0.0.0.0/0", "203.0.113.7"));
  EXPECT_FALSE(contains("0.0.0.0/0", "2001:db8::1"));
  EXPECT_TRUE(contains("::/0", "203.0.113.7"));
  EXPECT_TRUE(contains("192.0.2.7", "192.0.2.7"));
  EXPECT_EQ(ToString(*ParseIpRange("10.0.0.0/8")), "10.0.0.0/8");
  EXPECT_EQ(ToString(*ParseIpRange("192.0.2.7")), "192.0.2.7/32");
  EXPECT_EQ(ToString(*ParseIpRange("2001:DB8::/32")), "2001:db8::/32");
}

TEST(IpRange, RefusesBitsBeyondTheLength) {
  EXPECT_EQ(ParseIpRange("10.1.2.3/8").error().message,
            "`10.1.2.3/8` has bits beyond its length; write `10.0.0.0/8` or `10.1.2.3`");
  EXPECT_EQ(ParseIpRange("10.0.0.0/33").error().message,
            "`10.0.0.0/33`: a range's length here is 0 to 32");
  EXPECT_FALSE(ParseIpRange("10.0.0/8"));
  EXPECT_FALSE(ParseIpRange("010.0.0.1"));
  EXPECT_FALSE(ParseIpRange("10.0.0.0/"));
  EXPECT_FALSE(ParseIpRange(""));
  EXPECT_FALSE(ParseIp(std::string_view("1.2.3.4\0", 8)));
}

}  // namespace
}  // namespace weir::base
