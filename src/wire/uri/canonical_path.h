// The one canonical form of a path, used for matching and for forwarding, so that no other spelling
// of a path slips past a rule (RFC 3986, 6.2.2).
//
//   std::string scratch;
//   uri::CanonicalOutcome outcome = uri::CanonicalPath("/v1//chat/%7euser/../x", scratch);
//   if (!outcome.ok()) return BadRequest(outcome.error);
//   Match(uri::WithoutTrailingSlash(outcome.path));   // "/v1/chat/x"
//
// In this order: %XX of an unreserved character is decoded, every other escape kept with upper-case
// hex digits, and a character that a path cannot hold raw ("<>\^`{|}) is escaped; runs of '/'
// become one; "." and ".." segments are resolved. An escaped slash stays escaped and splits
// nothing. Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace weir::uri {

struct CanonicalOutcome {
  std::string_view path;        // The input itself when it was canonical, else a view into scratch.
  const char* error = nullptr;  // What is wrong (answer 400), or nullptr. Static storage.
  bool ok() const { return error == nullptr; }
};

// raw_path: without query, starts with '/'. Allocates only when it is not canonical already and
// scratch is too small. Errors: not starting with '/'; '%' without two hex digits; %00; a control
// character, space, '#', '?' or byte beyond ASCII; ".." above the root.
CanonicalOutcome CanonicalPath(std::string_view raw_path, std::string& scratch);

// The path without its one trailing slash; "/" stays.
constexpr std::string_view WithoutTrailingSlash(std::string_view path) {
  if (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path;
}

}  // namespace weir::uri
