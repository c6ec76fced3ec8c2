// Tunnel: bytes both ways between a client and an upstream that have agreed on another protocol
// (WebSocket), until one side is done and the other has said its last, or nothing moved for the
// idle time.
//
// Thread safety: the loop's thread only. Bounds: 16 KiB each way; a slow side slows the other down.
//
//   co_await RunTunnel(client.stream, upstream, early_from_client, early_from_upstream, options);
#pragma once

#include <cstdint>
#include <string_view>

#include "base/task.h"
#include "net/stream.h"

namespace weir::gateway {

struct TunnelOptions {
  int64_t idle_ns = 0;  // Without a byte in either direction: both are closed. 0: no bound.
  int64_t deadline_ns = net::kNoDeadline;  // timeouts.total
};

// `early_*`: what each side sent behind its head; must outlive the call. Both streams are of no use
// afterwards.
Task<void> RunTunnel(net::Stream& client, net::Stream& upstream, std::string_view early_from_client,
                     std::string_view early_from_upstream, TunnelOptions options);

}  // namespace weir::gateway
