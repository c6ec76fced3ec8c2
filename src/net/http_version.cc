#include "net/http_version.h"

#include <array>

#include "wire/http2/server_session.h"

namespace weir::net {
namespace {

// No request of HTTP/1.1 begins like this: the method PRI is set aside (RFC 9113 section 11.6).
constexpr std::string_view kMark = http2::kClientPreface.substr(0, 4);

void WaitAtMost(Stream& stream, int64_t timeout_ns) {
  stream.SetReadDeadline(timeout_ns > 0 ? stream.loop().now_ns() + timeout_ns : kNoDeadline);
}

}  // namespace

Task<HttpVersion> DetectHttpVersion(Stream& stream, int64_t idle_timeout_ns,
                                    int64_t header_timeout_ns) {
  if (stream.is_tls()) {
    co_return stream.alpn() == kAlpnHttp2 ? HttpVersion::kTwo : HttpVersion::kOne;
  }
  WaitAtMost(stream, idle_timeout_ns);
  IoResult waited = co_await stream.WaitReadable();
  WaitAtMost(stream, header_timeout_ns);
  for (;;) {
    if (!waited.ok()) co_return HttpVersion::kNone;
    std::array<char, kMark.size()> bytes;
    const size_t arrived = stream.Peek(bytes);
    if (!kMark.starts_with(std::string_view(bytes.data(), arrived))) co_return HttpVersion::kOne;
    if (arrived == kMark.size()) co_return HttpVersion::kTwo;
    // Too little to tell; or an end, which whoever serves finds by itself.
    if (arrived == 0 || stream.peer_hung_up()) co_return HttpVersion::kOne;
    waited = co_await stream.WaitForMore();
  }
}

}  // namespace weir::net
