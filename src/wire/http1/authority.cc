#include "wire/http1/authority.h"

#include <array>

namespace weir::http1 {
namespace {

constexpr std::array<bool, 256> MakeHostTable() {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[c] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[c] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[c] = true;
  // Unreserved, '%' of an escape, and sub-delims without the comma, which could be read as a list.
  for (char c : {'-', '.', '_', '~', '%', '!', '$', '&', '\'', '(', ')', '*', '+', ';', '='}) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}
constexpr std::array<bool, 256> kHostTable = MakeHostTable();

bool IsPort(std::string_view text) {
  if (text.empty() || text.size() > 5) return false;
  int port = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    port = port * 10 + (c - '0');
  }
  return port >= 1 && port <= 65535;
}

// The length of the host at the start of the text, or npos when it is malformed.
size_t HostLength(std::string_view text) {
  if (!text.empty() && text.front() == '[') {
    const size_t close = text.find(']');
    if (close == std::string_view::npos || close < 3) return std::string_view::npos;
    for (char c : text.substr(1, close - 1)) {
      const bool hex = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
      if (!hex && c != ':' && c != '.') return std::string_view::npos;
    }
    return close + 1;
  }
  size_t at = 0;
  while (at < text.size() && kHostTable[static_cast<unsigned char>(text[at])]) ++at;
  return at;
}

}  // namespace

bool IsAuthority(std::string_view text) {
  const size_t host = HostLength(text);
  if (host == std::string_view::npos || host == 0) return false;
  if (host == text.size()) return true;
  return text[host] == ':' && IsPort(text.substr(host + 1));
}

bool IsAuthorityWithPort(std::string_view text) {
  return IsAuthority(text) && HostLength(text) != text.size();
}

std::string_view HostWithoutPort(std::string_view authority) {
  return authority.substr(0, HostLength(authority));
}

}  // namespace weir::http1
