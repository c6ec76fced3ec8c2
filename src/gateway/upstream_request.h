// Builds the head of the request that goes to the upstream.
//
// What changes on the way: the request line carries the canonical path, rewritten as the route
// says, behind the URL's base path; Host is the upstream's; hop-by-hop fields stay here;
// X-Forwarded-For, -Proto and -Host say where the call came from (what an untrusted peer says there
// is dropped); the upstream's configured headers replace the client's, and a configured credential
// replaces every credential of the client's.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>

#include "gateway/call.h"
#include "wire/buffer.h"

namespace weir::gateway {

// Appends the whole head for the URL with this index. REQUIRES: call.target, call.upstream and
// call.body are set.
void AppendUpstreamHead(const Call& call, const Client& client, size_t url, wire::Buffer& out);

// Whether the Upgrade field names only protocols that may pass: never HTTP itself, whose frames
// would go by unlimited.
bool MayUpgrade(const http1::RequestHead& head);

// How the request's body is framed towards the upstream.
bool SendsChunked(const Call& call);

}  // namespace weir::gateway
