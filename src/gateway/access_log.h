// AccessLog: one line per call, when the logger takes information lines. It names the client by its
// keyed id, never by a credential, and the path without its query, which may hold one.
//
// Thread safety: the loop's thread only. Nothing is gathered when the level is off.
#pragma once

#include "gateway/call.h"

namespace weir::gateway {

// status 499: the client went away before the answer.
void LogCall(LoopState& state, const Call& call);

// The 32 hexadecimal digits of a traceparent field's trace id (W3C Trace Context), or "".
std::string_view TraceIdOf(std::string_view traceparent);

}  // namespace weir::gateway
