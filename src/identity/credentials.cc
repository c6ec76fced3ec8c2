#include "identity/credentials.h"

#include <algorithm>

namespace weir::identity {
namespace {

constexpr std::string_view kBearer = "bearer";

bool IsBearerScheme(std::string_view scheme) {
  return std::ranges::equal(
      scheme, kBearer, [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a | 0x20 : a) == b; });
}

// Visible ASCII: wider than RFC 6750's token68, because vendors' keys hold ':' and the like; no
// space, no control.
bool IsVisible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

CredentialError CheckKey(const SingleLine& line) {
  if (!line.present) return CredentialError::kNone;
  if (line.conflicting) return CredentialError::kConflicting;
  if (line.value.size() > kMaxCredentialBytes) return CredentialError::kTooLong;
  return line.value.empty() || !IsVisible(line.value) ? CredentialError::kMalformed
                                                      : CredentialError::kNone;
}

// The token behind "Bearer", or empty for other schemes.
CredentialError ReadBearer(const SingleLine& line, std::string_view& token) {
  if (!line.present) return CredentialError::kNone;
  if (line.conflicting) return CredentialError::kConflicting;
  const size_t space = line.value.find_first_of(" \t");
  if (!IsBearerScheme(line.value.substr(0, space))) {
    return line.value.empty() ? CredentialError::kMalformed : CredentialError::kNone;
  }
  if (space == std::string_view::npos || line.value[space] != ' ')
    return CredentialError::kMalformed;
  const std::string_view rest = line.value.substr(space + 1);
  if (rest.size() > kMaxCredentialBytes) return CredentialError::kTooLong;
  if (rest.empty() || !IsVisible(rest)) return CredentialError::kMalformed;
  token = rest;
  return CredentialError::kNone;
}

}  // namespace

bool LooksLikeJwt(std::string_view token) {
  // '{' is 011110 11....: an 'e', then one of the sextets 48 to 63.
  if (token.size() < 2 || token[0] != 'e') return false;
  const char second = token[1];
  const bool object = (second >= 'w' && second <= 'z') || (second >= '0' && second <= '9') ||
                      second == '-' || second == '_';
  if (!object) return false;
  const auto dots = std::ranges::count(token, '.');
  return dots == 2 || dots == 4;
}

Credentials ReadCredentials(const CredentialLines& lines, bool jwt_enabled) {
  Credentials found;
  std::string_view bearer;
  const CredentialError errors[] = {ReadBearer(lines.authorization, bearer),
                                    CheckKey(lines.x_api_key), CheckKey(lines.api_key)};
  for (const CredentialError error : errors) {
    if (error == CredentialError::kNone) continue;
    found.error = error;
    return found;
  }
  if (jwt_enabled && LooksLikeJwt(bearer)) {
    found.jwt = bearer;
  } else {
    found.api_key = bearer;
  }
  if (found.api_key.empty()) found.api_key = lines.x_api_key.value;
  if (found.api_key.empty()) found.api_key = lines.api_key.value;
  return found;
}

}  // namespace weir::identity
