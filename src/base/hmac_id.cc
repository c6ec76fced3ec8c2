#include "base/hmac_id.h"

#include <openssl/rand.h>

#include <bit>
#include <string>
#include <utility>

namespace weir {
namespace {

constexpr std::string_view kPrefixes[kIdKindCount] = {"key:", "jwt:", "header:", "ip:", "attr:"};
constexpr char kBase64Url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr size_t kIdBytes = 16;

// 16 bytes as 22 characters, without padding.
char* WriteBase64Url(const unsigned char* bytes, char* out) {
  uint32_t bits = 0;
  int pending = 0;
  for (size_t i = 0; i < kIdBytes; ++i) {
    bits = bits << 8 | bytes[i];
    for (pending += 8; pending >= 6; pending -= 6) *out++ = kBase64Url[bits >> (pending - 6) & 63];
  }
  *out++ = kBase64Url[bits << (6 - pending) & 63];
  return out;
}

}  // namespace

std::string_view IdPrefix(IdKind kind) { return kPrefixes[static_cast<int>(kind)]; }

Result<IdHasher> IdHasher::FromKey(std::string_view key) {
  Result<base::HmacSha256> mac = base::HmacSha256::Create(key);
  if (!mac) return std::unexpected(mac.error());
  return IdHasher(std::move(*mac));
}

Result<IdHasher> IdHasher::Create(std::string_view secret) {
  if (secret.size() < kMinSecretBytes) {
    return InvalidArgument("identity.secret: must have at least " +
                           std::to_string(kMinSecretBytes) + " bytes");
  }
  return FromKey(secret);
}

Result<IdHasher> IdHasher::CreateRandom() {
  unsigned char key[32];
  if (RAND_bytes(key, sizeof(key)) != 1)
    return MakeError(ErrorCode::kInternal, "no random bytes for identity.secret");
  return FromKey({reinterpret_cast<const char*>(key), sizeof(key)});
}

ClientId IdHasher::Hash(IdKind kind, std::string_view credential) const {
  const std::string_view prefix = IdPrefix(kind);
  const base::HmacSha256::Digest digest = mac_.Of({prefix, credential});
  ClientId id;
  char* out = id.text_.data();
  std::memcpy(out, prefix.data(), prefix.size());
  out = WriteBase64Url(digest.data(), out + prefix.size());
  id.size_ = static_cast<uint8_t>(out - id.text_.data());
  return id;
}

IdCache::IdCache(const IdHasher& hasher, size_t entries)
    : hasher_(hasher),
      fast_(base::KeyHasher::Random()),
      mask_(std::bit_ceil(entries < 2 ? size_t{2} : entries) - 1),
      entries_(std::make_unique<Entry[]>(mask_ + 1)) {}

ClientId IdCache::Get(IdKind kind, std::string_view credential) {
  const base::Key128 key = fast_.Begin().Add(static_cast<uint64_t>(kind)).Add(credential).Finish();
  Entry* pair = &entries_[key.lo & mask_ & ~size_t{1}];
  if (pair[0].key == key && !pair[0].id.empty()) return pair[0].id;
  if (pair[1].key == key && !pair[1].id.empty()) return pair[1].id;
  ++misses_;
  pair[1] = pair[0];  // The older of the two goes.
  pair[0] = {key, hasher_.Hash(kind, credential)};
  return pair[0].id;
}

}  // namespace weir
