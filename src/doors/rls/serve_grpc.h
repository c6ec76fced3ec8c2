// Serves gRPC on a stream that speaks HTTP/2.
//
//   GrpcConnections connections;                                 // one per loop, for its drain
//   loop.Spawn(ServeGrpc(std::move(stream), services, options, drain, connections));
//
// Thread safety: the stream's loop.
#pragma once

#include <cstdint>
#include <memory>

#include "base/task.h"
#include "doors/rls/grpc_connection.h"
#include "net/serve_pipelined.h"
#include "net/stream.h"
#include "wire/http2/server_session.h"

namespace weir::doors::rls {

struct GrpcOptions {
  http2::SessionLimits limits = {.concurrent_streams_max = 1024,
                                 .header_list_bytes_max = 16 * 1024};
  int64_t idle_timeout_ns = 75'000'000'000;   // Without a call. 0: none.
  int64_t write_timeout_ns = 30'000'000'000;  // 0: none.
  int64_t head_timeout_ns = 10'000'000'000;   // For the first call's head to arrive. 0: none.
  // At about this age a connection is asked to go, so that clients spread over servers that have
  // come since. 0: never.
  int64_t max_connection_age_ns = 0;
};

class GrpcSocket;

// The connections of one loop.
class GrpcConnections {
 public:
  // Asks clients to open no more calls here; those that come all the same are answered.
  void BeginDrain();
  // Closes what has no call under way.
  void CloseIdle();

 private:
  friend class GrpcSocket;
  GrpcSocket* first_ = nullptr;
  bool draining_ = false;
};

// Serves until the peer closes, breaks the protocol, times out, or a drain or its age ends it. All
// but `stream` must outlive it.
Task<void> ServeGrpc(std::unique_ptr<net::Stream> stream, GrpcServices services,
                     GrpcOptions options, const net::DrainFlag& drain,
                     GrpcConnections& connections);

}  // namespace weir::doors::rls
