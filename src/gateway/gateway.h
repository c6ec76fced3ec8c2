// Gateway: the HTTP reverse proxy that limits what it forwards. One per event loop.
//
// Each call goes through the same steps: canonical path, route, identity, attributes, Decide; then
// it is refused with the limit headers and a body in the shape that its client reads, or forwarded
// with both bodies streamed.
//
// Thread safety: everything on the loop's thread. Gateways of several loops share nothing but what
// they borrow. Ownership: borrows all of its options. Destroy it before its loop; the calls that it
// serves keep what they need until the loop ends them. The worker, the resolver and the logger must
// outlive the loop's tasks.
//
//   auto gateway = gateway::Gateway::Create({.worker = &worker, .loop = loop.get(), .resolver =
//   &resolver,
//                                            .logger = logger.get(), .drain = &drain}).value();
//   auto listener = net::Listener::Open(*loop, endpoint, [&](std::unique_ptr<net::Stream> stream) {
//     loop->Spawn(gateway->Serve(std::move(stream)));
//   });
#pragma once

#include <memory>

#include "base/task.h"
#include "net/stream.h"
#include "weir/result.h"

namespace weir {
class Logger;
namespace decide {
class Worker;
}
namespace net {
class EventLoop;
class Resolver;
struct DrainFlag;
}  // namespace net
}  // namespace weir

namespace weir::gateway {

class LoopState;

struct GatewayOptions {
  decide::Worker* worker =
      nullptr;  // Required: decides, names clients, and holds the running policy.
  net::EventLoop* loop = nullptr;         // Required.
  net::Resolver* resolver = nullptr;      // Required; shared by all loops.
  Logger* logger = nullptr;               // Null: no access log.
  const net::DrainFlag* drain = nullptr;  // Null: never draining. Read with every answer.
};

class Gateway {
 public:
  // kInvalidArgument: an option is missing.
  static Result<std::unique_ptr<Gateway>> Create(const GatewayOptions& options);
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  // Serves a connection of HTTP/1.1, or a stream of HTTP/2, until it closes. A TLS handshake, where
  // the door has TLS, comes before. The policy's timeouts and bounds apply; a reload reaches every
  // connection with its next call. The number of connections is the caller's to bound.
  Task<void> Serve(std::unique_ptr<net::Stream> stream);

  // Closes the connections that wait for a request, for the end of a drain's delay. While
  // drain->draining is true each answer says `Connection: close`, so clients leave by themselves
  // before that.
  void CloseIdle();

  // Connections being served, and how many of them are in the midst of a call.
  int connections() const;
  int calls() const;

 private:
  explicit Gateway(std::shared_ptr<LoopState> state);
  std::shared_ptr<LoopState> state_;
};

}  // namespace weir::gateway
