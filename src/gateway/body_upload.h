// BodyUpload: sends the rest of a request's body to the upstream beside the reading of the answer,
// which may come before the body has ended. A piece is read from the client once the upstream has
// taken the one before.
//
// Thread safety: the loop's thread only. Ownership: lives in the exchange, which awaits Stop before
// it goes.
//
//   upload.emplace(loop, call, upstream, chunked);
//   upload->Start();
//   ... read the answer ...
//   bool complete = co_await upload->Stop();
#pragma once

#include "gateway/call.h"
#include "net/event.h"

namespace weir::gateway {

class BodyUpload {
 public:
  BodyUpload(net::EventLoop& loop, Call& call, net::Stream& upstream, bool chunked)
      : loop_(loop), call_(call), upstream_(upstream), chunked_(chunked), ended_(loop) {}

  void Start();
  // The body has gone through whole.
  bool finished() const { return complete_; }
  // Ends the upload, waiting for it to let go of both streams (50 ms at most); true when it had
  // finished. When it had not, the upstream's stream is cancelled. Fine to call again.
  Task<bool> Stop();
  // Why the client's side ended it; kDone when it did not.
  const RequestBody::Piece& fault() const { return fault_; }

 private:
  static Task<void> Run(BodyUpload& upload);
  Task<bool> SendPiece(std::string_view payload);
  Task<bool> SendEnd();

  net::EventLoop& loop_;
  Call& call_;
  net::Stream& upstream_;
  const bool chunked_;
  net::Event ended_;
  RequestBody::Piece fault_;
  bool complete_ = false;
  bool stopping_ = false;
};

}  // namespace weir::gateway
