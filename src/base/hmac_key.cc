#include "base/hmac_key.h"

#include <string>

namespace weir::base {
namespace {

constexpr std::string_view kPurpose = "weir counter names 1";

uint64_t FromBigEndian(const unsigned char* bytes) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

Result<HmacKeys> HmacKeys::Create(std::string_view secret) {
  const Result<HmacSha256> once = HmacSha256::Create(secret);
  if (!once) return std::unexpected(once.error());
  const HmacSha256::Digest derived = once->Of({kPurpose});
  Result<HmacSha256> mac =
      HmacSha256::Create({reinterpret_cast<const char*>(derived.data()), derived.size()});
  if (!mac) return std::unexpected(mac.error());
  return HmacKeys(std::move(*mac));
}

Key128 HmacKeys::Of(std::span<const std::string_view> parts) const {
  std::string text;
  for (const std::string_view part : parts) {
    for (int shift = 56; shift >= 0; shift -= 8)
      text.push_back(static_cast<char>(uint64_t{part.size()} >> shift));
    text += part;
  }
  const HmacSha256::Digest digest = mac_.Of({text});
  return {FromBigEndian(digest.data()), FromBigEndian(digest.data() + 8)};
}

}  // namespace weir::base
