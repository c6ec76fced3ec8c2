// HttpCall: one HTTP/1.1 request and its answer, for commands that ask a running server.
//
// Thread safety: blocks the calling thread, which must run no event loop of its own.
//
//   Result<ServerUrl> url = ServerUrl::Parse("http://127.0.0.1:8081");
//   Result<HttpAnswer> answer = CallHttp(*url, {.path = "/v1/check", .body = body}, 5'000'000'000);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir::cli {

// "http://HOST[:PORT][/BASE]", "https://…" or "unix:/PATH".
struct ServerUrl {
  bool tls = false;
  bool is_unix = false;
  std::string host;  // Without brackets; the socket's path when is_unix.
  int port = 80;
  std::string base_path;  // "" or "/base".

  // kInvalidArgument says what is meant.
  static Result<ServerUrl> Parse(std::string_view text);
};

struct HttpQuestion {
  std::string path;     // From the base path on.
  std::string body;     // JSON, posted.
  std::string token;    // Sent as a bearer token when not empty.
  std::string ca_file;  // PEM of the authorities trusted for https; empty: the system's.
};

struct HttpAnswer {
  int status = 0;
  std::string body;  // At most 16 MiB.
};

// kUnavailable or kDeadlineExceeded when there is no whole answer within `timeout_ns`.
Result<HttpAnswer> CallHttp(const ServerUrl& url, const HttpQuestion& question, int64_t timeout_ns);

}  // namespace weir::cli
