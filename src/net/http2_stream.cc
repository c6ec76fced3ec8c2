#include "net/http2_stream.h"

#include <array>
#include <utility>

#include "net/http2_calls.h"

namespace weir::net {

Http2Stream* Http2Stream::Open(Http2Calls& calls, int32_t id) {
  std::shared_ptr<Http2Stream> stream(new Http2Stream(calls, id));
  stream->self_ = stream;
  return stream.get();
}

Http2Stream::Http2Stream(Http2Calls& calls, int32_t id)
    : calls_(&calls), id_(id), unfinished_(calls.unfinished()) {
  ++*unfinished_;
}

Http2Stream::~Http2Stream() { --*unfinished_; }

// The session's side
// -------------------------------------------------------------------------------------------------

void Http2Stream::OnHeader(std::string_view name, std::string_view value) {
  request_.AddField(name, value);
}

void Http2Stream::OnHead(bool ends, bool too_large) {
  if (too_large) {
    const std::array<http2::Header, 2> head = {http2::Header{":status", "431", true},
                                               http2::Header{"content-length", "0", true}};
    return calls_->session().Respond(id_, head, http2::Body::kNone);
  }
  if (!request_.FinishHead(ends)) return calls_->session().Reset(id_, http2::kProtocolError);
  answer_.Start(request_.method());
  attached_ = true;
  calls_->Serve(self_);
}

void Http2Stream::OnData(std::string_view bytes) {
  if (!attached_) return calls_->session().Consume(id_, bytes.size());
  request_.AppendBody(bytes);
  RaiseReadable();
}

void Http2Stream::OnEnd() {
  request_.Finish();
  RaiseReadable();
  if (answer_.complete()) Resume();  // Its end was held.
}

void Http2Stream::OnClosed(uint32_t /*error_code*/) {
  const std::shared_ptr<Http2Stream> keep = std::exchange(self_, nullptr);
  std::exchange(calls_, nullptr)->OnStreamClosed(*this);
  // Whoever has said all is not disturbed any more.
  if (!answer_.complete() || !request_.complete()) RaiseHangup();
}

http2::Piece Http2Stream::Read(std::span<char> room) {
  http2::Piece piece = answer_.Read(room);
  while (no_room_ && answer_.room() >= Http2Answer::kBytesMax / 2) {
    no_room_ = false;
    RaiseWritable();  // Send, from within.
    if (piece.bytes == 0 && piece.then == http2::Piece::Then::kLater) piece = answer_.Read(room);
  }
  if (piece.bytes > 0) moved_ns_ = calls_->now_ns();
  const bool ends =
      piece.then == http2::Piece::Then::kEnd || piece.then == http2::Piece::Then::kTrailers;
  if (ends && HoldsEnd()) {
    piece.then = piece.bytes > 0 ? http2::Piece::Then::kMore : http2::Piece::Then::kLater;
  }
  if (piece.then == http2::Piece::Then::kTrailers) {
    calls_->session().SendTrailers(id_, answer_.trailers());
  }
  deferred_ = piece.then == http2::Piece::Then::kLater;
  return piece;
}

// An answer may be complete while its request is not: a refusal of a long body. The session resets
// the stream at such an answer's end, which many clients take for a failure of their call. So the
// end waits, as closing does on HTTP/1.1, while whoever serves still takes the body away; unless
// the client waits for leave to send it.
bool Http2Stream::HoldsEnd() const {
  return attached_ && !request_.complete() && (continued_ || !request_.expects_continue());
}

// The Stream's side
// -------------------------------------------------------------------------------------------------

IoResult Http2Stream::Receive(std::span<char> room) {
  const Http2Request::Given given = request_.Read(room);
  if (given.body_bytes > 0 && calls_ != nullptr) {
    calls_->session().Consume(id_, given.body_bytes);
    calls_->Wake();
  }
  if (given.bytes > 0) return {IoStatus::kOk, given.bytes};
  if (request_.exhausted()) return {IoStatus::kEnd, 0};
  return {calls_ == nullptr ? IoStatus::kBroken : IoStatus::kOk, 0};
}

bool Http2Stream::readable() const {
  return request_.readable() || request_.complete() || calls_ == nullptr;
}

IoResult Http2Stream::Send(std::string_view bytes) {
  if (calls_ == nullptr) return {IoStatus::kBroken, 0};
  const size_t taken = answer_.Append(bytes);
  no_room_ = taken < bytes.size();
  if (!answer_.has_head()) TakeHeads();
  if (taken > 0) Resume();
  return {IoStatus::kOk, taken};
}

void Http2Stream::TakeHeads() {
  std::vector<http2::Header> fields;
  for (;;) {
    const Http2Answer::Head head = answer_.TakeHead(fields);
    switch (head) {
      case Http2Answer::Head::kNone:
        return;
      case Http2Answer::Head::kInterim:
        continued_ = true;
        calls_->session().RespondInterim(id_, fields);
        continue;
      case Http2Answer::Head::kFinal:
        moved_ns_ = calls_->now_ns();
        return calls_->session().Respond(
            id_, fields, answer_.has_body() ? http2::Body::kFollows : http2::Body::kNone);
      case Http2Answer::Head::kMalformed:
        return calls_->session().Reset(id_, http2::kInternalError);
    }
  }
}

void Http2Stream::ShutdownWrite() {
  answer_.FinishInput();
  Resume();
}

void Http2Stream::Detached() {
  attached_ = false;
  if (calls_ == nullptr) return;
  answer_.FinishInput();
  if (!answer_.has_head()) calls_->session().Reset(id_, http2::kInternalError);
  calls_->OnServed(*this);
  Resume();
}

void Http2Stream::Resume() {
  if (calls_ == nullptr) return;
  if (std::exchange(deferred_, false)) calls_->session().Resume(id_);
  calls_->Wake();
}

}  // namespace weir::net
