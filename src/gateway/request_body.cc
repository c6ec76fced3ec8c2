#include "gateway/request_body.h"

#include <algorithm>

namespace weir::gateway {

void RequestBody::Start(net::Stream& client, std::string_view arrived,
                        const http1::RequestHead& head, const Limits& limits) {
  client_ = &client;
  kind_ = head.body;
  limits_ = limits;
  arrived_ = arrived;
  arrived_bytes_ = arrived.size();
  payload_ = {};
  awaits_continue_ = head.expect_continue && arrived.empty();
  whole_ = kind_ == http1::BodyKind::kNone;
  if (kind_ == http1::BodyKind::kLength &&
      static_cast<int64_t>(arrived.size()) >= head.content_length) {
    whole_ = true;
    payload_ = arrived.substr(0, static_cast<size_t>(head.content_length));
    arrived_.remove_prefix(payload_.size());
  }
  gathered_.Clear();
  gathered_first_ = false;
  fault_ = {};
  if (whole_) return;
  reader_.Start(kind_, head.content_length, {.body_bytes_max = limits.body_bytes_max});
  if (kind_ == http1::BodyKind::kChunked) TakeArrivedChunks();
}

// Chunks that came with the head are read before anything is decided: malformed ones are refused
// before the upstream hears of the call, and a small body is whole at once.
void RequestBody::TakeArrivedChunks() {
  while (!arrived_.empty() && !whole_) {
    const Piece piece = Take();
    if (piece.state == State::kRefused) {
      fault_ = piece;
      return;
    }
    gathered_.Append(piece.payload);
    whole_ = piece.state == State::kDone;
  }
  gathered_first_ = !gathered_.empty();
  if (whole_) payload_ = gathered_.View();
}

// One step over what is at hand. kPiece with an empty payload: more input is needed.
RequestBody::Piece RequestBody::Take() {
  const bool from_arrived = !arrived_.empty();
  const http1::BodyReader::Step step = reader_.Feed(from_arrived ? arrived_ : in_.View());
  if (from_arrived) {
    arrived_.remove_prefix(step.consumed);
  } else {
    in_.Consume(step.consumed);  // The payload's bytes stay where they are until the next read.
  }
  switch (step.state) {
    case http1::BodyReader::State::kPayload:
      return {.state = State::kPiece, .payload = step.payload};
    case http1::BodyReader::State::kDone:
      return {.state = State::kDone, .payload = step.payload};
    case http1::BodyReader::State::kError:
      return {.state = State::kRefused, .status = step.status, .reason = step.reason};
    case http1::BodyReader::State::kNeedMore:
      break;
  }
  return {.state = State::kPiece};
}

Task<RequestBody::Piece> RequestBody::Next() {
  if (gathered_first_) {
    gathered_first_ = false;
    co_return Piece{.state = State::kPiece, .payload = gathered_.View()};
  }
  for (;;) {
    const Piece piece = Take();
    if (piece.state != State::kPiece || !piece.payload.empty()) co_return piece;
    if (!arrived_.empty() || !in_.empty()) continue;
    int64_t deadline_ns = limits_.deadline_ns;
    if (limits_.progress_timeout_ns > 0) {
      deadline_ns = std::min(deadline_ns, client_->loop().now_ns() + limits_.progress_timeout_ns);
    }
    client_->SetReadDeadline(deadline_ns);
    char* const room = in_.Prepare(kReadBytes);
    const net::IoResult got = co_await client_->Read({room, kReadBytes});
    if (got.status == net::IoStatus::kTimedOut)
      co_return Piece{.state = State::kTimedOut, .status = 408};
    if (!got.ok()) co_return Piece{.state = State::kGone};
    in_.Commit(got.bytes);
  }
}

Task<RequestBody::Piece> RequestBody::ReadWhole(int64_t bytes_max) {
  if (whole_) {
    if (static_cast<int64_t>(payload_.size()) <= bytes_max) co_return Piece{};
    co_return Piece{.state = State::kRefused,
                    .status = 413,
                    .reason = "the body is too large to read the model from"};
  }
  gathered_first_ = false;  // What is there stays in front.
  for (;;) {
    const Piece piece = co_await Next();
    if (piece.state == State::kPiece) {
      if (static_cast<int64_t>(gathered_.size() + piece.payload.size()) > bytes_max) {
        co_return Piece{.state = State::kRefused,
                        .status = 413,
                        .reason = "the body is too large to read the model from"};
      }
      gathered_.Append(piece.payload);
      continue;
    }
    if (piece.state == State::kDone) {
      whole_ = true;
      payload_ = gathered_.View();
    }
    co_return piece;
  }
}

Task<RequestBody::Piece> RequestBody::ReadBeginning(std::string_view blank, int64_t bytes_max) {
  gathered_first_ = false;
  while (!whole_ && beginning().find_first_not_of(blank) == std::string_view::npos) {
    const Piece piece = co_await Next();
    if (piece.state == State::kPiece) {
      gathered_.Append(piece.payload);
      if (static_cast<int64_t>(gathered_.size()) <= bytes_max) continue;
      co_return Piece{.state = State::kRefused,
                      .status = 413,
                      .reason = "the body is too large to read the model from"};
    }
    if (piece.state != State::kDone) co_return piece;
    whole_ = true;
    payload_ = gathered_.View();
  }
  gathered_first_ = !whole_ && !gathered_.empty();
  co_return Piece{};
}

Task<bool> RequestBody::Discard(int64_t bytes_max, int64_t deadline_ns) {
  if (done()) co_return true;
  if (awaits_continue_) co_return false;  // It may send the body or not: only closing is sure.
  limits_.deadline_ns = std::min(limits_.deadline_ns, deadline_ns);
  for (int64_t discarded = 0; discarded <= bytes_max;) {
    const Piece piece = co_await Next();
    if (piece.state == State::kDone) co_return true;
    if (piece.state != State::kPiece) co_return false;
    discarded += static_cast<int64_t>(piece.payload.size());
  }
  co_return false;
}

void RequestBody::Finish(wire::Buffer& client_in, size_t head_bytes) {
  client_in.Consume(head_bytes + arrived_bytes_ - arrived_.size());
  if (!in_.empty()) client_in.Append(in_.View());
  arrived_ = {};
  arrived_bytes_ = 0;
}

void RequestBody::ReleasePayload() {
  if (!whole_) return;
  gathered_.ClearAndShrink(0);
  payload_ = {};
  if (in_.empty()) in_.ClearAndShrink(0);
}

void RequestBody::Reset() {
  in_.ClearAndShrink(kReadBytes);
  gathered_.ClearAndShrink(kReadBytes);
  gathered_first_ = false;
  payload_ = {};
  arrived_ = {};
  whole_ = false;
}

}  // namespace weir::gateway
