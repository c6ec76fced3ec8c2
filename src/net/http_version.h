// Which version of HTTP a connection speaks: what TLS has agreed on (ALPN), else HTTP/2 if it
// begins with that version's preface (h2c by prior knowledge).
//
// Thread safety: the loop's thread only. Takes nothing from the stream.
//
//   const HttpVersion version = co_await DetectHttpVersion(*stream, idle_ns, header_ns);
//   if (version == HttpVersion::kTwo) co_await ServeHttp2(std::move(stream), …);
#pragma once

#include <cstdint>
#include <string_view>

#include "base/task.h"
#include "net/stream.h"

namespace weir::net {

enum class HttpVersion : uint8_t {
  kNone,  // Nothing came in time.
  kOne,
  kTwo,
};

inline constexpr std::string_view kAlpnHttp1 = "http/1.1";
inline constexpr std::string_view kAlpnHttp2 = "h2";

// `idle_timeout_ns`: until the first byte; `header_timeout_ns`: from there until it is clear. 0:
// none.
Task<HttpVersion> DetectHttpVersion(Stream& stream, int64_t idle_timeout_ns,
                                    int64_t header_timeout_ns);

}  // namespace weir::net
