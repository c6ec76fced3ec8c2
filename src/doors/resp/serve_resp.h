// Serves the Redis protocol on a stream: every command that has arrived is answered into one
// buffer, and the buffer goes out in one write.
//
//   loop.Spawn(ServeResp(std::move(stream), door, options, drain));
//
// Thread safety: the stream's loop.
#pragma once

#include <cstdint>
#include <memory>

#include "base/task.h"
#include "doors/resp/resp_door.h"
#include "net/http_service.h"
#include "net/stream.h"
#include "wire/resp/command_parser.h"

namespace weir::doors::resp {

struct RespOptions {
  weir::resp::CommandLimits limits;
  // Of those who have not said the password: as Redis has it.
  weir::resp::CommandLimits limits_before_auth = {
      .words_max = 10, .word_bytes_max = 16 << 10, .command_bytes_max = 64 << 10};
  int64_t command_timeout_ns = 10'000'000'000;  // From a command's first byte to its last. 0: none.
  int64_t idle_timeout_ns = 75'000'000'000;     // Between commands. 0: none.
  int64_t write_timeout_ns = 30'000'000'000;    // 0: none.
};

// Serves until the peer closes, breaks the protocol, times out, or `drain` says so. `door` and
// `drain` must outlive it.
Task<void> ServeResp(std::unique_ptr<net::Stream> stream, RespDoor& door, RespOptions options,
                     const net::DrainFlag& drain);

}  // namespace weir::doors::resp
