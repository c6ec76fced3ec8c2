// From a door's address, as the configuration has it, to the endpoint to bind.
//
// Thread safety: pure, but for a look-up of host names that may block; for start-up only.
//
//   Result<net::Endpoint> endpoint = ListenEndpoint("localhost:8080");
#pragma once

#include <string>

#include "net/endpoint.h"
#include "weir/result.h"

namespace weir::cli {

// "127.0.0.1:8080", "[::1]:8080", "localhost:8080", ":8080" (every interface, IPv4 and IPv6) or
// "unix:/run/weir.sock". kInvalidArgument or kUnavailable with the address in the message.
Result<net::Endpoint> ListenEndpoint(const std::string& address);

}  // namespace weir::cli
