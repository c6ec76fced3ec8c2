// The header fields that tell a client where it stands: X-RateLimit-*, RateLimit and
// RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers), Retry-After and retry-after-ms, and the
// x-ratelimit-*-{requests,tokens} that OpenAI's clients read. Which of them: policy::AnswersConfig.
// Shadow limits appear in none.
//
//   const RetryAdvice advice = AdviseRetry(verdict, config, random);
//   answer.Begin(verdict.allowed ? 200 : 429);
//   AppendLimitHeaders(verdict, config, advice, wall_ns, answer.out());
//
// Thread safety: pure functions. Nothing allocates once the buffer has grown.
#pragma once

#include <cstdint>

#include "decide/verdict.h"
#include "policy/config.h"
#include "wire/buffer.h"

namespace weir::answers {

// The wait that one answer announces: the same in its headers and in its body.
struct RetryAdvice {
  bool denied = false;
  bool helps = false;        // Denied, and waiting helps: the following hold.
  int64_t seconds = 0;       // At least 1, rounded up: a client that waits so long passes.
  int64_t milliseconds = 0;  // At least 1, rounded up.
  int64_t added_ns = 0;  // What answers.retry_jitter put on top of the true wait; never below 0.
  bool discourages =
      false;  // SDKs should not retry on their own: over a minute, never, or money spent.
};

// `random`: any 64 random bits; read only when retry_jitter is set.
RetryAdvice AdviseRetry(const decide::Verdict& verdict, const policy::AnswersConfig& config,
                        uint64_t random);

// Appends whole "Name: value\r\n" lines; none when no enforced limit applies. `X-Weir-Source:
// fallback` is there, whatever is configured, when the shared store was away and a limit's own
// terms decided. `wall_ns`: Unix time.
void AppendLimitHeaders(const decide::Verdict& verdict, const policy::AnswersConfig& config,
                        const RetryAdvice& advice, int64_t wall_ns, wire::Buffer& out);

// The names that AppendLimitHeaders can write, for Access-Control-Expose-Headers.
inline constexpr const char* kExposedHeaders =
    "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit, RateLimit-Policy, "
    "Retry-After, "
    "retry-after-ms, x-should-retry, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, "
    "x-ratelimit-reset-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, "
    "x-ratelimit-reset-tokens, X-Weir-Source";

}  // namespace weir::answers
