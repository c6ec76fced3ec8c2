#include "cli/listen_endpoint.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

namespace weir::cli {
namespace {

bool HasIpv6() {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

}  // namespace

Result<net::Endpoint> ListenEndpoint(const std::string& address) {
  if (address.starts_with(':'))
    return net::Endpoint::Parse((HasIpv6() ? "[::]" : "0.0.0.0") + address);
  Result<net::Endpoint> literal = net::Endpoint::Parse(address);
  const size_t colon = address.rfind(':');
  if (literal || colon == std::string::npos || address.starts_with('[') ||
      address.starts_with("unix:"))
    return literal;

  // The resolver would cut a port above 65535 to 16 bits.
  if (auto any = net::Endpoint::Parse("0.0.0.0" + address.substr(colon)); !any) return literal;

  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string host = address.substr(0, colon);
  const int failed = getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found);
  if (failed != 0) {
    return MakeError(ErrorCode::kUnavailable, address + ": " + gai_strerror(failed) +
                                                  "; an address of this host and a port are meant");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  return net::Endpoint::FromSockaddr(found->ai_addr, found->ai_addrlen);
}

}  // namespace weir::cli
