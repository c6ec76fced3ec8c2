// Checks host[:port] as a Host field or a target's authority has it (RFC 3986, 3.2.2), strictly:
// no user, no white space, no comma, and a port of 1 to 65535 or none.
//
//   http1::IsAuthority("api.example.com:8080")   // true
//   http1::IsAuthority("[2001:db8::1]:443")      // true
//
// Thread safety: pure functions.
#pragma once

#include <string_view>

namespace weir::http1 {

bool IsAuthority(std::string_view text);
// The same, and the port must be there.
bool IsAuthorityWithPort(std::string_view text);

// The host without its port: "[2001:db8::1]", "api.example.com". `authority` must be valid.
std::string_view HostWithoutPort(std::string_view authority);

}  // namespace weir::http1
