// Who a call counts against: identity.client's chain, `[api_key, jwt.sub, header.x-user-id, ip]`.
// The first source that the request carries names the client; the address always ends the chain.
// Credentials leave here only as keyed hashes (base/hmac_id.h).
//
// A credential that is present but invalid makes the call a 401, never a fall-through to the next
// source. Such a call still has its address, and `client` is the address's id, so that it is
// charged to ip limits.
//
// Thread safety: IdentityResolver is immutable and shared; IdentityCache belongs to one thread.
// Resolve allocates only when a credential or a token is new to the cache.
//
//   IdentityRequest request(resolver, peer);
//   for (const auto& header : head.headers) request.Offer(header.name, header.value);
//   Identity who = resolver.Resolve(request, cache, now.wall_ns);
//   if (who.outcome != IdentityOutcome::kOk) Answer401(who.reason);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hmac_id.h"
#include "base/keyed_hash.h"
#include "identity/address.h"
#include "identity/credentials.h"
#include "identity/forwarded.h"
#include "identity/jwt.h"
#include "weir/result.h"

namespace weir::identity {

// One link of the chain.
struct ClientSource {
  enum class Kind : uint8_t { kApiKey, kJwtSubject, kHeader, kIp };
  Kind kind = Kind::kIp;
  std::string header;  // kHeader: its name, in lower case.

  friend bool operator==(const ClientSource&, const ClientSource&) = default;
};

// "api_key", "jwt.sub", "header.NAME" or "ip". Error: any other text, or a NAME that is no header
// name of at most 64 bytes.
Result<ClientSource> ParseClientSource(std::string_view text);

struct IdentityOptions {
  std::vector<ClientSource>
      client;  // Empty: the address alone. kIp is added at the end when it is not there.
  std::optional<ClientSource> require;  // Without it: 401.
  std::optional<JwtOptions> jwt;
  CidrSet trusted_proxies;  // Only these name addresses and header identities.
  int ipv6_prefix = 64;     // 1 to 128
};

enum class IdentityOutcome : uint8_t {
  kOk,
  kMissing,  // The required source is absent.
  kInvalid,  // A credential is present and not valid.
};

struct Identity {
  ClientId client;  // With kInvalid and kMissing: the address's id.
  ClientSource::Kind source = ClientSource::Kind::kIp;  // What named it.
  IpAddress address;                                    // The caller's, behind trusted proxies.
  IpText ip;                                            // The key that `per: [ip]` counts under.
  IdentityOutcome outcome = IdentityOutcome::kOk;
  std::string_view
      reason;  // For the 401 answer; empty when kOk. A constant: holds nothing of the request.
};

class IdentityResolver;

// What a request carries that identity can use. Views point into the request's head.
class IdentityRequest {
 public:
  static constexpr size_t kMaxHeaderSources = 4;

  IdentityRequest(const IdentityResolver& resolver, IpAddress peer)
      : resolver_(resolver), peer_(peer) {}

  // Call once for each header line, in order; names in any case. Lines that say nothing here are
  // passed over.
  void Offer(std::string_view name, std::string_view value);

 private:
  friend class IdentityResolver;
  const IdentityResolver& resolver_;
  IpAddress peer_;
  CredentialLines credentials_;
  ForwardedLines forwarded_;
  std::array<SingleLine, kMaxHeaderSources> headers_;
};

// One thread's memory of the credentials and tokens it has seen: bounded, holding keyed hashes and
// ids only. Refused tokens are kept apart, so that a flood of them costs no valid one its place.
class IdentityCache {
 public:
  static constexpr size_t kDefaultTokens = 2048;
  static constexpr size_t kRefusedTokens = 512;

  // Borrows `hasher`: a changed identity.secret takes a new cache, a changed policy does not.
  // `tokens` is rounded up to a power of two.
  explicit IdentityCache(const IdHasher& hasher, size_t tokens = kDefaultTokens);

  IdCache& ids() { return ids_; }
  // How many tokens had to be verified.
  uint64_t token_misses() const { return token_misses_; }

 private:
  friend class IdentityResolver;
  struct Token {
    base::Key128 key{};     // Of the whole token; all zero: empty.
    uint64_t resolver = 0;  // Which one verified it.
    int64_t expires_s = 0;
    ClientId id;
  };
  struct Refused {
    base::Key128 key{};  // As above.
    uint64_t resolver = 0;
    int64_t since_s = 0;
    JwtError error = JwtError::kMalformed;
  };
  Token& SlotOf(const base::Key128& key);
  Refused& RefusedSlotOf(const base::Key128& key) {
    return refused_[key.lo & (kRefusedTokens - 1)];
  }

  IdCache ids_;
  base::KeyHasher fast_;
  size_t mask_;
  std::unique_ptr<Token[]> tokens_;
  std::unique_ptr<Refused[]> refused_;
  uint64_t token_misses_ = 0;
};

class IdentityResolver {
 public:
  // Errors: unusable keys, a source named twice or behind ip, more than kMaxHeaderSources headers,
  // `jwt.sub` without jwt options, header sources without trusted proxies, a prefix out of range.
  static Result<std::unique_ptr<IdentityResolver>> Create(IdentityOptions options);

  // `wall_ns` is for token expiry.
  Identity Resolve(const IdentityRequest& request, IdentityCache& cache, int64_t wall_ns) const;

  const IdentityOptions& options() const { return options_; }

 private:
  friend class IdentityRequest;
  struct Verified {
    ClientId id;
    std::optional<JwtError> error;
  };
  struct Found;
  IdentityResolver(IdentityOptions options, std::optional<JwtVerifier> verifier,
                   std::vector<std::string> headers);
  static Result<void> CheckChain(const std::vector<ClientSource>& chain);
  static Result<std::vector<std::string>> HeadersOf(const IdentityOptions& options);
  // Fills `found`; says why the request is to be refused, or nothing.
  std::string_view Gather(const IdentityRequest& request, IdentityCache& cache, int64_t wall_ns,
                          Found& found) const;
  // Empty: the request has no such source.
  ClientId IdOf(const ClientSource& source, const Found& found, IdentityCache& cache) const;
  Verified VerifyToken(std::string_view token, IdentityCache& cache, int64_t wall_ns) const;

  IdentityOptions options_;
  std::optional<JwtVerifier> verifier_;
  std::vector<std::string> headers_;  // Of header sources, required one included.
  uint64_t serial_;  // Tells this resolver's tokens from those of the policy before it.
};

}  // namespace weir::identity
