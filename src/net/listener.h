// Listener: accepts connections for one loop. Each loop has its own on the same address
// (SO_REUSEPORT); unix sockets are shared by duplicating the descriptor.
//
// Thread safety: the loop's thread only (Open and Share may be called before Run).
//
//   auto listener = Listener::Open(loop, Endpoint::Parse("127.0.0.1:0").value(), [&](auto stream) {
//   … }).value(); listener->endpoint().port();   // the port that the kernel picked
#pragma once

#include <functional>
#include <memory>

#include "net/endpoint.h"
#include "net/event_loop.h"
#include "net/stream.h"
#include "weir/result.h"

namespace weir::net {

class Listener final : private FdWatcher {
 public:
  using OnAccept = std::move_only_function<void(std::unique_ptr<Stream>)>;

  // Binds and listens; a stale unix socket file that nobody listens on is replaced. kUnavailable
  // names the address and the reason ("127.0.0.1:8080: address already in use").
  static Result<std::unique_ptr<Listener>> Open(EventLoop& loop, const Endpoint& endpoint,
                                                OnAccept on_accept);
  // A second listener for another loop on what `this` is bound to.
  Result<std::unique_ptr<Listener>> Share(EventLoop& loop, OnAccept on_accept) const;
  ~Listener();

  // Stops accepting and closes the socket. A unix socket's file is removed by the one that opened
  // it.
  void Close();
  // What it is bound to, with the real port.
  const Endpoint& endpoint() const { return endpoint_; }

 private:
  static Result<std::unique_ptr<Listener>> Bind(EventLoop& loop, const Endpoint& endpoint,
                                                OnAccept on_accept);
  Listener(EventLoop& loop, int fd, const Endpoint& endpoint, OnAccept on_accept);
  void OnEvents(uint32_t events) override;
  void PauseAccepting();

  EventLoop& loop_;
  int fd_;
  Endpoint endpoint_;
  OnAccept on_accept_;
  Timer resume_;  // Accepting goes on after the process ran out of descriptors.
  bool owns_file_ = false;
};

}  // namespace weir::net
