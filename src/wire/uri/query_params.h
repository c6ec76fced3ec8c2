// Parameters of a query string: name=value pairs between '&'.
//
//   std::string scratch;
//   auto client = uri::FindQueryParam("client=a%20b&n=20", "client", scratch);  // "a b"
//   uri::ForEachQueryParam(query, [](std::string_view name, std::string_view value) { ... });
//
// '+' is a space and %XX a byte, as HTML forms write them; a '%' without two hex digits stands for
// itself. A name without '=' has the value "". Thread safety: pure functions.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::uri {

constexpr int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The text itself when nothing in it is escaped, else a view into `scratch`.
inline std::string_view DecodeQueryText(std::string_view text, std::string& scratch) {
  if (text.find_first_of("%+") == std::string_view::npos) return text;
  scratch.clear();
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const int high = c == '%' && i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
    if (low >= 0) {
      scratch.push_back(static_cast<char>(high * 16 + low));
      i += 2;
    } else {
      scratch.push_back(c == '+' ? ' ' : c);
    }
  }
  return scratch;
}

// Calls visit(name, value) for each pair in order, decoded; the views hold until visit returns.
template <typename Visit>
void ForEachQueryParam(std::string_view query, Visit&& visit) {
  std::string name_scratch;
  std::string value_scratch;
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    if (pair.empty()) continue;
    const size_t equals = pair.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    visit(DecodeQueryText(pair.substr(0, equals), name_scratch),
          DecodeQueryText(value, value_scratch));
  }
}

// The value of the first parameter of that name; a view into `query` or `scratch`.
inline std::optional<std::string_view> FindQueryParam(std::string_view query, std::string_view name,
                                                      std::string& scratch) {
  while (!query.empty()) {
    const size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    query = end == std::string_view::npos ? std::string_view() : query.substr(end + 1);
    const size_t equals = pair.find('=');
    if (DecodeQueryText(pair.substr(0, equals), scratch) != name) continue;
    if (equals == std::string_view::npos) return std::string_view();
    return DecodeQueryText(pair.substr(equals + 1), scratch);
  }
  return std::nullopt;
}

// The first name that comes a second time, or "": of two values nobody knows which is meant.
inline std::string DoubledQueryParam(std::string_view query) {
  if (query.find('&') == std::string_view::npos) return "";
  std::vector<std::string> names;
  ForEachQueryParam(query,
                    [&](std::string_view name, std::string_view) { names.emplace_back(name); });
  std::vector<std::string> sorted = names;
  std::ranges::sort(sorted);
  const auto twice = [&](const std::string& name) {
    const auto [first, last] = std::ranges::equal_range(sorted, name);
    return last - first > 1;
  };
  const auto found = std::ranges::find_if(names, twice);
  return found == names.end() ? "" : *found;
}

}  // namespace weir::uri
