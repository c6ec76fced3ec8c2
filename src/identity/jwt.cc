#include "identity/jwt.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "identity/base64url.h"
#include "identity/jwt_keys.h"

namespace weir::identity {
namespace {

// NumericDates beyond this (the year 285 million) are taken for this, so that sums stay small.
constexpr int64_t kMaxSeconds = int64_t{1} << 53;

struct Header {
  std::string algorithm;
  std::string key_id;
  bool has_key_id = false;
};

struct Claims {
  std::optional<std::string> subject;
  std::optional<int64_t> expires_s;
  std::optional<int64_t> not_before_s;
  std::string issuer;
  bool has_audience = false;
};

struct Parts {
  std::string_view signed_text;
  std::string_view header;
  std::string_view payload;
  std::string_view signature;
};

std::optional<Parts> Split(std::string_view token) {
  const size_t first = token.find('.');
  if (first == std::string_view::npos) return std::nullopt;
  const size_t second = token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos)
    return std::nullopt;
  return Parts{token.substr(0, second), token.substr(0, first),
               token.substr(first + 1, second - first - 1), token.substr(second + 1)};
}

// Calls `member(name, value)` for each member of the JSON object that `part` encodes; false when it
// is none, or when the call says so. Strings are UTF-8, and names come with their escapes resolved.
template <typename Visit>
bool EachMember(std::string_view part, Visit&& member) {
  const std::optional<std::string> text = DecodeBase64Url(part);
  if (!text) return false;
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const simdjson::padded_string padded(*text);
  if (parser.parse(padded).get_object().get(object) != simdjson::SUCCESS) return false;
  for (const simdjson::dom::key_value_pair field : object) {
    if (!member(field.key, field.value)) return false;
  }
  return true;
}

// Reads a string once: a second member of one name makes the token malformed (RFC 8725, RFC 7519
// section 4).
bool TakeString(simdjson::dom::element value, bool& seen, std::string& out) {
  std::string_view text;
  if (seen || value.get_string().get(text) != simdjson::SUCCESS) return false;
  seen = true;
  out = text;
  return true;
}

std::optional<Header> ReadHeader(std::string_view part) {
  Header header;
  bool has_algorithm = false;
  const bool read = EachMember(part, [&](std::string_view name, simdjson::dom::element value) {
    if (name == "alg") return TakeString(value, has_algorithm, header.algorithm);
    if (name == "kid") return TakeString(value, header.has_key_id, header.key_id);
    return name != "crit" && name != "b64" &&
           name != "zip";  // Extensions that have to be understood, and are not.
  });
  if (!read || !has_algorithm) return std::nullopt;
  return header;
}

// A NumericDate in whole seconds, a fraction rounded down.
bool TakeDate(simdjson::dom::element value, std::optional<int64_t>& out) {
  if (out) return false;
  if (int64_t whole; value.get_int64().get(whole) == simdjson::SUCCESS) {
    out = std::clamp(whole, -kMaxSeconds, kMaxSeconds);
    return true;
  }
  double number;
  if (value.get_double().get(number) != simdjson::SUCCESS || !std::isfinite(number)) return false;
  out = static_cast<int64_t>(std::clamp(std::floor(number), -0x1p53, 0x1p53));
  return true;
}

bool TakeAudience(simdjson::dom::element value, bool& seen, std::string_view wanted,
                  bool& has_audience) {
  if (seen) return false;
  seen = true;
  std::string_view text;
  if (value.get_string().get(text) == simdjson::SUCCESS) {
    has_audience = text == wanted;
    return true;
  }
  simdjson::dom::array list;
  if (value.get_array().get(list) != simdjson::SUCCESS) return false;
  for (const simdjson::dom::element one : list) {
    if (one.get_string().get(text) != simdjson::SUCCESS) return false;
    has_audience = has_audience || text == wanted;
  }
  return true;
}

std::optional<Claims> ReadClaims(std::string_view part, std::string_view audience) {
  Claims claims;
  bool has_subject = false;
  bool has_issuer = false;
  bool seen_audience = false;
  const bool read = EachMember(part, [&](std::string_view name, simdjson::dom::element value) {
    if (name == "sub") return TakeString(value, has_subject, claims.subject.emplace());
    if (name == "iss") return TakeString(value, has_issuer, claims.issuer);
    if (name == "exp") return TakeDate(value, claims.expires_s);
    if (name == "nbf") return TakeDate(value, claims.not_before_s);
    if (name == "aud") return TakeAudience(value, seen_audience, audience, claims.has_audience);
    return true;
  });
  if (!read) return std::nullopt;
  return claims;
}

}  // namespace

std::string_view JwtAlgorithmName(JwtAlgorithm algorithm) {
  constexpr std::string_view kNames[] = {"HS256", "RS256", "ES256"};
  return kNames[static_cast<int>(algorithm)];
}

std::optional<JwtAlgorithm> ParseJwtAlgorithm(std::string_view name) {
  for (const JwtAlgorithm algorithm :
       {JwtAlgorithm::kHs256, JwtAlgorithm::kRs256, JwtAlgorithm::kEs256}) {
    if (JwtAlgorithmName(algorithm) == name) return algorithm;
  }
  return std::nullopt;
}

