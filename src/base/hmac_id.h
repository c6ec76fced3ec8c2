// Ids in place of credentials. A client id is HMAC-SHA-256 of the credential under identity.secret,
// cut to 128 bits, with its kind in front: "key:" + 22 characters of base64url. The credential
// itself goes nowhere.
//
// Kinds never share an id, even for equal text: the kind is part of the MAC's input and of the id.
// Thread safety: IdHasher is immutable and may be shared. IdCache belongs to one thread; it borrows
// the hasher.
//
//   Result<IdHasher> hasher = IdHasher::Create(secret);
//   IdCache cache(*hasher);                                     // one per event loop
//   ClientId id = cache.Get(IdKind::kKey, "sk-live-...");       // "key:Xb0c..."
//   Log(id.view());
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/hmac_sha256.h"
#include "base/keyed_hash.h"
#include "weir/result.h"

namespace weir {

enum class IdKind : uint8_t {
  kKey,        // "key:"    an API key
  kJwt,        // "jwt:"    the subject of a verified token
  kHeader,     // "header:" a header that a trusted proxy set
  kIp,         // "ip:"     an address, or its IPv6 prefix
  kAttribute,  // "attr:"   a client named as plain text on the check API; for metrics and logs only
};
inline constexpr int kIdKindCount = 5;

// "key:", "jwt:", "header:", "ip:", "attr:".
std::string_view IdPrefix(IdKind kind);

// An id's text, inline. A default one is empty.
class ClientId {
 public:
  static constexpr size_t kMaxBytes = 7 + 22;  // "header:" and 128 bits in base64url

  std::string_view view() const { return {text_.data(), size_}; }
  bool empty() const { return size_ == 0; }

  friend bool operator==(const ClientId& a, const ClientId& b) { return a.view() == b.view(); }

 private:
  friend class IdHasher;
  std::array<char, kMaxBytes> text_{};
  uint8_t size_ = 0;
};

class IdHasher {
 public:
  static constexpr size_t kMinSecretBytes = 16;

  // Ids under `secret`; equal on every node and after a restart. Error: a secret shorter than
  // kMinSecretBytes.
  static Result<IdHasher> Create(std::string_view secret);

  // Ids under 32 random bytes made now: they hold for this process's life only.
  static Result<IdHasher> CreateRandom();

  // The id of `credential`, which may hold any bytes. About 1 µs; allocates inside OpenSSL. Hot
  // paths go through IdCache.
  ClientId Hash(IdKind kind, std::string_view credential) const;

 private:
  explicit IdHasher(base::HmacSha256 mac) : mac_(std::move(mac)) {}
  static Result<IdHasher> FromKey(std::string_view key);

  base::HmacSha256 mac_;
};

// Remembers the ids of the credentials seen lately: a two-way table from a keyed 128-bit hash of
// the credential to its id. Neither credentials nor anything that leads back to them is kept. About
// 15 ns for a credential seen before.
class IdCache {
 public:
  static constexpr size_t kDefaultEntries = 4096;  // 48 bytes each

  // `entries` is rounded up to a power of two. Borrows `hasher`.
  explicit IdCache(const IdHasher& hasher, size_t entries = kDefaultEntries);

  // What hasher.Hash(kind, credential) gives. Allocates only on a miss.
  ClientId Get(IdKind kind, std::string_view credential);

  uint64_t misses() const { return misses_; }

 private:
  struct Entry {
    base::Key128 key{};  // All zero: empty.
    ClientId id;
  };

  const IdHasher& hasher_;
  base::KeyHasher fast_;
  size_t mask_;
  std::unique_ptr<Entry[]> entries_;
  uint64_t misses_ = 0;
};

}  // namespace weir
