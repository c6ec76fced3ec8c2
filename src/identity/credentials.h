// The credentials in a request's headers, by syntax alone: API keys and bearer tokens. Nothing is
// verified here.
//
// An API key stands in `Authorization: Bearer`, `x-api-key` or `api-key`, looked for in this order.
// Other Authorization schemes are no keys. A bearer shaped like a JWT is a token, never a key,
// where tokens are verified.
//
// Thread safety: plain values. Views point into the request's headers; nothing allocates.
//
//   CredentialLines lines;
//   lines.AddAuthorization("Bearer sk-1");
//   Credentials found = ReadCredentials(lines, /*jwt_enabled=*/true);   // found.api_key == "sk-1"
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::identity {

inline constexpr size_t kMaxCredentialBytes = 8192;

// One header's value, and whether it came more than once with different text.
struct SingleLine {
  std::string_view value;
  bool present = false;
  bool conflicting = false;

  void Add(std::string_view text) {
    conflicting = conflicting || (present && text != value);
    value = present ? value : text;
    present = true;
  }
};

struct CredentialLines {
  SingleLine authorization;
  SingleLine x_api_key;
  SingleLine api_key;
};

enum class CredentialError : uint8_t {
  kNone,
  kMalformed,    // Not `Bearer SP token`, or an empty key, or bytes outside visible ASCII.
  kTooLong,      // Beyond kMaxCredentialBytes.
  kConflicting,  // One header twice, with different values.
};

struct Credentials {
  std::string_view api_key;  // Empty: none.
  std::string_view jwt;      // Empty: none. Not verified.
  CredentialError error =
      CredentialError::kNone;  // Of any of the headers: the call is refused as a whole.
};

Credentials ReadCredentials(const CredentialLines& lines, bool jwt_enabled);

// Three parts between dots (or the five of an encrypted token), the first of which begins a JSON
// object in base64url. A damaged token still looks like one, so that it is refused and not taken
// for a key.
bool LooksLikeJwt(std::string_view token);

}  // namespace weir::identity
