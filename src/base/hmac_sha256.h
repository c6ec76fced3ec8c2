// HmacSha256: HMAC-SHA-256 (RFC 2104) with its key absorbed once.
//
//   Result<HmacSha256> mac = HmacSha256::Create(secret);
//   HmacSha256::Digest digest = mac->Of({prefix, credential});     // Of the pieces, one after
//   another.
//
// Thread safety: immutable; may be shared. Of allocates inside OpenSSL, and aborts only when there
// is no memory: nothing may go on under a name that is made up.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>

#include "weir/result.h"

namespace weir::base {

class HmacSha256 {
 public:
  using Digest = std::array<unsigned char, 32>;

  // kInternal when OpenSSL has none. `key` may have any length and content.
  static Result<HmacSha256> Create(std::string_view key);
  HmacSha256(HmacSha256&&) noexcept;
  HmacSha256& operator=(HmacSha256&&) noexcept;
  ~HmacSha256();

  Digest Of(std::span<const std::string_view> pieces) const;
  Digest Of(std::initializer_list<std::string_view> pieces) const {
    return Of(std::span<const std::string_view>(pieces.begin(), pieces.size()));
  }

 private:
  struct State;
  explicit HmacSha256(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace weir::base
