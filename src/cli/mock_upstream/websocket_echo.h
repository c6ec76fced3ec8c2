// The server's side of a WebSocket (RFC 6455) that sends back what it gets: enough to show that a
// gateway passes an Upgrade through.
//
// Thread safety: pure functions.
//
//   std::string accept = WebSocketAccept("dGhlIHNhbXBsZSBub25jZQ==");   //
//   "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "wire/buffer.h"

namespace weir::mock {

// The Sec-WebSocket-Accept for a client's Sec-WebSocket-Key.
std::string WebSocketAccept(std::string_view key);

// Takes one whole frame from the front of `input` and appends its echo: the same opcode and
// payload, unmasked; a pong for a ping. Returns the bytes taken, 0 when the frame is not whole yet.
// `closing` becomes true at a close frame, and for a frame above 16 MiB, which is not echoed.
size_t EchoFrame(std::string_view input, wire::Buffer& out, bool& closing);

}  // namespace weir::mock
