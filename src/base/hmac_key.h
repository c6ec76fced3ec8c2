// HmacKeys: the names of counters that leave the process: HMAC-SHA-256 of a length-prefixed tuple
// under identity.secret, cut to 128 bits. Equal on every node that has the secret, and no way back
// to a client without it.
//
//   Result<HmacKeys> keys = HmacKeys::Create(secret);
//   Key128 key = keys->Of(std::array<std::string_view, 2>{limit_identity, client});
//
// Thread safety: immutable; may be shared. About 1 µs a name; allocates inside OpenSSL.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "base/hmac_sha256.h"
#include "base/keyed_hash.h"
#include "weir/result.h"

namespace weir::base {

class HmacKeys {
 public:
  // kInternal when OpenSSL has no HMAC-SHA-256. The key of the MAC is derived from `secret`, so
  // that no counter's name is ever a client's id.
  static Result<HmacKeys> Create(std::string_view secret);
  // Every part goes in with its length: no two different tuples share a name by their spelling.
  Key128 Of(std::span<const std::string_view> parts) const;

 private:
  explicit HmacKeys(HmacSha256 mac) : mac_(std::move(mac)) {}

  HmacSha256 mac_;
};

}  // namespace weir::base
