// Strict base64url (RFC 4648, section 5) without padding, as RFC 7515 has it.
//
// Thread safety: plain functions.
//
//   std::optional<std::string> bytes = DecodeBase64Url("AQAB");     // "\x01\x00\x01"
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace weir::identity {

// Nothing for padding, any other character, an impossible length, or leftover bits that are not
// zero: each byte string has one spelling, so one token has one.
std::optional<std::string> DecodeBase64Url(std::string_view text);

}  // namespace weir::identity
