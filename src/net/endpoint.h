// Endpoint: an address that a socket can be bound or connected to: IPv4, IPv6 or a unix socket's
// path.
//
// Thread safety: plain values.
//
//   Result<Endpoint> endpoint = Endpoint::Parse("127.0.0.1:8080");   // or "[::1]:0",
//   "unix:/run/weir.sock"
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::net {

class Endpoint {
 public:
  Endpoint() = default;
  // A literal address with a port, or unix:PATH. Names are for the Resolver. kInvalidArgument says
  // what is wrong.
  static Result<Endpoint> Parse(std::string_view text);
  static Endpoint FromSockaddr(const sockaddr* address, socklen_t length);

  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  int family() const { return storage_.ss_family; }
  bool is_unix() const { return storage_.ss_family == AF_UNIX; }
  int port() const;  // 0 for unix sockets.
  Endpoint WithPort(int port) const;

  std::string ToString() const;  // "127.0.0.1:8080", "[::1]:8080", "unix:/run/weir.sock"
  std::string Host() const;      // The address without the port; "unix" for unix sockets.

  friend bool operator==(const Endpoint& a, const Endpoint& b) {
    return a.ToString() == b.ToString();
  }

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

}  // namespace weir::net
