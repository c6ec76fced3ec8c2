// Opens connections to servers: name, socket, TLS, handshake, all within one deadline.
//
//   Result<Dialed> dialed = co_await dialer.Dial(address, handshake_options, deadline_ns);
//
// Thread safety: the loop's thread only. Ownership: borrows the loop and the resolver; must outlive
// the tasks that it made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/task.h"
#include "net/endpoint.h"
#include "net/event_loop.h"
#include "net/resolver.h"
#include "net/stream.h"
#include "net/tls.h"
#include "redis/client_options.h"
#include "redis/handshake.h"
#include "weir/result.h"

namespace weir::redis {

struct Dialed {
  std::unique_ptr<net::Stream> stream;
  int protocol = 2;
  std::string rest;  // What came after the handshake's last reply.
};

// kInvalidArgument names the file that cannot be used and why.
Result<std::unique_ptr<net::TlsContext>> TlsContextOf(const TlsOptions& tls);

class Dialer {
 public:
  // TLS files that cannot be read make every Dial fail with the reason.
  Dialer(net::EventLoop& loop, net::Resolver& resolver, TlsOptions tls, bool insecure);

  // kDeadlineExceeded, kUnavailable, or what the handshake says. The message names the address and
  // holds no secret. A password is not sent unencrypted off this host unless `insecure`.
  Task<Result<Dialed>> Dial(Address address, Handshake::Options handshake, int64_t deadline_ns);

 private:
  Task<Result<std::unique_ptr<net::Stream>>> Connect(Address address, int64_t deadline_ns);
  Task<Result<void>> Greet(Dialed& dialed, Handshake::Options options, int64_t deadline_ns);

  net::EventLoop& loop_;
  net::Resolver& resolver_;
  const TlsOptions tls_;
  const bool insecure_;
  std::unique_ptr<net::TlsContext> context_;
  Error tls_fault_;
};

}  // namespace weir::redis
