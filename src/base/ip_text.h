// IP addresses and ranges between text and bits: one reading for all, strict.
//
//   std::optional<base::IpBits> bits = base::ParseIp("203.0.113.7");
//   Result<base::IpRange> range = base::ParseIpRange("10.0.0.0/8");
//   char text[base::kIpTextMax];
//   std::string_view shown(text, base::WriteIp(*bits, text));
//
// IPv4 stands as ::ffff:a.b.c.d, so an IPv4-mapped IPv6 address is the IPv4 address that it names.
// Thread safety: pure functions. Only errors and ToString allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::base {

__extension__ typedef unsigned __int128 IpBits;  // In host order.

inline constexpr IpBits kMappedPrefix = IpBits{0xffff} << 32;
inline constexpr int kMappedBits = 96;    // Of a mapped address, before those of IPv4.
inline constexpr size_t kIpTextMax = 44;  // 39 for eight full groups, 4 for "/128"

constexpr bool IsV4(IpBits bits) { return bits >> 32 == kMappedPrefix >> 32; }

// All ones behind the first `prefix_length` of 128 bits; 0 to 128.
constexpr IpBits HostMask(int prefix_length) {
  return prefix_length == 0 ? ~IpBits{0} : (IpBits{1} << (128 - prefix_length)) - 1;
}

// Exactly one address: four decimal numbers without leading zeros, or RFC 4291 text, without
// brackets, zone, port or space. Nothing for anything else.
std::optional<IpBits> ParseIp(std::string_view text);

// "203.0.113.7", or RFC 5952 text for IPv6. How many characters it wrote: at most 39 of the
// kIpTextMax that `out` has room for.
size_t WriteIp(IpBits bits, char* out);

struct IpRange {
  IpBits bits = 0;
  int prefix_length = 128;  // Of 128 bits, also for IPv4.
};

constexpr bool Contains(const IpRange& range, IpBits bits) {
  return ((range.bits ^ bits) & ~HostMask(range.prefix_length)) == 0;
}

// "10.0.0.0/8", "2001:db8::/32", or an address alone, which means itself. Bits beyond the length
// must be zero, since `10.1.2.3/8` is more often a mistake than a wish.
Result<IpRange> ParseIpRange(std::string_view text);

// "10.0.0.0/8", "2001:db8::/32"
std::string ToString(const IpRange& range);

}  // namespace weir::base
