// The keys that tokens are verified with: read from PEM, JWKS or a plain secret, each fit for
// exactly one algorithm.
//
// Thread safety: immutable once read; Verifies may run on any thread.
//
//   Result<std::vector<JwtKey>> keys = ReadJwtKeys(jwks_text, {JwtAlgorithm::kRs256});
//   bool good = keys->front().Verifies(signed_text, signature);
#pragma once

#include <openssl/types.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "identity/jwt.h"
#include "weir/result.h"

namespace weir::identity {

class JwtKey {
 public:
  // REQUIRES: `secret` has at least 32 bytes.
  static JwtKey FromSecret(std::string id, std::string secret);
  // The algorithm follows from the key's type. Errors: neither RSA of at least 2048 bits nor EC on
  // P-256. Takes `key`.
  static Result<JwtKey> FromPublicKey(std::string id, EVP_PKEY* key);

  std::string_view id() const { return id_; }  // `kid`; empty: none.
  JwtAlgorithm algorithm() const { return algorithm_; }

  // `signature` as RFC 7518 has it: 32 bytes for HS256, 64 for ES256, the modulus' length for
  // RS256.
  bool Verifies(std::string_view signed_text, std::string_view signature) const;

 private:
  JwtKey(std::string id, JwtAlgorithm algorithm) : id_(std::move(id)), algorithm_(algorithm) {}

  std::string id_;
  JwtAlgorithm algorithm_;
  std::string secret_;
  std::shared_ptr<EVP_PKEY> key_;
};

// Keys usable with one of `algorithms`; others of a JWKS are passed over, as RFC 7517 wants, but at
// least one must be left. Errors never quote key material.
Result<std::vector<JwtKey>> ReadJwtKeys(std::string_view text,
                                        std::span<const JwtAlgorithm> algorithms);

}  // namespace weir::identity
