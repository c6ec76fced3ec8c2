// Serves an HTTP/2 connection (RFC 9113): each of its streams is served as a connection of its own
// by what serves HTTP/1.1, so that both versions have one decision path and one proxy
// (docs/adr/0005-http2.md).
//
// Thread safety: the loop's thread only. Ownership: Http2Connections outlives the loop's tasks.
//
//   Http2Connections connections;
//   loop.Spawn(ServeHttp2(std::move(stream), [&](auto call) { return
//   gateway.Serve(std::move(call)); },
//                         options, connections));
//   connections.BeginDrain();
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/task.h"
#include "net/stream.h"
#include "wire/http2/server_session.h"

namespace weir::net {

class Http2Connection;

// Serves one call: a request arrives on the stream, its answer is written to it, and both end.
using ServeCall = std::function<Task<void>(std::unique_ptr<Stream> stream)>;

struct Http2Options {
  http2::SessionLimits limits;
  int64_t header_timeout_ns = 10'000'000'000;  // From a head's first frame to its last. 0: none.
  int64_t idle_timeout_ns = 75'000'000'000;    // Without a stream. 0: none.
  // For a write to the connection, and without progress of an answer that is complete here. 0:
  // none.
  int64_t write_timeout_ns = 30'000'000'000;
};

// The HTTP/2 connections of one loop, for its drain.
class Http2Connections {
 public:
  // In this order. Asks clients to open no more streams (GOAWAY), those that come all the same are
  // served: on connections whose streams are over, at once or when they are, since many clients
  // take a GOAWAY for the failure of the calls that they have under way.
  void BeginDrain();
  // The same on the others.
  void AskToLeave();
  // Takes no more streams; connections without one are closed, the others when their last is over.
  void CloseIdle();
  // Answers, and writes to connections, that are complete here and not with the client.
  int unsent() const { return unsent_; }

 private:
  friend class Http2Connection;
  Http2Connection* first_ = nullptr;
  int unsent_ = 0;
  bool draining_ = false;
};

// Serves until the peer closes, breaks the protocol, times out, or a drain ends it.
Task<void> ServeHttp2(std::unique_ptr<Stream> stream, ServeCall serve, Http2Options options,
                      Http2Connections& connections);

}  // namespace weir::net
