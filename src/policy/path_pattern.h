// Path patterns of `match` and of routes: `/v1/models`, `/v1/*`, `/v1/chat*`, `/users/{id}/keys`.
//
//   auto pattern = ParsePathPattern("/v1/*");
//   pattern->Matches("/v1")              // true: /* means the path itself and all below
//   pattern->Matches("/v1/chat")         // true
//   pattern->Matches("/v1x")             // false
//
// Paths are canonical (percent-encoding and dot segments resolved by the door) and without a query;
// one trailing slash is ignored on both sides. Immutable after parsing; matching does not allocate.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::policy {

class PathPattern {
 public:
  enum class Tail : uint8_t {
    kExact,   // The path ends where the pattern ends.
    kBelow,   // `/*`: the path itself and all below.
    kPrefix,  // `text*`: any continuation of the last segment, and all below.
  };

  bool Matches(std::string_view path) const;

  // How much of `path` the pattern's fixed part covers, in bytes; what a route's rewrite replaces.
  // REQUIRES: Matches(path).
  size_t MatchedPrefix(std::string_view path) const;

  // Sorts patterns so that the first one that matches is the most exact: exact before prefixes,
  // longer prefixes before shorter ones, literal segments before `{id}`.
  static std::weak_ordering ByPrecedence(const PathPattern& a, const PathPattern& b);

  Tail tail() const { return tail_; }
  bool has_wildcard_segment() const { return has_wildcard_segment_; }
  const std::string& spelling() const { return spelling_; }

  // Equal when they match the same paths; the names of `{id}` segments do not matter.
  friend bool operator==(const PathPattern& a, const PathPattern& b) {
    return a.tail_ == b.tail_ && a.segments_ == b.segments_;
  }

 private:
  friend Result<PathPattern> ParsePathPattern(std::string_view text);

  // Bytes of `path` that the segments consume, or npos.
  size_t Consume(std::string_view path) const;

  std::vector<std::string> segments_;  // "{}" stands for any one segment.
  std::string literal_;                // All of them joined, for patterns without `{}`.
  Tail tail_ = Tail::kExact;
  bool has_wildcard_segment_ = false;
  std::string spelling_;
};

// Errors: no leading '/', '*' elsewhere than at the end, '{' inside a segment, '?' or '#', an empty
// `{}`.
Result<PathPattern> ParsePathPattern(std::string_view text);

}  // namespace weir::policy
