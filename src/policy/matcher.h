// `match` and `when`: conditions on attributes, all of which must hold.
//
//   Matcher post_chat;   // {method: [POST], path: /v1/chat/*}
//   post_chat.Add(Condition{...});
//   if (post_chat.Matches(call)) ...
//
// Built when a policy is compiled; after that immutable and safe for all threads. Matching neither
// allocates nor blocks; it costs a comparison per pattern.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ip_text.h"
#include "policy/attributes.h"
#include "policy/path_pattern.h"
#include "weir/result.h"

namespace weir::policy {

// One value of a condition, in the form its attribute calls for.
struct Pattern {
  enum class Kind : uint8_t {
    kExact,       // The whole value.
    kPrefix,      // `acme-*`; `*` alone matches any value, the empty one too.
    kCidr,        // ip only.
    kHostSuffix,  // `*.example.com`: any name below, not example.com itself.
    kPath,        // path only.
  };
  Kind kind = Kind::kExact;
  std::string text;  // Exact value, prefix, or suffix with its dot; hosts in lower case.
  base::IpRange range;
  PathPattern path;
  std::string spelling;  // As in the configuration, for messages.

  bool Matches(const Attributes& call, int attribute) const;
  friend bool operator==(const Pattern& a, const Pattern& b) {
    return a.kind == b.kind && a.spelling == b.spelling;
  }
};

// Reads one pattern for the attribute with this index. Errors say what is wrong and what is meant.
Result<Pattern> ParsePattern(int attribute, std::string_view text);

// An attribute and the patterns of which one must match.
struct Condition {
  int attribute = 0;
  std::vector<Pattern> patterns;

  bool Matches(const Attributes& call) const;
  friend bool operator==(const Condition&, const Condition&) = default;
};

// A conjunction of conditions. An empty one matches every call.
// `not: {a: x, b: y}` holds unless both a and b match: it is kept as one group, negated as a whole.
class Matcher {
 public:
  void Add(Condition condition);
  void AddNegated(std::vector<Condition> group);

  // Missing attributes count as empty values.
  bool Matches(const Attributes& call) const;

  // As Matches, but conditions on attributes that are missing count as held. For `missing: deny`.
  bool MatchesPresent(const Attributes& call) const;

  // The attributes that any condition names, negated ones too.
  uint32_t named_mask() const { return named_mask_; }
  bool empty() const { return conditions_.empty() && negated_.empty(); }
  const std::vector<Condition>& conditions() const { return conditions_; }
  const std::vector<std::vector<Condition>>& negated() const { return negated_; }
  friend bool operator==(const Matcher&, const Matcher&) = default;

 private:
  std::vector<Condition> conditions_;
  std::vector<std::vector<Condition>> negated_;
  uint32_t named_mask_ = 0;
};

// Why `matcher` does not match `call`: "method is GET, not POST". Nothing when it does.
std::optional<std::string> WhyNot(const Matcher& matcher, const Attributes& call,
                                  const AttributeTable& names);

// The matcher in words: "method POST, path /v1/*". "every call" when it is empty.
std::string ToString(const Matcher& matcher, const AttributeTable& names);

}  // namespace weir::policy
