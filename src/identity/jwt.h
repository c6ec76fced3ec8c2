// Verification of JSON Web Tokens (RFC 7519, RFC 7515, RFC 8725): HS256, RS256 and ES256.
//
// The algorithm comes from the configured list and from the key's own type; the token's `alg` has
// to agree with both. So there is no `none`, and a public key is never used as an HMAC secret.
// Encrypted tokens and `crit` are refused.
//
// Thread safety: immutable once made; Verify may run on any thread. It takes 5 to 80 µs and
// allocates, so callers keep a cache of verified tokens (client_identity.h does).
//
//   auto verifier = JwtVerifier::Create({.keys = jwks, .algorithms = {JwtAlgorithm::kEs256}});
//   std::expected<JwtClaims, JwtError> claims = verifier->Verify(token, wall_ns);
//   if (!claims) Refuse(JwtErrorText(claims.error()));
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::identity {

enum class JwtAlgorithm : uint8_t { kHs256, kRs256, kEs256 };

// "HS256", "RS256", "ES256".
std::string_view JwtAlgorithmName(JwtAlgorithm algorithm);
std::optional<JwtAlgorithm> ParseJwtAlgorithm(std::string_view name);

struct JwtOptions {
  // The key file's text: a JWKS (RFC 7517), PEM public keys or certificates, or, for HS256 alone,
  // the secret itself (a last newline does not count).
  std::string keys;
  std::vector<JwtAlgorithm> algorithms;  // What is accepted. At least one.
  std::string issuer;                    // Empty: `iss` is not looked at.
  std::string audience;                  // Empty: `aud` is not looked at.
  std::chrono::seconds leeway{60};       // For clocks that differ: 0 to 1 h.
};

struct JwtClaims {
  std::string subject;
  int64_t expires_s = 0;  // Unix seconds after which the token is refused, leeway included.
};

enum class JwtError : uint8_t {
  kMalformed,   // Not three strict base64url parts of strict JSON, or too long.
  kAlgorithm,   // `alg` is not accepted, or not of the key's type.
  kUnknownKey,  // No key with the token's `kid`, or none for its algorithm.
  kBadSignature,
  kExpired,
  kNotYetValid,
  kNoExpiry,  // `exp` is required.
  kWrongIssuer,
  kWrongAudience,
  kNoSubject,  // `sub` is absent, empty or no string.
};

// A short phrase for the 401 answer, such as "the token has expired". Holds nothing of the token.
std::string_view JwtErrorText(JwtError error);

class JwtVerifier {
 public:
  static constexpr size_t kMaxTokenBytes = 8192;
  static constexpr size_t kMaxKeys = 64;
  static constexpr size_t kMaxSubjectBytes = 1024;

  // Reads the keys. Errors say what is wrong with which key: unusable for every accepted algorithm,
  // an RSA modulus under 2048 bits, an HS256 secret under 32 bytes, a private key, two keys with
  // one `kid`.
  static Result<JwtVerifier> Create(const JwtOptions& options);
  JwtVerifier(JwtVerifier&&) noexcept;
  JwtVerifier& operator=(JwtVerifier&&) noexcept;
  ~JwtVerifier();

  // `wall_ns`: nanoseconds since 1970. The signature is checked before any claim is believed.
  std::expected<JwtClaims, JwtError> Verify(std::string_view token, int64_t wall_ns) const;

 private:
  struct State;
  explicit JwtVerifier(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace weir::identity
