// Http2Request: a request of HTTP/2, given out as the HTTP/1.1 request that says the same, so that
// one parser, one set of refusals and one proxy serve both (docs/adr/0005-http2.md).
//
// The body is framed while it is read and not before: bytes of framing are never stored, and each
// byte of body that leaves is told, for flow control. Whatever a client sends, what is given out is
// one request: values that could end a line are refused, and bytes beyond the announced length stay
// here.
//
// Thread safety: none; one owner at a time.
//
//   request.AddField(":method", "POST"); … request.FinishHead(/*ends=*/false);
//   request.AppendBody(bytes); … request.Finish();
//   Http2Request::Given given = request.Read(room);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "wire/buffer.h"
#include "wire/http1/request_head.h"

namespace weir::net {

class Http2Request {
 public:
  // A field of the head, pseudo-fields first; after FinishHead, of the trailers. The name is in
  // lower case.
  void AddField(std::string_view name, std::string_view value);
  // The head is complete. False: it is malformed (RFC 9113 section 8.1.1), or cannot be said in
  // HTTP/1.1; nothing is given out.
  bool FinishHead(bool ends);
  void AppendBody(std::string_view bytes);
  // No more body and no more trailers come.
  void Finish();

  struct Given {
    size_t bytes = 0;       // Written to the room.
    size_t body_bytes = 0;  // What of the body went with them.
  };
  // As much as there is and fits.
  Given Read(std::span<char> room);
  bool readable() const { return !framing_.empty() || (!body_.empty() && !overrun()); }
  // All of it has come in.
  bool complete() const { return complete_; }
  // All of it has been given out.
  bool exhausted() const { return complete_ && !readable(); }

  http1::Method method() const { return method_id_; }
  // The client waits for 100 Continue.
  bool expects_continue() const { return expects_continue_; }

 private:
  enum class Framing : uint8_t { kNone, kLength, kChunked };
  void AddPseudoField(std::string_view name, std::string_view value);
  void AddOrdinaryField(std::string_view name, std::string_view value);
  void BeginChunk();
  bool overrun() const { return framing_kind_ != Framing::kChunked && left_bytes_ <= 0; }

  bool head_complete_ = false;
  bool malformed_ = false;
  bool complete_ = false;
  bool expects_continue_ = false;
  bool has_length_ = false;
  http1::Method method_id_ = http1::Method::kOther;
  Framing framing_kind_ = Framing::kNone;
  std::string method_;
  std::string path_;
  std::string authority_;
  std::string host_;
  std::string cookie_;
  wire::Buffer fields_;   // Lines: of the head, later of the trailers.
  wire::Buffer framing_;  // What goes out before any more of the body: the head, a chunk's size, …
  wire::Buffer body_;     // Has come and has not gone out.
  int64_t left_bytes_ = 0;  // Of the body's length, or of the chunk that has begun.
};

}  // namespace weir::net
