#include "identity/address.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace weir::identity {
namespace {

// Takes a decimal number of 1 to 3 digits, at most 255, without leading zeros.
bool TakeOctet(std::string_view& text, uint32_t& octet) {
  size_t digits = 0;
  octet = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    if (digits == 3 || (digits > 0 && octet == 0)) return false;
    octet = octet * 10 + static_cast<uint32_t>(text[digits++] - '0');
  }
  if (digits == 0 || octet > 255) return false;
  text.remove_prefix(digits);
  return true;
}

std::optional<uint32_t> ParseV4(std::string_view text) {
  uint32_t bits = 0;
  for (int i = 0; i < 4; ++i) {
    if (i > 0) {
      if (!text.starts_with('.')) return std::nullopt;
      text.remove_prefix(1);
    }
    uint32_t octet;
    if (!TakeOctet(text, octet)) return std::nullopt;
    bits = bits << 8 | octet;
  }
  if (!text.empty()) return std::nullopt;
  return bits;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// The groups of one side of "::", read left to right. `dotted` allows IPv4 text in place of the
// last two groups.
struct Groups {
  Bits128 bits = 0;
  int count = 0;

  bool Read(std::string_view text, bool dotted) {
    while (!text.empty()) {
      const size_t end = text.find(':');
      const std::string_view group = text.substr(0, end);
      if (group.find('.') != std::string_view::npos) {
        const std::optional<uint32_t> v4 =
            end == std::string_view::npos && dotted ? ParseV4(group) : std::nullopt;
        if (!v4) return false;
        bits = bits << 32 | *v4;
        count += 2;
        return count <= 8;
      }
      if (!Append(group)) return false;
      if (end == std::string_view::npos) return true;
      text.remove_prefix(end + 1);
      if (text.empty()) return false;  // A single ':' at the end.
    }
    return true;
  }

 private:
  bool Append(std::string_view group) {
    if (group.empty() || group.size() > 4 || ++count > 8) return false;
    uint32_t value = 0;
    for (const char c : group) {
      const int digit = HexDigit(c);
      if (digit < 0) return false;
      value = value << 4 | static_cast<uint32_t>(digit);
    }
    bits = bits << 16 | value;
    return true;
  }
};

std::optional<Bits128> ParseV6(std::string_view text) {
  const size_t gap = text.find("::");
  Groups left;
  if (gap == std::string_view::npos) {
    if (!left.Read(text, /*dotted=*/true) || left.count != 8) return std::nullopt;
    return left.bits;
  }
  Groups right;
  const std::string_view behind = text.substr(gap + 2);
  if (!left.Read(text.substr(0, gap), /*dotted=*/false) || !right.Read(behind, /*dotted=*/true))
    return std::nullopt;
  if (left.count + right.count > 7) return std::nullopt;  // "::" stands for at least one group.
  const Bits128 high = left.count == 0 ? Bits128{0} : left.bits << (128 - 16 * left.count);
  return high | right.bits;
}

bool IsPort(std::string_view text) {
  uint32_t port = 0;
  if (text.empty() || text.size() > 5) return false;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    port = port * 10 + static_cast<uint32_t>(c - '0');
  }
  return port <= 65535;
}

class TextWriter {
 public:
  explicit TextWriter(IpText& text) : text_(text) {}
  void Put(char c) { text_.chars[text_.size++] = c; }
  void PutNumber(uint32_t value, int base) {
    char* const begin = text_.chars.data();
    text_.size = static_cast<uint8_t>(
        std::to_chars(begin + text_.size, begin + text_.chars.size(), value, base).ptr - begin);
  }

 private:
  IpText& text_;
};

void WriteV4(uint32_t bits, TextWriter& out) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.PutNumber(bits >> shift & 255, 10);
    if (shift > 0) out.Put('.');
  }
}

// RFC 5952: lower case, no leading zeros, the first longest run of two or more zero groups as "::".
void WriteV6(Bits128 bits, TextWriter& out) {
  std::array<uint32_t, 8> groups;
  for (int i = 0; i < 8; ++i) groups[i] = static_cast<uint32_t>(bits >> (112 - 16 * i)) & 0xffff;
  int run_begin = 8;
  int run_length = 1;
  for (int i = 0; i < 8;) {
    int end = i;
    while (end < 8 && groups[end] == 0) ++end;
    if (end - i > run_length) {
      run_begin = i;
      run_length = end - i;
    }
    i = end + 1;
  }
  for (int i = 0; i < 8; ++i) {
    if (i == run_begin) {
      out.Put(':');
      out.Put(':');
      i += run_length - 1;
      continue;
    }
    if (i > 0 && i != run_begin + run_length) out.Put(':');
    out.PutNumber(groups[i], 16);
  }
}

