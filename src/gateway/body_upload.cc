#include "gateway/body_upload.h"

#include <algorithm>
#include <charconv>

#include "wire/http1/body.h"

namespace weir::gateway {

void BodyUpload::Start() { loop_.Spawn(Run(*this)); }

Task<void> BodyUpload::Run(BodyUpload& upload) {
  for (;;) {
    const RequestBody::Piece piece = co_await upload.call_.body.Next();
    if (upload.stopping_) break;
    if (piece.state == RequestBody::State::kPiece) {
      const bool sent = co_await upload.SendPiece(piece.payload);
      if (!sent) break;  // An answer that is on its way says why.
      continue;
    }
    if (piece.state == RequestBody::State::kDone) {
      upload.complete_ = co_await upload.SendEnd();
      break;
    }
    upload.fault_ = piece;
    upload.call_.client_gone = piece.state == RequestBody::State::kGone;
    upload.upstream_.Cancel();  // Whoever waits for the answer hears of it.
    break;
  }
  const int64_t wait_ns = upload.call_.view->timeouts.first_byte_ns;
  if (wait_ns > 0 && !upload.call_.answer_begun) {
    upload.upstream_.SetReadDeadline(
        std::min(upload.call_.deadline_ns, upload.loop_.now_ns() + wait_ns));
  }
  upload.ended_.Set();
}

Task<bool> BodyUpload::SendEnd() {
  if (!chunked_) co_return true;
  wire::Buffer end;
  http1::ChunkedWriter::AppendEnd(end, call_.body.trailers());
  const net::IoResult sent = co_await upstream_.Write(end.View());
  co_return sent.ok();
}

Task<bool> BodyUpload::SendPiece(std::string_view payload) {
  if (!chunked_) {
    const net::IoResult sent = co_await upstream_.Write(payload);
    co_return sent.ok();
  }
  char size_line[20];
  char* end = std::to_chars(size_line, size_line + 16, payload.size(), 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  const net::IoResult sent =
      co_await upstream_.Write({size_line, static_cast<size_t>(end - size_line)}, payload, "\r\n");
  co_return sent.ok();
}

Task<bool> BodyUpload::Stop() {
  if (!ended_.is_set()) {
    stopping_ = true;
    upstream_.Cancel();
    call_.body.StopWaiting();
    co_await ended_.Wait();
  }
  co_return complete_;
}

}  // namespace weir::gateway
