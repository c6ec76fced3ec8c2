#include "policy/cidr.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace weir::policy {
namespace {

constexpr int kV4Offset = 96;
constexpr uint8_t kV4Prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool IsV4(const AddressBits& bits) { return std::memcmp(bits.data(), kV4Prefix, 12) == 0; }

// inet_pton wants a terminated text; addresses are short, so it is copied, not allocated.
std::optional<AddressBits> ParseBare(std::string_view text) {
  char terminated[INET6_ADDRSTRLEN];
  if (text.empty() || text.size() >= sizeof(terminated)) return std::nullopt;
  std::memcpy(terminated, text.data(), text.size());
  terminated[text.size()] = '\0';
  if (std::memchr(terminated, '\0', text.size()) != nullptr) return std::nullopt;
  AddressBits bits{};
  if (text.find(':') != std::string_view::npos) {
    if (inet_pton(AF_INET6, terminated, bits.data()) != 1) return std::nullopt;
    return bits;
  }
  std::memcpy(bits.data(), kV4Prefix, sizeof(kV4Prefix));
  if (inet_pton(AF_INET, terminated, bits.data() + sizeof(kV4Prefix)) != 1) return std::nullopt;
  return bits;
}

// Whether the first `length` bits of both are the same.
bool SamePrefix(const AddressBits& a, const AddressBits& b, int length) {
  const auto whole = static_cast<size_t>(length / 8);
  if (std::memcmp(a.data(), b.data(), whole) != 0) return false;
  const int rest = length % 8;
  return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

AddressBits Masked(const AddressBits& bits, int length) {
  AddressBits out{};
  for (int i = 0; i < length; ++i) {
    const auto byte = static_cast<size_t>(i / 8);
    out[byte] = static_cast<uint8_t>(out[byte] | (bits[byte] & (0x80 >> (i % 8))));
  }
  return out;
}

}  // namespace

std::optional<AddressBits> ParseAddress(std::string_view text) {
  return ParseBare(text.substr(0, text.find('/')));
}

Result<Cidr> ParseCidr(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string_view address = text.substr(0, slash);
  const auto bits = ParseBare(address);
  if (!bits) {
    return InvalidArgument(
        "`" + std::string(text) +
        "` is no address or range; write it like `10.0.0.0/8`, `2001:db8::/32` or "
        "`192.0.2.7`");
  }
  Cidr range{*bits, 128};
  if (slash == std::string_view::npos) return range;

  const bool dotted = address.find(':') == std::string_view::npos;
  const int longest = dotted ? 32 : 128;
  const std::string_view digits = text.substr(slash + 1);
  int length = -1;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (code != std::errc() || end != digits.data() + digits.size() || length < 0 ||
      length > longest) {
    return InvalidArgument("`" + std::string(text) + "`: a range's length here is 0 to " +
                           std::to_string(longest));
  }
  range.prefix_length = dotted ? length + kV4Offset : length;
  const AddressBits masked = Masked(range.bits, range.prefix_length);
  if (masked != range.bits) {
    return InvalidArgument("`" + std::string(text) + "` has bits beyond its length; write `" +
                           ToString(Cidr{masked, range.prefix_length}) + "` or `" +
                           std::string(address) + "`");
  }
  return range;
}

bool Contains(const Cidr& range, const AddressBits& address) {
  return SamePrefix(range.bits, address, range.prefix_length);
}

std::string ToString(const Cidr& range) {
  char text[INET6_ADDRSTRLEN];
  const bool v4 = IsV4(range.bits) && range.prefix_length >= kV4Offset;
  if (v4) {
    inet_ntop(AF_INET, range.bits.data() + 12, text, sizeof(text));
  } else {
    inet_ntop(AF_INET6, range.bits.data(), text, sizeof(text));
  }
  return std::string(text) + "/" + std::to_string(range.prefix_length - (v4 ? kV4Offset : 0));
}

}  // namespace weir::policy
