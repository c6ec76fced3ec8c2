// Http2Calls: the streams of a connection, each served as a connection of HTTP/1.1.
//
// Thread safety: the loop's thread only. Ownership: outlives the connection, in ServeHttp2.
//
//   Http2Calls calls(serve, options);
//   Http2Connection connection(std::move(socket), options, calls, connections);
//   calls.Start(connection);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "net/http2_connection.h"
#include "net/serve_http2.h"

namespace weir::net {

class Http2Stream;

class Http2Calls final : public http2::Acceptor {
 public:
  Http2Calls(ServeCall serve, const Http2Options& options);
  ~Http2Calls();

  void Start(Http2Connection& connection);
  http2::ServerStream* OnStream(int32_t stream_id) override;

  // For the streams.
  void Serve(std::shared_ptr<Http2Stream> stream);
  void OnServed(Http2Stream& stream);
  void OnStreamClosed(Http2Stream& stream);
  http2::ServerSession& session() { return connection_->session(); }
  void Wake() { connection_->Wake(); }
  int64_t now_ns() const { return connection_->loop().now_ns(); }
  // How many streams are served or open.
  const std::shared_ptr<size_t>& unfinished() const { return unfinished_; }

 private:
  void LookForStalled();

  const ServeCall serve_;
  const size_t unfinished_max_;
  const int64_t write_timeout_ns_;
  Http2Connection* connection_ = nullptr;
  std::shared_ptr<size_t> unfinished_ = std::make_shared<size_t>(0);
  std::vector<Http2Stream*> unsent_;  // Served and still open.
  std::optional<Timer> stalled_;
};

}  // namespace weir::net
