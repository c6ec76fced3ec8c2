// Passes an upstream's answer on to the client: head with our fields merged in, then the body as it
// comes, each read written at once. A small answer that has arrived whole leaves with its head in
// one write.
//
// Fields of the upstream that do not pass: hop-by-hop ones; X-RateLimit-*, RateLimit* and
// anthropic-ratelimit-* (they describe the upstream's account, and ours would stand beside them);
// Retry-After and retry-after-ms on a 2xx; Date and Server pass. Its x-request-id becomes
// x-upstream-request-id, since ours names the call in the log.
//
// Thread safety: the loop's thread only. Bounds: 16 KiB are read before they are written, so a slow
// client slows the upstream down and memory stays.
#pragma once

#include "base/task.h"
#include "gateway/call.h"
#include "net/stream.h"

namespace weir::gateway {

enum class RelayEnd : uint8_t {
  kWhole,       // The answer was passed on to its end.
  kClientGone,  // The client could not be written to.
  kCutShort,    // The upstream broke off, or took too long between two pieces.
};

// Passes on the final answer whose head is parsed in call.answer; what follows the head is in
// call.upstream_in. REQUIRES: head_bytes are at the front of call.upstream_in, unconsumed.
Task<RelayEnd> RelayAnswer(LoopState& state, Client& client, Call& call, net::Stream& upstream,
                           size_t head_bytes);

// Appends an interim head (1xx) or the 101 that begins a tunnel, as the client gets it.
void AppendInterimHead(const Call& call, wire::Buffer& out);
void AppendSwitchingHead(const Call& call, wire::Buffer& out);

}  // namespace weir::gateway
