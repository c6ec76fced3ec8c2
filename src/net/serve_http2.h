// Serves an HTTP/2 connection (RFC 9113): each of its streams is served as a connection of its own
// by what serves HTTP/1.1, so that both versions have one decision path and one proxy
// (docs/adr/0005-http2.md).
//
// Thread safety: the loop's thread only. Ownership: Http2Connections outlives the loop's tasks.
//
//   Http2Connections connections;
//   const ServeCall serve = [&](auto call) { return gateway.Serve(std::move(call)); };
//   loop.Spawn(ServeHttp2(std::move(stream), serve, options, connections));
//   connections.BeginDrain();
#pragma once

#include <functional>
#include <memory>

#include "base/task.h"
#include "net/http2_connection.h"
#include "net/stream.h"

namespace weir::net {

// Serves one call: a request arrives on the stream, its answer is written to it, and both end.
using ServeCall = std::function<Task<void>(std::unique_ptr<Stream> stream)>;

// Serves until the peer closes, breaks the protocol, times out, or a drain ends it.
Task<void> ServeHttp2(std::unique_ptr<Stream> stream, ServeCall serve, Http2Options options,
                      Http2Connections& connections);

}  // namespace weir::net
