// Connect: opens a stream to an endpoint, without blocking the loop.
//
// Thread safety: the loop's thread only.
//
//   Result<std::unique_ptr<Stream>> stream = co_await Connect(loop, endpoint, loop.now_ns() +
//   5'000'000'000);
#pragma once

#include <cstdint>
#include <memory>

#include "net/endpoint.h"
#include "net/event_loop.h"
#include "net/stream.h"
#include "weir/result.h"

namespace weir::net {

// kDeadlineExceeded when `deadline_ns` (monotonic) passes first, kUnavailable when the peer
// refuses.
Task<Result<std::unique_ptr<Stream>>> Connect(EventLoop& loop, Endpoint endpoint,
                                              int64_t deadline_ns);

}  // namespace weir::net
