// Answers that the gateway gives itself, in place of an upstream: refusals, errors, preflights.
// Each is built whole in call.out and leaves in one write.
//
// Thread safety: the loop's thread only.
//
//   call.keep_alive = false;
//   RenderError(state, call, 502, "the upstream closed the connection without an answer");
//   co_await client.stream.Write(call.out.View());
#pragma once

#include <string_view>

#include "answers/limit_headers.h"
#include "decide/verdict.h"
#include "gateway/call.h"

namespace weir::gateway {

// An error in the shape that the path's clients read; call.status becomes `status`. `message`: one
// sentence, no secret. The limit headers are in it when the call was decided.
void RenderError(LoopState& state, Call& call, int status, std::string_view message);

// The 429 of a denied call. `verdict` is what the worker has just said.
void RenderDenial(LoopState& state, Call& call, const decide::Verdict& verdict,
                  const answers::RetryAdvice& advice);

// The answer to a CORS preflight.
void RenderPreflight(LoopState& state, Call& call);

// An error for a request whose head could not be read: nothing of it is known. The connection
// closes after it.
void RenderHeadError(LoopState& state, int status, std::string_view reason, wire::Buffer& out);

}  // namespace weir::gateway
