#include "wire/uri/canonical_path.h"

#include <array>
#include <cstdint>

namespace weir::uri {
namespace {

enum class Class : uint8_t {
  kRefused,     // Cannot stand in a path and is not escaped either.
  kUnreserved,  // Letters, digits and -._~
  kOther,    // May stand raw, and an escape of it means something else: sub-delims, ':', '@', '/'.
  kEscaped,  // Printable but no path character: written as an escape.
};

constexpr std::array<Class, 256> MakeClasses() {
  std::array<Class, 256> table{};
  for (int c = 0x21; c < 0x7f; ++c) table[c] = Class::kEscaped;
  for (int c = '0'; c <= '9'; ++c) table[c] = Class::kUnreserved;
  for (int c = 'a'; c <= 'z'; ++c) table[c] = Class::kUnreserved;
  for (int c = 'A'; c <= 'Z'; ++c) table[c] = Class::kUnreserved;
  for (char c : {'-', '.', '_', '~'}) table[static_cast<unsigned char>(c)] = Class::kUnreserved;
  for (char c : {'!', '$', '&', '\'', '(', ')', '*', '+', ',', ';', '=', ':', '@', '/'}) {
    table[static_cast<unsigned char>(c)] = Class::kOther;
  }
  table['#'] = table['?'] = Class::kRefused;
  return table;
}
constexpr std::array<Class, 256> kClasses = MakeClasses();

Class ClassOf(char c) { return kClasses[static_cast<unsigned char>(c)]; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool IsUpperHexDigit(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F'); }

// Whether a segment that begins at `at` is "." or "..", or empty though it is not the last.
bool SegmentNeedsWork(std::string_view path, size_t at) {
  if (at == path.size()) return false;
  if (path[at] == '/') return true;
  if (path[at] != '.') return false;
  if (at + 1 == path.size() || path[at + 1] == '/') return true;
  if (path[at + 1] != '.') return false;
  return at + 2 == path.size() || path[at + 2] == '/';
}

bool IsCanonical(std::string_view path) {
  for (size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    if (c == '/') {
      if (SegmentNeedsWork(path, i + 1)) return false;
    } else if (c == '%') {
      if (i + 2 >= path.size() || !IsUpperHexDigit(path[i + 1]) || !IsUpperHexDigit(path[i + 2])) {
        return false;
      }
      const int byte = HexDigit(path[i + 1]) * 16 + HexDigit(path[i + 2]);
      if (byte == 0 || kClasses[byte] == Class::kUnreserved) return false;
      i += 2;
    } else if (ClassOf(c) != Class::kUnreserved && ClassOf(c) != Class::kOther) {
      return false;
    }
  }
  return true;
}

void AppendEscape(std::string& out, int byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  out.push_back('%');
  out.push_back(kDigits[byte >> 4]);
  out.push_back(kDigits[byte & 15]);
}

// Appends the path with every character in its one spelling, and runs of '/' as one.
// What is wrong, or nullptr.
const char* Respell(std::string_view path, std::string& out) {
  for (size_t i = 0; i < path.size(); ++i) {
    const char c = path[i];
    if (c == '%') {
      const int high = i + 2 < path.size() ? HexDigit(path[i + 1]) : -1;
      const int low = i + 2 < path.size() ? HexDigit(path[i + 2]) : -1;
      if (high < 0 || low < 0) return "a bad escape in the path";
      const int byte = high * 16 + low;
      if (byte == 0) return "a NUL in the path";
      if (kClasses[byte] == Class::kUnreserved) {
        out.push_back(static_cast<char>(byte));
      } else {
        AppendEscape(out, byte);
      }
      i += 2;
    } else if (ClassOf(c) == Class::kRefused) {
      return "a character that no path can hold";
    } else if (ClassOf(c) == Class::kEscaped) {
      AppendEscape(out, static_cast<unsigned char>(c));
    } else if (c != '/' || out.empty() || out.back() != '/') {
      out.push_back(c);
    }
  }
  return nullptr;
}

// Resolves "." and ".." in place. False when ".." leads above the root. The path starts with '/',
// has no empty segment but a last one, and never grows.
bool ResolveDotSegments(std::string& path) {
  size_t to = 0;  // path[0, to) is done; the next segment's '/' goes to `to`.
  size_t at = 0;  // path[at] == '/'
  while (at < path.size()) {
    size_t end = path.find('/', at + 1);
    const bool last = end == std::string::npos;
    if (last) end = path.size();
    const std::string_view segment(path.data() + at + 1, end - at - 1);
    if (segment == "." || segment == "..") {
      if (segment == "..") {
        if (to == 0) return false;
        to = path.rfind('/', to - 1);
      }
      if (last) path[to++] = '/';
    } else {
      for (size_t i = at; i < end; ++i) path[to++] = path[i];
    }
    at = end;
  }
  path.resize(to);
  return true;
}

}  // namespace

CanonicalOutcome CanonicalPath(std::string_view raw_path, std::string& scratch) {
  if (raw_path.empty() || raw_path.front() != '/') {
    return {.path = {}, .error = "a path that does not start with a slash"};
  }
  if (IsCanonical(raw_path)) return {.path = raw_path};
  scratch.clear();
  if (const char* wrong = Respell(raw_path, scratch)) return {.path = {}, .error = wrong};
  if (!ResolveDotSegments(scratch))
    return {.path = {}, .error = "a path that leads above the root"};
  return {.path = scratch};
}

}  // namespace weir::uri
