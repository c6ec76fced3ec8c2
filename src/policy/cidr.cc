#include "policy/cidr.h"

#include "base/ip_text.h"

namespace weir::policy {
namespace {

AddressBits BytesOf(base::IpBits bits) {
  AddressBits bytes;
  for (size_t i = bytes.size(); i-- > 0; bits >>= 8) bytes[i] = static_cast<uint8_t>(bits);
  return bytes;
}

base::IpBits BitsOf(const AddressBits& bytes) {
  base::IpBits bits = 0;
  for (const uint8_t byte : bytes) bits = bits << 8 | byte;
  return bits;
}

}  // namespace

std::optional<AddressBits> ParseAddress(std::string_view text) {
  const std::optional<base::IpBits> bits = base::ParseIp(text.substr(0, text.find('/')));
  return bits ? std::optional(BytesOf(*bits)) : std::nullopt;
}

Result<Cidr> ParseCidr(std::string_view text) {
  const Result<base::IpRange> range = base::ParseIpRange(text);
  if (!range) return std::unexpected(range.error());
  return Cidr{BytesOf(range->bits), range->prefix_length};
}

bool Contains(const Cidr& range, const AddressBits& address) {
  const base::IpBits differing = BitsOf(range.bits) ^ BitsOf(address);
  return (differing & ~base::HostMask(range.prefix_length)) == 0;
}

std::string ToString(const Cidr& range) {
  return base::ToString({.bits = BitsOf(range.bits), .prefix_length = range.prefix_length});
}

}  // namespace weir::policy
