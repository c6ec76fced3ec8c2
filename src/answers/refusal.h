// Bodies of refusals and errors, in the shape that the client of a path can read: OpenAI's,
// Anthropic's, or application/problem+json (RFC 9457).
//
//   const BodyShape shape = ShapeOf(config, path);
//   AppendTooManyRequests(verdict, shape, advice, {.wall_ns = wall_ns, .model = model}, body);
//   AppendErrorBody(shape, 502, "the upstream did not answer", id, body);
//
// Thread safety: pure functions. Nothing allocates once the buffer has grown.
#pragma once

#include <cstdint>
#include <string_view>

#include "answers/limit_headers.h"
#include "decide/verdict.h"
#include "policy/config.h"
#include "wire/buffer.h"
#include "wire/http1/response_writer.h"

namespace weir::answers {

enum class BodyShape : uint8_t { kOpenAi, kAnthropic, kProblem };

// answers.error_body; with `auto`, what the path's clients expect: OpenAI's endpoints below a `v1`
// segment (/v1/chat/completions, /openai/v1/embeddings), Anthropic's (/v1/messages), else
// problem+json. `canonical_path`: without the query.
BodyShape ShapeOf(const policy::AnswersConfig& config, std::string_view canonical_path);

// "application/json" or "application/problem+json".
std::string_view ContentTypeOf(BodyShape shape);

struct RefusalContext {
  int64_t wall_ns = 0;          // Unix time, for retry_after_at.
  std::string_view model;       // Named in OpenAI's message; may be empty.
  std::string_view request_id;  // Shown where the shape has a place for it; may be empty.
};

// The body of a 429. REQUIRES: the verdict is a denial.
void AppendTooManyRequests(const decide::Verdict& verdict, BodyShape shape,
                           const RetryAdvice& advice, const RefusalContext& context,
                           wire::Buffer& out);

// The body of any other error: 400, 401, 403, 404, 405, 408, 413, 431, 502, 503, 504. `message`:
// one sentence that holds no secret; it is escaped.
void AppendErrorBody(BodyShape shape, int status, std::string_view message,
                     std::string_view request_id, wire::Buffer& out);

// The whole of a denial but for Date and Connection: limit headers, Content-Type, Cache-Control:
// no-store, then the body. `status` is 429 unless a proxy asks for another. Call Begin and the
// caller's own fields first; nothing after.
void FinishTooManyRequests(const decide::Verdict& verdict, const policy::AnswersConfig& config,
                           BodyShape shape, const RetryAdvice& advice,
                           const RefusalContext& context, bool head_only,
                           http1::ResponseWriter& answer);

}  // namespace weir::answers