std::string_view JwtErrorText(JwtError error) {
  switch (error) {
    case JwtError::kMalformed:
      return "the token is malformed";
    case JwtError::kAlgorithm:
      return "the token's algorithm is not accepted";
    case JwtError::kUnknownKey:
      return "the token's key is not known";
    case JwtError::kBadSignature:
      return "the token's signature does not verify";
    case JwtError::kExpired:
      return "the token has expired";
    case JwtError::kNotYetValid:
      return "the token is not valid yet";
    case JwtError::kNoExpiry:
      return "the token has no expiry";
    case JwtError::kWrongIssuer:
      return "the token's issuer is not accepted";
    case JwtError::kWrongAudience:
      return "the token is for another audience";
    case JwtError::kNoSubject:
      return "the token has no subject";
  }
  return "the token is not valid";
}

struct JwtVerifier::State {
  std::vector<JwtAlgorithm> algorithms;
  std::vector<JwtKey> keys;
  std::string issuer;
  std::string audience;
  int64_t leeway_s = 0;

  std::expected<void, JwtError> CheckSignature(const Parts& parts, const Header& header) const;
  std::expected<JwtClaims, JwtError> CheckClaims(Claims claims, int64_t wall_s) const;
};

std::expected<void, JwtError> JwtVerifier::State::CheckSignature(const Parts& parts,
                                                                 const Header& header) const {
  const std::optional<JwtAlgorithm> algorithm = ParseJwtAlgorithm(header.algorithm);
  if (!algorithm || std::ranges::find(algorithms, *algorithm) == algorithms.end()) {
    return std::unexpected(JwtError::kAlgorithm);
  }
  const std::optional<std::string> signature = DecodeBase64Url(parts.signature);
  if (!signature) return std::unexpected(JwtError::kMalformed);
  bool tried = false;
  for (const JwtKey& key : keys) {
    if (header.has_key_id && !key.id().empty() && key.id() != header.key_id) continue;
    if (key.algorithm() != *algorithm) continue;
    tried = true;
    if (key.Verifies(parts.signed_text, *signature)) return {};
  }
  return std::unexpected(tried ? JwtError::kBadSignature : JwtError::kUnknownKey);
}

std::expected<JwtClaims, JwtError> JwtVerifier::State::CheckClaims(Claims claims,
                                                                   int64_t wall_s) const {
  if (!claims.expires_s) return std::unexpected(JwtError::kNoExpiry);
  if (wall_s >= *claims.expires_s + leeway_s) return std::unexpected(JwtError::kExpired);
  if (claims.not_before_s && wall_s < *claims.not_before_s - leeway_s)
    return std::unexpected(JwtError::kNotYetValid);
  if (!issuer.empty() && claims.issuer != issuer) return std::unexpected(JwtError::kWrongIssuer);
  if (!audience.empty() && !claims.has_audience) return std::unexpected(JwtError::kWrongAudience);
  if (!claims.subject || claims.subject->empty()) return std::unexpected(JwtError::kNoSubject);
  if (claims.subject->size() > kMaxSubjectBytes) return std::unexpected(JwtError::kMalformed);
  return JwtClaims{*std::move(claims.subject), *claims.expires_s + leeway_s};
}

JwtVerifier::JwtVerifier(std::unique_ptr<State> state) : state_(std::move(state)) {}
JwtVerifier::JwtVerifier(JwtVerifier&&) noexcept = default;
JwtVerifier& JwtVerifier::operator=(JwtVerifier&&) noexcept = default;
JwtVerifier::~JwtVerifier() = default;

Result<JwtVerifier> JwtVerifier::Create(const JwtOptions& options) {
  if (options.algorithms.empty())
    return InvalidArgument("identity.jwt.algorithms: name at least one");
  if (options.leeway < std::chrono::seconds(0) || options.leeway > std::chrono::hours(1)) {
    return InvalidArgument("identity.jwt.leeway: must be 0s to 1h");
  }
  Result<std::vector<JwtKey>> keys = ReadJwtKeys(options.keys, options.algorithms);
  if (!keys) return std::unexpected(keys.error());
  return JwtVerifier(
      std::make_unique<State>(State{options.algorithms, *std::move(keys), options.issuer,
                                    options.audience, options.leeway.count()}));
}

std::expected<JwtClaims, JwtError> JwtVerifier::Verify(std::string_view token,
                                                       int64_t wall_ns) const {
  if (token.size() > kMaxTokenBytes) return std::unexpected(JwtError::kMalformed);
  const std::optional<Parts> parts = Split(token);
  if (!parts) return std::unexpected(JwtError::kMalformed);
  const std::optional<Header> header = ReadHeader(parts->header);
  if (!header) return std::unexpected(JwtError::kMalformed);
  if (const auto signature = state_->CheckSignature(*parts, *header); !signature) {
    return std::unexpected(signature.error());
  }
  std::optional<Claims> claims = ReadClaims(parts->payload, state_->audience);
  if (!claims) return std::unexpected(JwtError::kMalformed);
  return state_->CheckClaims(*std::move(claims), wall_ns / 1'000'000'000);
}

}  // namespace weir::identity
