// RequestBody: a request's body on its way to the upstream. What arrived with the head is used
// where it lies; the rest is read from the client piece by piece, never faster than the upstream
// takes it, unless the whole of it must be seen before the decision (ReadWhole).
//
// Thread safety: the loop's thread only. One operation at a time. Ownership: part of a Call;
// borrows the client's stream and buffer for the call's length.
//
//   body.Start(stream, arrived, head, limits);
//   if (body.whole()) Write(head, body.payload());
//   else for (RequestBody::Piece piece = co_await body.Next(); piece.state == kPiece; ...)
//   Write(piece.payload);
#pragma once

#include <cstdint>
#include <string_view>

#include "base/task.h"
#include "net/stream.h"
#include "wire/buffer.h"
#include "wire/http1/body.h"
#include "wire/http1/request_head.h"

namespace weir::gateway {

class RequestBody {
 public:
  enum class State : uint8_t {
    kPiece,     // `payload` holds the next bytes, valid until the next operation.
    kDone,      // The body has ended.
    kRefused,   // Malformed or too large: answer `status` and close.
    kTimedOut,  // Nothing came for the time allowed: 408.
    kGone,      // The client closed in the midst of it.
  };
  struct Piece {
    State state = State::kDone;
    std::string_view payload;
    int status = 0;
    const char* reason = "";  // Static storage.
  };
  struct Limits {
    int64_t body_bytes_max = INT64_MAX;
    int64_t progress_timeout_ns = 0;         // Without a byte for so long: kTimedOut. 0: none.
    int64_t deadline_ns = net::kNoDeadline;  // Of the call as a whole.
  };

  // `arrived`: what the client's buffer holds behind the head; it must not move until Finish.
  void Start(net::Stream& client, std::string_view arrived, const http1::RequestHead& head,
             const Limits& limits);

  // What is wrong with the bytes that arrived with the head, for chunked bodies; kDone when nothing
  // is.
  const Piece& fault() const { return fault_; }
  bool none() const { return kind_ == http1::BodyKind::kNone; }
  // All of the payload is at hand, in one piece.
  bool whole() const { return whole_; }
  std::string_view payload() const { return payload_; }
  bool done() const { return whole_ || reader_.done(); }
  // The client waits for 100 Continue before it sends anything.
  bool awaits_continue() const { return awaits_continue_; }
  void MarkContinued() { awaits_continue_ = false; }
  // After the end of a chunked body.
  const std::vector<http1::HeaderField>& trailers() const { return reader_.trailers(); }

  // Reads the rest, up to `bytes_max` of payload in all: kDone (then whole() is true), or why not;
  // 413 beyond.
  Task<Piece> ReadWhole(int64_t bytes_max);
  // Reads until beginning() holds a byte that is not in `blank`, at most `bytes_max` of payload:
  // kDone (then whole() may be true), or why not. Next and ReadWhole give these bytes out again.
  Task<Piece> ReadBeginning(std::string_view blank, int64_t bytes_max);
  std::string_view beginning() const { return whole_ ? payload_ : gathered_.View(); }
  // The next piece. REQUIRES: !whole().
  Task<Piece> Next();
  // Reads and throws away what is left, if that is at most `bytes_max` and comes by `deadline_ns`.
  // False: it was not.
  Task<bool> Discard(int64_t bytes_max, int64_t deadline_ns);

  // The payload is not needed any more: gives its memory back, and that of the reads.
  void ReleasePayload();
  // Makes a Next that waits for the client end with kTimedOut, within a sweep.
  void StopWaiting() { client_->SetReadDeadline(client_->loop().now_ns()); }

  // Ends the call's use of the client's buffer: drops the head and the body, keeps what follows
  // them. REQUIRES: done(), and `client_in` as at Start.
  void Finish(wire::Buffer& client_in, size_t head_bytes);
  // Forgets everything, keeping little memory.
  void Reset();

 private:
  static constexpr size_t kReadBytes = 16 * 1024;
  Piece Take();
  void TakeArrivedChunks();

  net::Stream* client_ = nullptr;
  http1::BodyKind kind_ = http1::BodyKind::kNone;
  Limits limits_;
  http1::BodyReader reader_;
  std::string_view arrived_;     // What is left of the bytes that came with the head.
  size_t arrived_bytes_ = 0;     // All of them.
  wire::Buffer in_;              // What was read since.
  wire::Buffer gathered_;        // The payload of chunks that came with the head, and ReadWhole's.
  bool gathered_first_ = false;  // gathered_ holds payload that Next has not given out.
  Piece fault_;
  std::string_view payload_;
  bool whole_ = false;
  bool awaits_continue_ = false;
};

}  // namespace weir::gateway
