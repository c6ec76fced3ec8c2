// Forward: carries an allowed call to its upstream and the answer back.
//
// A call is tried again on another connection, twice at most, only while nothing of an answer has
// arrived and repeating it is safe: when no connection could be made; when the method is idempotent
// and the body is at hand; or when a kept-alive connection turns out to have been closed just then.
// However often it is tried, it was decided and charged once.
//
// Thread safety: the loop's thread only.
#pragma once

#include "base/task.h"
#include "gateway/call.h"

namespace weir::gateway {

// REQUIRES: call.route, call.upstream and call.target are set. The answer, ours where the upstream
// gives none, has been written when it returns; not when the client is gone.
Task<Ending> Forward(LoopState& state, Client& client, Call& call);

}  // namespace weir::gateway
