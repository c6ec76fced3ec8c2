// A policy in words, for `weir validate`, `weir explain` and GET /v1/limits. Secrets are redacted
// in all of them.
//
//   std::string words = policy::Describe(*policy);         // "per-client: at most 350 in any
//   minute ..." std::string json = policy::ToJson(*policy); std::string why =
//   policy::Explain(*policy, call, policy::Missing::kSkip);
//
// Thread safety: pure functions of an immutable policy. They allocate; none belongs on the path of
// a call.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/policy.h"

namespace weir::policy {

// The bound of one variant: "at most 350 in any minute", "at most 50 usd in a calendar month
// (Europe/Berlin)". For a token bucket of N per P with capacity B that is N + B in any window of
// length P; each algorithm states its own true bound.
std::string BoundInWords(const Limit& limit, const Variant& variant);

// "300/min, burst 50, token_bucket"
std::string RateInWords(const Variant& variant);

// Where the counter is, when that is not one place for all nodes: "; counted on each node alone".
std::string_view ConsistencyInWords(const Policy& policy, const Limit& limit);

// The whole policy, a line per door, limit and override.
std::string Describe(const Policy& policy);

// Which limits apply to the call, under which keys and overrides, and why the others do not.
std::string Explain(const Policy& policy, const Attributes& call, Missing door);

// As above from `name=value` pairs; error for an undeclared attribute or a pair without '='.
Result<std::string> ExplainPairs(const Policy& policy, const std::vector<std::string>& pairs,
                                 Missing door);

// Which limits apply to a descriptor, given as `key=value` pairs in their order, and why others of
// its domain do not. Error for a pair without '='.
Result<std::string> ExplainDescriptor(const Policy& policy, std::string_view domain,
                                      const std::vector<std::string>& pairs);

// The effective policy with all defaults, one JSON object.
std::string ToJson(const Policy& policy);

}  // namespace weir::policy
