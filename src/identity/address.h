// IP addresses as numbers: parsed strictly, compared by their bits, grouped for keys.
//
// An IPv4-mapped IPv6 address (::ffff:203.0.113.7) is the IPv4 address, whatever its spelling, so
// that one client has one key on every kind of socket. Thread safety: plain values. Nothing here
// allocates but CidrSet::Create.
//
//   std::optional<IpAddress> address = IpAddress::ParseWithPort("[2001:db8::1]:443");
//   IpText text = address->Grouped(64);      // "2001:db8::/64"
//   bool inside = trusted.Contains(*address);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip_text.h"
#include "weir/result.h"

namespace weir::identity {

// An address's or a range's canonical text, inline.
struct IpText {
  std::array<char, 44> chars{};  // 39 for eight full groups, 4 for "/128"
  uint8_t size = 0;

  std::string_view view() const { return {chars.data(), size}; }
};

class IpAddress {
 public:
  constexpr IpAddress() = default;  // 0.0.0.0

  // `bits` in host order.
  static constexpr IpAddress V4(uint32_t bits) { return IpAddress(base::kMappedPrefix | bits); }
  static constexpr IpAddress V6(base::IpBits bits) { return IpAddress(bits); }
  // Network order, as in sockaddr_in and sockaddr_in6.
  static IpAddress FromV4Bytes(std::span<const uint8_t, 4> bytes);
  static IpAddress FromV6Bytes(std::span<const uint8_t, 16> bytes);

  // Exactly one address: four decimal numbers without leading zeros, or RFC 4291 text, without
  // brackets, zone, port or space. Nothing for anything else.
  static std::optional<IpAddress> Parse(std::string_view text);

  // As Parse, and also "203.0.113.7:52241", "[2001:db8::1]" and "[2001:db8::1]:443".
  static std::optional<IpAddress> ParseWithPort(std::string_view text);

  constexpr bool is_v4() const { return base::IsV4(bits_); }
  constexpr uint32_t v4_bits() const { return static_cast<uint32_t>(bits_); }  // REQUIRES: is_v4()
  constexpr base::IpBits bits() const { return bits_; }  // IPv4 as ::ffff:a.b.c.d

  // "203.0.113.7", or RFC 5952 text for IPv6.
  IpText Text() const;

  // The text of the key that this address counts under: itself for IPv4 and for prefix 128, else
  // its IPv6 range as "2001:db8::/64". REQUIRES: 1 <= ipv6_prefix <= 128
  IpText Grouped(int ipv6_prefix) const;

  friend constexpr bool operator==(IpAddress a, IpAddress b) { return a.bits_ == b.bits_; }

 private:
  constexpr explicit IpAddress(base::IpBits bits) : bits_(bits) {}

  base::IpBits bits_ = base::kMappedPrefix;
};

// A set of ranges, immutable once made. Contains is a binary search over merged ranges.
class CidrSet {
 public:
  CidrSet() = default;  // Empty.

  // From "10.0.0.0/8", "2001:db8::/32" or plain addresses. Errors name the text and what is meant,
  // as for bits set behind the prefix. An IPv6 range holds IPv4 addresses only when it is itself
  // IPv4-mapped (::ffff:10.0.0.0/104).
  static Result<CidrSet> Create(std::span<const std::string> ranges);

  bool Contains(IpAddress address) const;
  bool empty() const { return v4_.empty() && v6_.empty(); }

 private:
  struct Range {
    base::IpBits first;
    base::IpBits last;
  };
  static void Merge(std::vector<Range>& ranges);

  std::vector<Range> v4_;  // Sorted, disjoint.
  std::vector<Range> v6_;
};

}  // namespace weir::identity
