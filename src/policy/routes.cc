#include "policy/routes.h"

#include <algorithm>
#include <tuple>

namespace weir::policy {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool EqualsIgnoringCase(std::string_view value, std::string_view lower) {
  return std::ranges::equal(value, lower, [](char a, char b) { return Lower(a) == b; });
}

bool MatchesHost(const std::string& pattern, std::string_view host) {
  if (pattern.empty()) return true;
  if (!pattern.starts_with("*.")) return EqualsIgnoringCase(host, pattern);
  const std::string_view suffix = std::string_view(pattern).substr(1);
  return host.size() > suffix.size() &&
         EqualsIgnoringCase(host.substr(host.size() - suffix.size()), suffix);
}

bool Accepts(const Route& route, std::string_view method, std::string_view host) {
  return (route.methods.empty() ||
          std::ranges::find(route.methods, method) != route.methods.end()) &&
         MatchesHost(route.host, host);
}

// A name before a wildcard, longer wildcards before shorter ones, any host last.
std::pair<int, int> HostRank(const Route& route) {
  const int kind = route.host.empty() ? 2 : route.host.starts_with("*.") ? 1 : 0;
  return {kind, -static_cast<int>(route.host.size())};
}

bool GoesBefore(const Route& a, const Route& b) {
  const auto order = PathPattern::ByPrecedence(a.path, b.path);
  if (order != 0) return order < 0;
  // Equal patterns must stand together; which of two that cannot match one path goes first is
  // without meaning.
  if (!(a.path == b.path)) return a.path.spelling() < b.path.spelling();
  return std::make_tuple(HostRank(a), a.methods.empty()) <
         std::make_tuple(HostRank(b), b.methods.empty());
}

bool IsLiteral(const PathPattern& path) {
  return path.tail() == PathPattern::Tail::kExact && !path.has_wildcard_segment();
}

std::string_view WithoutTrailingSlash(std::string_view path) {
  if (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

bool ShareAMethod(const Route& a, const Route& b) {
  if (a.methods.empty() || b.methods.empty()) return a.methods.empty() == b.methods.empty();
  return std::ranges::find_first_of(a.methods, b.methods) != a.methods.end();
}

}  // namespace

RouteTable::RouteTable(std::vector<Route> routes) : routes_(std::move(routes)) {
  std::ranges::stable_sort(routes_, GoesBefore);
  for (int i = 0; i < static_cast<int>(routes_.size()); ++i) {
    const PathPattern& path = routes_[static_cast<size_t>(i)].path;
    if (!IsLiteral(path)) {
      patterns_.push_back(i);
      continue;
    }
    const auto [entry, inserted] = exact_.try_emplace(
        std::string(WithoutTrailingSlash(path.spelling())), std::make_pair(i, i + 1));
    if (!inserted) entry->second.second = i + 1;
  }
}

const Route* RouteTable::Find(std::string_view method, std::string_view host,
                              std::string_view path) const {
  if (!path.starts_with('/')) return nullptr;
  if (const auto exact = exact_.find(WithoutTrailingSlash(path)); exact != exact_.end()) {
    for (int i = exact->second.first; i < exact->second.second; ++i) {
      const Route& route = routes_[static_cast<size_t>(i)];
      if (Accepts(route, method, host)) return &route;
    }
  }
  for (int i : patterns_) {
    const Route& route = routes_[static_cast<size_t>(i)];
    if (route.path.Matches(path) && Accepts(route, method, host)) return &route;
  }
  return nullptr;
}

std::optional<std::pair<const Route*, const Route*>> RouteTable::FindAmbiguity() const {
  for (size_t i = 0; i < routes_.size(); ++i) {
    for (size_t j = i + 1; j < routes_.size() && routes_[i].path == routes_[j].path; ++j) {
      const Route& a = routes_[i];
      const Route& b = routes_[j];
      if (a.host != b.host || !ShareAMethod(a, b)) continue;
      const bool in_order = a.place.line < b.place.line ||
                            (a.place.line == b.place.line && a.place.column < b.place.column);
      return in_order ? std::make_pair(&a, &b) : std::make_pair(&b, &a);
    }
  }
  return std::nullopt;
}

void AppendUpstreamPath(const Route& route, std::string_view path, std::string& out) {
  if (!route.rewrite_prefix) {
    out += path;
    return;
  }
  const std::string_view rest = path.substr(route.path.MatchedPrefix(path));
  out += *route.rewrite_prefix;
  out += rest;
  if (rest.empty() && route.rewrite_prefix->empty()) out += '/';
}

}  // namespace weir::policy