// All ones behind the first `prefix` of 128 bits.
constexpr Bits128 HostMask(int prefix) {
  return prefix == 0 ? ~Bits128{0} : (Bits128{1} << (128 - prefix)) - 1;
}

}  // namespace

IpAddress IpAddress::FromV4Bytes(std::span<const uint8_t, 4> bytes) {
  uint32_t bits = 0;
  for (const uint8_t byte : bytes) bits = bits << 8 | byte;
  return V4(bits);
}

IpAddress IpAddress::FromV6Bytes(std::span<const uint8_t, 16> bytes) {
  Bits128 bits = 0;
  for (const uint8_t byte : bytes) bits = bits << 8 | byte;
  return V6(bits);
}

std::optional<IpAddress> IpAddress::Parse(std::string_view text) {
  if (text.size() > 45) return std::nullopt;
  if (text.find(':') == std::string_view::npos) {
    const std::optional<uint32_t> bits = ParseV4(text);
    return bits ? std::optional(V4(*bits)) : std::nullopt;
  }
  const std::optional<Bits128> bits = ParseV6(text);
  return bits ? std::optional(V6(*bits)) : std::nullopt;
}

std::optional<IpAddress> IpAddress::ParseWithPort(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text.substr(1, close - 1);
    const std::string_view behind = text.substr(close + 1);
    if (inside.find(':') == std::string_view::npos) return std::nullopt;  // Brackets are for IPv6.
    if (!behind.empty() && (behind[0] != ':' || !IsPort(behind.substr(1)))) return std::nullopt;
    return Parse(inside);
  }
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos && text.find(':', colon + 1) == std::string_view::npos) {
    return IsPort(text.substr(colon + 1)) ? Parse(text.substr(0, colon)) : std::nullopt;
  }
  return Parse(text);
}

IpText IpAddress::Text() const {
  IpText text;
  TextWriter out(text);
  if (is_v4()) {
    WriteV4(v4_bits(), out);
  } else {
    WriteV6(bits_, out);
  }
  return text;
}

IpText IpAddress::Grouped(int ipv6_prefix) const {
  if (is_v4() || ipv6_prefix >= 128) return Text();
  IpText text;
  TextWriter out(text);
  WriteV6(bits_ & ~HostMask(ipv6_prefix), out);
  out.Put('/');
  out.PutNumber(static_cast<uint32_t>(ipv6_prefix), 10);
  return text;
}

Result<CidrSet> CidrSet::Create(std::span<const std::string> ranges) {
  CidrSet set;
  for (const std::string& range : ranges) {
    const std::string_view text = range;
    const size_t slash = text.find('/');
    const std::string_view base_text = text.substr(0, slash);
    const std::optional<IpAddress> base = IpAddress::Parse(base_text);
    if (!base) {
      return InvalidArgument(
          "\"" + range + "\" is no address range: write 10.0.0.0/8, 2001:db8::/32 or one address");
    }
    const bool written_as_v4 = base_text.find(':') == std::string_view::npos;
    const int width = written_as_v4 ? 32 : 128;
    int prefix = width;
    if (slash != std::string_view::npos) {
      const std::string_view digits = text.substr(slash + 1);
      const auto [end, fault] =
          std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
      const bool plain = fault == std::errc() && end == digits.data() + digits.size() &&
                         digits[0] != '-' && (digits[0] != '0' || digits.size() == 1);
      if (!plain || prefix > width) {
        return InvalidArgument("\"" + range + "\": the prefix length must be 0 to " +
                               std::to_string(width));
      }
    }
    const Bits128 mask = HostMask(prefix + 128 - width);
    const Bits128 first = base->bits() & ~mask;
    if (first != base->bits()) {
      const std::string meant(IpAddress::V6(first).Text().view());
      return InvalidArgument("\"" + range + "\" has bits set behind its prefix; " + meant + "/" +
                             std::to_string(prefix) + " is meant, or the address alone");
    }
    const bool mapped = base->is_v4() && (written_as_v4 || prefix >= 96);
    (mapped ? set.v4_ : set.v6_).push_back({first, base->bits() | mask});
  }
  Merge(set.v4_);
  Merge(set.v6_);
  return set;
}

void CidrSet::Merge(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  std::vector<Range> merged;
  for (const Range& range : ranges) {
    if (!merged.empty() && range.first <= merged.back().last) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  ranges = std::move(merged);
}

bool CidrSet::Contains(IpAddress address) const {
  const std::vector<Range>& ranges = address.is_v4() ? v4_ : v6_;
  const auto behind =
      std::upper_bound(ranges.begin(), ranges.end(), address.bits(),
                       [](Bits128 bits, const Range& range) { return bits < range.first; });
  return behind != ranges.begin() && address.bits() <= std::prev(behind)->last;
}

}  // namespace weir::identity
