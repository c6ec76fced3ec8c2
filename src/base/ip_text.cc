#include "base/ip_text.h"

#include <array>
#include <charconv>

namespace weir::base {
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
  IpBits bits = 0;
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

std::optional<IpBits> ParseV6(std::string_view text) {
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
  const IpBits high = left.count == 0 ? IpBits{0} : left.bits << (128 - 16 * left.count);
  return high | right.bits;
}

class Writer {
 public:
  explicit Writer(char* out) : begin_(out), at_(out) {}
  void Put(char c) { *at_++ = c; }
  void PutNumber(uint32_t value, int base) {
    at_ = std::to_chars(at_, begin_ + kIpTextMax, value, base).ptr;
  }
  size_t size() const { return static_cast<size_t>(at_ - begin_); }

 private:
  char* const begin_;
  char* at_;
};

void WriteV4(uint32_t bits, Writer& out) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.PutNumber(bits >> shift & 255, 10);
    if (shift > 0) out.Put('.');
  }
}

// RFC 5952: lower case, no leading zeros, the first longest run of two or more zero groups as "::".
void WriteV6(IpBits bits, Writer& out) {
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

std::string Quoted(std::string_view text) { return "`" + std::string(text) + "`"; }

}  // namespace

std::optional<IpBits> ParseIp(std::string_view text) {
  constexpr size_t kLongest = 45;  // Six groups and a dotted quad.
  if (text.size() > kLongest) return std::nullopt;
  if (text.find(':') != std::string_view::npos) return ParseV6(text);
  const std::optional<uint32_t> bits = ParseV4(text);
  return bits ? std::optional(kMappedPrefix | *bits) : std::nullopt;
}

size_t WriteIp(IpBits bits, char* out) {
  Writer writer(out);
  if (IsV4(bits)) {
    WriteV4(static_cast<uint32_t>(bits), writer);
  } else {
    WriteV6(bits, writer);
  }
  return writer.size();
}

Result<IpRange> ParseIpRange(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string_view address = text.substr(0, slash);
  const std::optional<IpBits> bits = ParseIp(address);
  if (!bits) {
    return InvalidArgument(
        Quoted(text) +
        " is no address or range; write it like `10.0.0.0/8`, `2001:db8::/32` or `192.0.2.7`");
  }
  IpRange range{.bits = *bits};
  if (slash == std::string_view::npos) return range;

  const bool dotted = address.find(':') == std::string_view::npos;
  const int longest = dotted ? 32 : 128;
  const std::string_view digits = text.substr(slash + 1);
  int length = -1;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  const bool plain = fault == std::errc() && end == digits.data() + digits.size() &&
                     (digits[0] != '0' || digits.size() == 1);
  if (!plain || length < 0 || length > longest) {
    return InvalidArgument(Quoted(text) + ": a range's length here is 0 to " +
                           std::to_string(longest));
  }
  range.prefix_length = dotted ? length + kMappedBits : length;
  const IpBits masked = range.bits & ~HostMask(range.prefix_length);
  if (masked != range.bits) {
    const IpRange meant{.bits = masked, .prefix_length = range.prefix_length};
    return InvalidArgument(Quoted(text) + " has bits beyond its length; write " +
                           Quoted(ToString(meant)) + " or " + Quoted(address));
  }
  return range;
}

std::string ToString(const IpRange& range) {
  char text[kIpTextMax];
  const bool v4 = IsV4(range.bits) && range.prefix_length >= kMappedBits;
  return std::string(text, WriteIp(range.bits, text)) + "/" +
         std::to_string(range.prefix_length - (v4 ? kMappedBits : 0));
}

}  // namespace weir::base
