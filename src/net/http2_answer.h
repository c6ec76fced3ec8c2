// Http2Answer: an answer that is written as HTTP/1.1 and taken as HTTP/2 wants it: heads as fields,
// the body as bytes without framing, no faster than it is taken. What HTTP/1.1 says of its
// connection stays here.
//
// Thread safety: none; one owner at a time. Bounds: kBytesMax of what was written and not taken.
//
//   answer.Start(request.method());
//   size_t taken = answer.Append(bytes);
//   while (answer.TakeHead(fields) == Http2Answer::Head::kInterim) RespondInterim(fields);
//   http2::Piece piece = answer.Read(room);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "wire/buffer.h"
#include "wire/http1/body.h"
#include "wire/http1/request_head.h"
#include "wire/http2/server_session.h"

namespace weir::net {

class Http2Answer {
 public:
  static constexpr size_t kBytesMax = 64 * 1024;

  // `method`: what is answered.
  void Start(http1::Method method) { method_ = method; }

  // Takes as much of the bytes as there is room for.
  size_t Append(std::string_view bytes);
  size_t room() const { return kBytesMax - bytes_.size(); }
  // The writer has said its last.
  void FinishInput() { input_ended_ = true; }

  enum class Head : uint8_t { kNone, kInterim, kFinal, kMalformed };
  // The next head, as the fields of HTTP/2. They are views, valid until the next call.
  Head TakeHead(std::vector<http2::Header>& fields);
  bool has_head() const { return has_head_; }
  // REQUIRES: has_head(). Whether a body may follow it.
  bool has_body() const { return reader_.kind() != http1::BodyKind::kNone; }
  // The whole answer has been taken, but for its trailers.
  bool complete() const { return has_head_ && reader_.done(); }

  // The body's next bytes. kLater only without any, kEnd and kTrailers at its end; kAbort when it
  // can have no end.
  http2::Piece Read(std::span<char> room);
  // After kTrailers; views, valid as long as this is.
  std::vector<http2::Header> trailers();

 private:
  size_t FillFrom(std::span<char> room);
  std::string_view Lowered(std::string_view name);

  http1::Method method_ = http1::Method::kOther;
  bool has_head_ = false;
  bool input_ended_ = false;
  wire::Buffer bytes_;
  size_t head_bytes_ = 0;  // Of the head whose views are out, at the front of bytes_.
  wire::Buffer names_;     // Of fields whose views are out.
  http1::HeadProgress progress_;
  http1::BodyReader reader_;
};

}  // namespace weir::net
