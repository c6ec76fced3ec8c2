// Http2Connection: the shell between a socket, an HTTP/2 session and its streams. One task reads,
// another writes what the session has to say at the end of each of the loop's ticks.
//
// Thread safety: the loop's thread only. Ownership: lives in ServeHttp2, with the socket.
//
//   Http2Connection connection(std::move(socket), serve, options, connections);
//   co_await connection.Run();
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/event.h"
#include "net/serve_http2.h"
#include "wire/buffer.h"

namespace weir::net {

class Http2Stream;

class Http2Connection final : public http2::Acceptor {
 public:
  Http2Connection(std::unique_ptr<Stream> socket, ServeCall serve, const Http2Options& options,
                  Http2Connections& connections);
  ~Http2Connection();

  Task<void> Run();

  // For the drain.
  void AskToLeave();
  // Unless a call is under way, or the first is still to come.
  void AskToLeaveWhenUsed();
  void CloseIdle();
  Http2Connection* next() const { return next_; }

  // For the streams.
  http2::ServerStream* OnStream(int32_t stream_id) override;
  void OnHeadComplete();
  void Serve(std::shared_ptr<Http2Stream> stream);
  void OnServed(Http2Stream& stream);
  void OnStreamClosed(Http2Stream& stream);
  http2::ServerSession& session() { return session_; }
  // The session may have something to say.
  void Wake() { wake_.Set(); }
  int64_t now_ns() const { return loop_.now_ns(); }
  // How many streams are served or open.
  const std::shared_ptr<size_t>& unfinished() const { return unfinished_; }

 private:
  Task<void> Read();
  static Task<void> Write(Http2Connection& connection);
  Task<void> WriteAll();
  void SetDeadline();
  void LookForStalled();

  EventLoop& loop_;
  const std::unique_ptr<Stream> socket_;
  const ServeCall serve_;
  const Http2Options options_;
  Http2Connections& connections_;
  Http2Connection* next_ = nullptr;
  Http2Connection* previous_ = nullptr;

  wire::Buffer in_;
  wire::Buffer out_;
  Event wake_;
  Event written_;      // The writing task has ended.
  bool over_ = false;  // Nothing is read any more; the writing task ends with what is left.
  bool asked_to_leave_ = false;
  bool closing_ = false;
  int64_t idle_since_ns_;
  int32_t head_of_ = 0;  // The stream whose head is arriving, or 0.
  int64_t head_began_ns_ = 0;
  std::shared_ptr<size_t> unfinished_ = std::make_shared<size_t>(0);
  std::vector<Http2Stream*> unsent_;  // Served and still open.
  Timer stalled_;
  http2::ServerSession session_;  // Last: what its end closes uses the rest.
};

}  // namespace weir::net
