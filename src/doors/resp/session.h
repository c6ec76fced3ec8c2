// Session: what a client of the RESP door has said of itself on one connection.
//
// Thread safety: plain values of one connection.
#pragma once

#include <cstdint>
#include <string>

namespace weir::doors::resp {

struct Session {
  uint64_t id = 0;  // No two connections of a process have the same.
  std::string peer;
  int64_t began_ns = 0;
  int protocol = 2;
  bool authenticated = false;
  bool closing = false;  // After the replies that are being written.
  std::string name;
  std::string library;
  std::string library_version;
};

}  // namespace weir::doors::resp
