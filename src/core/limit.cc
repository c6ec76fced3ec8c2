// The names of the public vocabulary, as configurations and answers spell them.
#include "weir/limit.h"

#include "weir/decision.h"

namespace weir {

std::string_view UnitName(Unit unit) {
  switch (unit) {
    case Unit::kRequests:
      return "requests";
    case Unit::kTokens:
      return "tokens";
    case Unit::kInputTokens:
      return "input_tokens";
    case Unit::kOutputTokens:
      return "output_tokens";
    case Unit::kUsd:
      return "usd";
    case Unit::kBytes:
      return "bytes";
    case Unit::kParallel:
      return "parallel";
  }
  return "";
}

std::string_view AlgorithmName(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kTokenBucket:
      return "token_bucket";
    case Algorithm::kSlidingWindow:
      return "sliding_window";
    case Algorithm::kSlidingCounter:
      return "sliding_counter";
    case Algorithm::kFixedWindow:
      return "fixed_window";
    case Algorithm::kParallel:
      return "parallel";
  }
  return "";
}

std::string_view SourceName(Source source) {
  switch (source) {
    case Source::kMemory:
      return "memory";
    case Source::kRedis:
      return "redis";
    case Source::kLease:
      return "lease";
    case Source::kDenyCache:
      return "deny_cache";
    case Source::kFallback:
      return "fallback";
  }
  return "";
}

}  // namespace weir
