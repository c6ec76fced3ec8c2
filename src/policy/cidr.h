// Addresses and address ranges as bits.
//
//   auto range = ParseCidr("10.0.0.0/8");
//   auto address = ParseAddress("10.1.2.3");
//   bool inside = range && address && Contains(*range, *address);
//
// Thread safety: pure functions of their arguments. Only errors allocate.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policy/attributes.h"
#include "weir/result.h"

namespace weir::policy {

// IPv4 ranges stand as ::ffff:a.b.c.d with 96 added to the length, so IPv4-mapped IPv6 is the IPv4
// address it names.
struct Cidr {
  AddressBits bits{};
  int prefix_length = 128;  // 0 .. 128
  friend bool operator==(const Cidr&, const Cidr&) = default;
};

// IPv4 dotted quad or IPv6 text; a trailing "/LEN" (as in the text of a grouped IPv6 client) is
// ignored. Nothing when it is no address.
std::optional<AddressBits> ParseAddress(std::string_view text);

// "10.0.0.0/8", "2001:db8::/32", or an address alone, which means itself. Bits beyond the length
// must be zero, since `10.1.2.3/8` is more often a mistake than a wish.
Result<Cidr> ParseCidr(std::string_view text);

bool Contains(const Cidr& range, const AddressBits& address);

// Canonical text: "10.0.0.0/8", "2001:db8::/32"
std::string ToString(const Cidr& range);

}  // namespace weir::policy
