#include "identity/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace weir::identity {
namespace {

std::string Canonical(std::string_view text) {
  const auto address = IpAddress::Parse(text);
  return address ? std::string(address->Text().view()) : "none";
}

std::string WithPort(std::string_view text) {
  const auto address = IpAddress::ParseWithPort(text);
  return address ? std::string(address->Text().view()) : "none";
}

TEST(IpAddress, CanonicalText) {
  EXPECT_EQ(Canonical("203.0.113.7"), "203.0.113.7");
  EXPECT_EQ(Canonical("0.0.0.0"), "0.0.0.0");
  EXPECT_EQ(Canonical("255.255.255.255"), "255.255.255.255");
  EXPECT_EQ(Canonical("::"), "::");
  EXPECT_EQ(Canonical("::1"), "::1");
  EXPECT_EQ(Canonical("1::"), "1::");
  EXPECT_EQ(Canonical("2001:DB8:0:0:0:0:0:1"), "2001:db8::1");
  EXPECT_EQ(Canonical("2001:0db8::0001"), "2001:db8::1");
  EXPECT_EQ(Canonical("2001:db8:0:1:1:1:1:1"),
            "2001:db8:0:1:1:1:1:1");                            // One zero group is not shortened.
  EXPECT_EQ(Canonical("2001:0:0:1:0:0:0:1"), "2001:0:0:1::1");  // The longest run.
  EXPECT_EQ(Canonical("2001:db8:0:0:1:0:0:1"), "2001:db8::1:0:0:1");  // The first of equal ones.
  EXPECT_EQ(Canonical("1:2:3:4:5:6:0:0"), "1:2:3:4:5:6::");
  EXPECT_EQ(Canonical("64:ff9b::192.0.2.33"), "64:ff9b::c000:221");
  EXPECT_EQ(Canonical("1:2:3:4:5:6:7::"), "1:2:3:4:5:6:7:0");
}

TEST(IpAddress, Case63_MappedAddressesAreIpv4) {
  for (const char* text :
       {"::ffff:203.0.113.7", "::ffff:cb00:7107", "0:0:0:0:0:FFFF:203.0.113.7"}) {
    const auto address = IpAddress::Parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_TRUE(address->is_v4()) << text;
    EXPECT_EQ(*address, *IpAddress::Parse("203.0.113.7")) << text;
    EXPECT_EQ(address->Grouped(64).view(), "203.0.113.7") << text;
  }
  EXPECT_FALSE(IpAddress::Parse("::203.0.113.7")
                   ->is_v4());  // "Compatible", long deprecated: another address.
}

TEST(IpAddress, RefusesEverythingElse) {
  for (const std::string text : {"",
                                 "1",
                                 "1.2.3",
                                 "1.2.3.4.5",
                                 "01.2.3.4",
                                 "1.2.3.256",
                                 "1.2.3.1000",
                                 "1.2.3.4 ",
                                 " 1.2.3.4",
                                 "1.2.3.",
                                 ".1.2.3",
                                 "0x1.2.3.4",
                                 "1..3.4",
                                 "-1.2.3.4",
                                 ":",
                                 ":::",
                                 "1:2:3:4:5:6:7",
                                 "1:2:3:4:5:6:7:8:9",
                                 "1::2::3",
                                 "12345::",
                                 "g::",
                                 "::1%eth0",
                                 "[::1]",
                                 "1:2:3:4:5:6:7::8",
                                 ":1:2:3:4:5:6:7:8",
                                 "1:2:3:4:5:6:7:8:",
                                 "::1.2.3",
                                 "1.2.3.4::",
                                 "::1.2.3.4:5",
                                 "1:2:3:4:5:6:7:1.2.3.4",
                                 "unknown",
                                 "_hidden",
                                 "::ffff:1.2.3.04",
                                 "1:",
                                 ":1",
                                 "::1:"}) {
    EXPECT_EQ(Canonical(text), "none") << text;
  }
  EXPECT_EQ(Canonical(std::string("1.2.3.4\0", 8)), "none");
  EXPECT_EQ(Canonical(std::string(1 << 16, '1')), "none");
}

TEST(IpAddress, Case63_PortsAreStripped) {
  EXPECT_EQ(WithPort("203.0.113.7:52241"), "203.0.113.7");
  EXPECT_EQ(WithPort("203.0.113.7:52252"), "203.0.113.7");
  EXPECT_EQ(WithPort("203.0.113.7"), "203.0.113.7");
  EXPECT_EQ(WithPort("[2001:db8::1]:443"), "2001:db8::1");
  EXPECT_EQ(WithPort("[2001:db8::1]"), "2001:db8::1");
  EXPECT_EQ(WithPort("2001:db8::1"), "2001:db8::1");
  for (const char* text :
       {"203.0.113.7:", "203.0.113.7:65536", "203.0.113.7:-1", "203.0.113.7:80:80", "[2001:db8::1",
        "[2001:db8::1]443", "[2001:db8::1]:", "[1.2.3.4]:80", "[]", "2001:db8::1]:443",
        "[2001:db8::1]:4a", "1.2.3.4:999999"}) {
    EXPECT_EQ(WithPort(text), "none") << text;
  }
}

TEST(IpAddress, Case65_Ipv6IsGroupedByPrefix) {
  EXPECT_EQ(IpAddress::Parse("2001:db8:1:2:3:4:5:6")->Grouped(64).view(), "2001:db8:1:2::/64");
  EXPECT_EQ(IpAddress::Parse("2001:db8:1:2:ffff::9")->Grouped(64).view(), "2001:db8:1:2::/64");
  EXPECT_EQ(IpAddress::Parse("2001:db8:1:3::1")->Grouped(64).view(), "2001:db8:1:3::/64");
  EXPECT_EQ(IpAddress::Parse("2001:db8:1:2::1")->Grouped(128).view(), "2001:db8:1:2::1");
  EXPECT_EQ(IpAddress::Parse("2001:db8:1:2ff::1")->Grouped(56).view(), "2001:db8:1:200::/56");
  EXPECT_EQ(IpAddress::Parse("ffff::")->Grouped(1).view(), "8000::/1");
  EXPECT_EQ(IpAddress::Parse("203.0.113.7")->Grouped(64).view(), "203.0.113.7");
  EXPECT_EQ(IpAddress::Parse("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")->Grouped(127).view(),
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127");
}

TEST(IpAddress, FromNetworkOrder) {
  const uint8_t v4[4] = {203, 0, 113, 7};
  EXPECT_EQ(IpAddress::FromV4Bytes(v4).Text().view(), "203.0.113.7");
  const uint8_t v6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  EXPECT_EQ(IpAddress::FromV6Bytes(v6).Text().view(), "2001:db8::1");
}

base::IpBits Wide(uint64_t high, uint64_t low) { return base::IpBits{high} << 64 | low; }

// Random bits with runs of zero groups, where the shortening has its edges.
rc::Gen<base::IpBits> AnyBits() {
  return rc::gen::map(rc::gen::tuple(rc::gen::arbitrary<uint64_t>(), rc::gen::arbitrary<uint64_t>(),
                                     rc::gen::arbitrary<uint8_t>()),
                      [](const std::tuple<uint64_t, uint64_t, uint8_t>& parts) {
                        base::IpBits bits = Wide(std::get<0>(parts) * 0x9e3779b97f4a7c15u,
                                                 std::get<1>(parts) * 0xd1b54a32d192ed03u);
                        for (int group = 0; group < 8; ++group) {
                          if (std::get<2>(parts) >> group & 1)
                            bits &= ~(base::IpBits{0xffff} << (16 * group));
                        }
                        return bits;
                      });
}

TEST(IpAddress, TextAndBackIsTheSameAddress) {
  EXPECT_TRUE(rc::check("IPv6 round trip, against inet_ntop and inet_pton", [] {
    const IpAddress address = IpAddress::V6(*AnyBits());
    const std::string text(address.Text().view());
    RC_ASSERT(IpAddress::Parse(text) == address);
    RC_ASSERT(IpAddress::ParseWithPort("[" + text + "]:1") ==
              (address.is_v4() ? std::nullopt : std::optional(address)));
    in6_addr raw;
    for (int i = 0; i < 16; ++i)
      raw.s6_addr[i] = static_cast<uint8_t>(address.bits() >> (120 - 8 * i));
    char expected[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, &raw, expected, sizeof(expected));
    RC_ASSERT(IpAddress::Parse(expected) == address);
    RC_ASSERT(IpAddress::FromV6Bytes(raw.s6_addr) == address);
  }));
  EXPECT_TRUE(rc::check("IPv4 round trip", [](uint32_t bits) {
    const IpAddress address = IpAddress::V4(bits);
    RC_ASSERT(IpAddress::Parse(address.Text().view()) == address);
    RC_ASSERT(address.v4_bits() == bits);
  }));
}

TEST(IpAddress, AgreesWithInetPtonOnRandomText) {
  EXPECT_TRUE(rc::check("what inet_pton takes", [] {
    const auto text =
        *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0011259afF::::...")));
    in6_addr raw6;
    in_addr raw4;
    const auto parsed = IpAddress::Parse(text);
    if (inet_pton(AF_INET, text.c_str(), &raw4) == 1) {
      RC_ASSERT(parsed == IpAddress::V4(ntohl(raw4.s_addr)));
    } else if (inet_pton(AF_INET6, text.c_str(), &raw6) == 1) {
      RC_ASSERT(parsed == IpAddress::FromV6Bytes(raw6.s6_addr));
    } else {
      RC_ASSERT(!parsed);
    }
  }));
}

CidrSet Set(std::vector<std::string> ranges) {
  auto set = CidrSet::Create(ranges);
  if (!set) ADD_FAILURE() << set.error().message;
  return set.value_or(CidrSet());
}

bool Holds(const CidrSet& set, std::string_view address) {
  return set.Contains(*IpAddress::Parse(address));
}

TEST(CidrSet, HoldsItsRanges) {
  const CidrSet set = Set({"10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "::1/128", "10.1.0.0/16"});
  EXPECT_TRUE(Holds(set, "10.0.0.0"));
  EXPECT_TRUE(Holds(set, "10.255.255.255"));
  EXPECT_TRUE(Holds(set, "::ffff:10.2.3.4"));
  EXPECT_FALSE(Holds(set, "9.255.255.255"));
  EXPECT_FALSE(Holds(set, "11.0.0.0"));
  EXPECT_TRUE(Holds(set, "192.0.2.1"));
  EXPECT_FALSE(Holds(set, "192.0.2.2"));
  EXPECT_TRUE(Holds(set, "2001:db8:ffff::"));
  EXPECT_FALSE(Holds(set, "2001:db9::"));
  EXPECT_TRUE(Holds(set, "::1"));
  EXPECT_FALSE(Holds(set, "::2"));
  EXPECT_FALSE(CidrSet().Contains(IpAddress()));
}

TEST(CidrSet, Ipv6RangesHoldNoIpv4UnlessMapped) {
  EXPECT_FALSE(Holds(Set({"::/0"}), "203.0.113.7"));
  EXPECT_TRUE(Holds(Set({"::/0"}), "2001:db8::1"));
  EXPECT_TRUE(Holds(Set({"0.0.0.0/0"}), "203.0.113.7"));
  EXPECT_FALSE(Holds(Set({"0.0.0.0/0"}), "2001:db8::1"));
  EXPECT_TRUE(Holds(Set({"::ffff:10.0.0.0/104"}), "10.9.9.9"));
  EXPECT_FALSE(Holds(Set({"::ffff:10.0.0.0/104"}), "11.0.0.0"));
}

TEST(CidrSet, ErrorsSayWhatIsMeant) {
  const auto message = [](const std::string& range) {
    const auto set = CidrSet::Create(std::vector<std::string>{range});
    return set ? std::string("accepted") : set.error().message;
  };
  EXPECT_EQ(message("10.0.0.1/8"),
            "`10.0.0.1/8` has bits beyond its length; write `10.0.0.0/8` or `10.0.0.1`");
  EXPECT_EQ(message("::ffff:10.0.0.1/104"),
            "`::ffff:10.0.0.1/104` has bits beyond its length; write `10.0.0.0/8` or "
            "`::ffff:10.0.0.1`");
  EXPECT_EQ(message("10.0.0.0/33"), "`10.0.0.0/33`: a range's length here is 0 to 32");
  EXPECT_EQ(message("10.0.0.0/"), "`10.0.0.0/`: a range's length here is 0 to 32");
  EXPECT_EQ(message("10.0.0.0/08"), "`10.0.0.0/08`: a range's length here is 0 to 32");
  EXPECT_EQ(message("10.0.0.0/-1"), "`10.0.0.0/-1`: a range's length here is 0 to 32");
  EXPECT_EQ(message("2001:db8::/129"), "`2001:db8::/129`: a range's length here is 0 to 128");
  const std::string example = "write it like `10.0.0.0/8`, `2001:db8::/32` or `192.0.2.7`";
  EXPECT_EQ(message("10.0.0/8"), "`10.0.0/8` is no address or range; " + example);
  EXPECT_EQ(message(""), "`` is no address or range; " + example);
}

TEST(CidrSet, AgreesWithOneRangeAtATime) {
  EXPECT_TRUE(rc::check("merged ranges against a plain scan", [] {
    struct Plain {
      uint32_t base;
      int prefix;
    };
    std::vector<Plain> plain;
    std::vector<std::string> ranges;
    const auto parts = *rc::gen::container<std::vector<std::pair<uint32_t, int>>>(
        rc::gen::pair(rc::gen::arbitrary<uint32_t>(), rc::gen::inRange(0, 33)));
    for (const auto& [bits, prefix] : parts) {
      const uint32_t mask = prefix == 0 ? 0 : ~uint32_t{0} << (32 - prefix);
      plain.push_back({bits & mask, prefix});
      ranges.push_back(std::string(IpAddress::V4(bits & mask).Text().view()) + "/" +
                       std::to_string(prefix));
    }
    const CidrSet set = CidrSet::Create(ranges).value();
    std::vector<uint32_t> probes = *rc::gen::arbitrary<std::vector<uint32_t>>();
    for (const Plain& range : plain) {  // The edges of every range.
      const uint32_t size = range.prefix == 0 ? 0 : uint32_t{1} << (32 - range.prefix) % 32;
      for (const uint32_t probe :
           {range.base, range.base - 1, range.base + size, range.base + size - 1}) {
        probes.push_back(probe);
      }
    }
    for (const uint32_t probe : probes) {
      bool expected = false;
      for (const Plain& range : plain) {
        expected =
            expected || range.prefix == 0 || (probe ^ range.base) >> (32 - range.prefix) == 0;
      }
      RC_ASSERT(set.Contains(IpAddress::V4(probe)) == expected);
    }
  }));
}

}  // namespace
}  // namespace weir::identity
