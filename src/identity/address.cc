#include "identity/address.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/ip_text.h"

namespace weir::identity {
namespace {

bool IsPort(std::string_view text) {
  uint32_t port = 0;
  if (text.empty() || text.size() > 5) return false;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    port = port * 10 + static_cast<uint32_t>(c - '0');
  }
  return port <= 65535;
}

}  // namespace

IpAddress IpAddress::FromV4Bytes(std::span<const uint8_t, 4> bytes) {
  uint32_t bits = 0;
  for (const uint8_t byte : bytes) bits = bits << 8 | byte;
  return V4(bits);
}

IpAddress IpAddress::FromV6Bytes(std::span<const uint8_t, 16> bytes) {
  base::IpBits bits = 0;
  for (const uint8_t byte : bytes) bits = bits << 8 | byte;
  return V6(bits);
}

std::optional<IpAddress> IpAddress::Parse(std::string_view text) {
  const std::optional<base::IpBits> bits = base::ParseIp(text);
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
  text.size = static_cast<uint8_t>(base::WriteIp(bits_, text.chars.data()));
  return text;
}

IpText IpAddress::Grouped(int ipv6_prefix) const {
  if (is_v4() || ipv6_prefix >= 128) return Text();
  IpText text = V6(bits_ & ~base::HostMask(ipv6_prefix)).Text();
  char* const end = text.chars.data() + text.size;
  *end = '/';
  char* const limit = text.chars.data() + text.chars.size();
  text.size =
      static_cast<uint8_t>(std::to_chars(end + 1, limit, ipv6_prefix).ptr - text.chars.data());
  return text;
}

Result<CidrSet> CidrSet::Create(std::span<const std::string> ranges) {
  CidrSet set;
  for (const std::string& text : ranges) {
    const Result<base::IpRange> range = base::ParseIpRange(text);
    if (!range) return std::unexpected(range.error());
    const bool mapped = base::IsV4(range->bits) && range->prefix_length >= base::kMappedBits;
    (mapped ? set.v4_ : set.v6_)
        .push_back({range->bits, range->bits | base::HostMask(range->prefix_length)});
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
                       [](base::IpBits bits, const Range& range) { return bits < range.first; });
  return behind != ranges.begin() && address.bits() <= std::prev(behind)->last;
}

}  // namespace weir::identity
