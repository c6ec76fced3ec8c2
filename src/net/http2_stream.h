// Http2Stream: one request of an HTTP/2 connection and its answer, between the session and a Stream
// on which the request is served as if it had come alone on an HTTP/1.1 connection.
//
//   session → OnHeader, OnData → Http2Request → Receive → whoever serves
//   session ← Read             ← Http2Answer  ← Send    ← whoever serves
//
// Backpressure: the peer's window opens by what Receive has given out; Send takes what Http2Answer
// has room for, until the session has sent it. A reset by the client is a hang-up of the Stream.
//
// Thread safety: the loop's thread only. Ownership: by itself from OnStream to OnClosed, and by the
// Stream; the calls outlive OnClosed.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "net/channel.h"
#include "net/http2_answer.h"
#include "net/http2_request.h"
#include "wire/http2/server_session.h"

namespace weir::net {

class Http2Calls;

class Http2Stream final : public Channel, public http2::ServerStream {
 public:
  // Open until OnClosed.
  static Http2Stream* Open(Http2Calls& calls, int32_t id);
  ~Http2Stream() override;

  // The session's side.
  void OnHeader(std::string_view name, std::string_view value) override;
  void OnHead(bool ends, bool too_large) override;
  void OnData(std::string_view bytes) override;
  void OnEnd() override;
  void OnClosed(uint32_t error_code) override;
  http2::Piece Read(std::span<char> room) override;

  // The Stream's side.
  IoResult Receive(std::span<char> room) override;
  bool readable() const override;
  IoResult Send(std::string_view bytes) override;
  void ShutdownWrite() override;
  void Detached() override;

  int32_t id() const { return id_; }
  // When the session took bytes of the answer last.
  int64_t moved_ns() const { return moved_ns_; }

 private:
  Http2Stream(Http2Calls& calls, int32_t id);
  void TakeHeads();
  bool HoldsEnd() const;
  void Resume();

  Http2Calls* calls_;  // Null once closed.
  const int32_t id_;
  const std::shared_ptr<size_t> unfinished_;  // The calls' count.
  std::shared_ptr<Http2Stream> self_;         // While the session knows this.
  Http2Request request_;
  Http2Answer answer_;
  int64_t moved_ns_ = 0;
  bool attached_ = false;   // A Stream is there.
  bool continued_ = false;  // 100 Continue was said.
  bool deferred_ = false;   // The session asks again after Resume.
  bool no_room_ = false;    // The Stream waits to write.
};

}  // namespace weir::net
