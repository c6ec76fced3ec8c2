// Serves gRPC on a stream that speaks HTTP/2.
//
//   net::Http2Connections connections;                           // one per loop, for its drain
//   loop.Spawn(ServeGrpc(std::move(stream), services, options, drain, connections));
//
// Thread safety: the stream's loop.
#pragma once

#include <memory>

#include "base/task.h"
#include "doors/rls/grpc_connection.h"
#include "net/http2_connection.h"
#include "net/serve_pipelined.h"
#include "net/stream.h"

namespace weir::doors::rls {

// Bounds that fit calls of one short message each. libnghttp2 remembers as many closed streams as
// may be open, and cycles through their memory: no more of them than a cache holds.
inline constexpr http2::SessionLimits kGrpcLimits = {.concurrent_streams_max = 128,
                                                     .header_list_bytes_max = 16 * 1024};

// Serves until the peer closes, breaks the protocol, times out, or a drain or its age ends it. All
// but `stream` must outlive it; `drain` is told of calls that wait for a shared store.
Task<void> ServeGrpc(std::unique_ptr<net::Stream> stream, GrpcServices services,
                     net::Http2Options options, const net::DrainFlag& drain,
                     net::Http2Connections& connections);

}  // namespace weir::doors::rls
