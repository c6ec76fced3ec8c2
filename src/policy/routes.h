// Which upstream serves a call: an exact path first, then the longest prefix, whatever the order in
// the file.
//
//   const Route* route = policy->routes().Find(method, host, path);
//   if (route == nullptr) return NotFound();
//   std::string target;
//   AppendUpstreamPath(*route, path, target);      // "/openai/v1/chat" for rewrite: {prefix:
//   /openai/v1}
//
// Built once, then immutable and safe for all threads. Find does not allocate.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "policy/config.h"
#include "policy/path_pattern.h"

namespace weir::policy {

struct Route {
  PathPattern path;
  std::vector<std::string> methods;  // Empty: every method.
  std::string host;  // Lower case; "*.example.com" for all names below; empty: every host.
  int upstream = 0;  // Index in Config::upstreams.
  std::optional<std::string> rewrite_prefix;  // Put in place of the pattern's fixed part.
  Place place;
};

class RouteTable {
 public:
  RouteTable() = default;

  // Orders the routes by how exact they are: path, then host, then method.
  explicit RouteTable(std::vector<Route> routes);

  // The most exact route for a call, or null. `path` is canonical and without a query; `host` has
  // no port.
  const Route* Find(std::string_view method, std::string_view host, std::string_view path) const;

  // In the order of precedence.
  std::span<const Route> routes() const { return routes_; }

  // Two routes of equal precedence that one call can match, if there are any: such a table is
  // ambiguous.
  std::optional<std::pair<const Route*, const Route*>> FindAmbiguity() const;

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  std::vector<Route> routes_;
  // Literal exact paths, without a trailing slash, to their range in routes_.
  std::unordered_map<std::string, std::pair<int, int>, TextHash, std::equal_to<>> exact_;
  std::vector<int> patterns_;  // Indexes of the routes that exact_ does not hold, ascending.
};

// Appends the path to ask the upstream for (without its base_path). REQUIRES: the route matches
// `path`.
void AppendUpstreamPath(const Route& route, std::string_view path, std::string& out);

}  // namespace weir::policy
