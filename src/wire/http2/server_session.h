// ServerSession: the server's side of one HTTP/2 connection (RFC 9113), without I/O. Frames, HPACK
// and flow control are libnghttp2's; what is added are bounds on what a peer may cost.
//
//   http2::ServerSession session(limits, acceptor);
//   if (!session.Feed(received, now_ns)) …           // send what Drain still gives, then close
//   while (session.Drain(out, 64 * 1024)) Write(out);
//   session.Respond(stream_id, headers, http2::Body::kFollows);   // Then ServerStream::Read is
//   asked
//
// Thread safety: none; one connection. Ownership: borrows the acceptor and the streams that it
// gives; a stream must live until its OnClosed. Nothing here may be called from within a callback
// but what says so. Out of memory aborts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "wire/buffer.h"

struct nghttp2_session;

namespace weir::http2 {

// What a connection begins with when it speaks HTTP/2 by prior knowledge (RFC 9113 section 3.4).
inline constexpr std::string_view kClientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Error codes that are used here (RFC 9113 section 7).
inline constexpr uint32_t kNoError = 0x0;
inline constexpr uint32_t kProtocolError = 0x1;
inline constexpr uint32_t kInternalError = 0x2;
inline constexpr uint32_t kRefusedStream = 0x7;
inline constexpr uint32_t kCancel = 0x8;
inline constexpr uint32_t kEnhanceYourCalm = 0xb;

struct Header {
  std::string_view name;  // In lower case.
  std::string_view value;
  bool lasting = false;  // The bytes of both outlive the session (literals), and are not copied.
};

// What Read gives of a body.
struct Piece {
  enum class Then : uint8_t {
    kMore,      // Ask again when there is room.
    kLater,     // Nothing is there: ask after Resume.
    kEnd,       // The answer is complete.
    kTrailers,  // The body is complete; the stream has called SendTrailers.
    kAbort,     // The answer cannot be completed: the stream is reset.
  };
  size_t bytes = 0;  // Written to the room.
  Then then = Then::kMore;
};

// One request and its answer, implemented by whoever serves. All calls come from within Feed and
// Drain.
class ServerStream {
 public:
  virtual ~ServerStream() = default;
  // A field of the head, pseudo-fields first, then of the trailers; the views live for the call.
  virtual void OnHeader(std::string_view name, std::string_view value) = 0;
  // The head is complete. `ends`: there is no body. `too_large`: fields beyond the limit were left
  // out; the request should be refused (431).
  virtual void OnHead(bool ends, bool too_large) = 0;
  // A piece of the body. The peer may send more only after ServerSession::Consume.
  virtual void OnData(std::string_view bytes) = 0;
  // The body (and trailers) are complete; not called when the head ended the request.
  virtual void OnEnd() = 0;
  // The stream is over: kNoError when both sides are complete. The last call of all.
  virtual void OnClosed(uint32_t error_code) = 0;
  // The next bytes of the answer's body, into `room`. SendTrailers may be called from here.
  virtual Piece Read(std::span<char> room) = 0;
};

class Acceptor {
 public:
  virtual ~Acceptor() = default;
  // A request begins. Null refuses it (REFUSED_STREAM: the client may repeat it elsewhere).
  virtual ServerStream* OnStream(int32_t stream_id) = 0;
};

struct SessionLimits {
  uint32_t concurrent_streams_max = 128;
  size_t header_list_bytes_max = 64 * 1024;  // Names, values and 32 for each (RFC 9113, 6.5.2).
  int32_t stream_window_bytes = 64 * 1024;   // What a peer may send before it is consumed.
  int32_t connection_window_bytes = 1 << 20;
  // Frames that cost work and carry nothing (PING, SETTINGS, PRIORITY, WINDOW_UPDATE, RST_STREAM
  // in both directions, empty DATA and CONTINUATION): so many at once and so many a second are
  // borne; a finished request brings a few more, and DATA that is sent what opens the windows
  // again. Beyond: GOAWAY with ENHANCE_YOUR_CALM.
  int64_t idle_frames_burst = 2000;
  int64_t idle_frames_per_sec = 100;
  int64_t idle_frames_per_request = 16;
};

enum class Body : uint8_t { kNone, kFollows };

class ServerSession {
 public:
  ServerSession(const SessionLimits& limits, Acceptor& acceptor);
  ~ServerSession();  // Calls OnClosed of the streams that are open.
  ServerSession(const ServerSession&) = delete;
  ServerSession& operator=(const ServerSession&) = delete;

  // Takes what the peer has sent, the preface included. False: the connection is broken, or the
  // peer asks too much; nothing more is read, and what Drain gives (a GOAWAY) is the last.
  bool Feed(std::string_view bytes, int64_t now_ns);
  // Appends frames to `out` until it holds at least `bytes_max` or there are no more. True: some
  // may be left.
  bool Drain(wire::Buffer& out, size_t bytes_max);

  // From within the stream's callbacks or outside of all. Unknown streams are passed over: they
  // have been closed meanwhile.
  void Respond(int32_t stream_id, std::span<const Header> head, Body body);
  void RespondInterim(int32_t stream_id, std::span<const Header> head);  // 1xx
  void SendTrailers(int32_t stream_id, std::span<const Header> trailers);
  void Resume(int32_t stream_id);
  void Reset(int32_t stream_id, uint32_t error_code);
  // So many bytes of a request's body have gone on: the peer may send as many again.
  void Consume(int32_t stream_id, size_t bytes);

  // Says that no further stream is taken, but takes those on their way (GOAWAY with the highest
  // id); GoAway some time later draws the line at the last one that began.
  void ShutdownNotice();
  void GoAway(uint32_t error_code = kNoError);

  // True when neither side has anything more to say.
  bool finished() const;
  size_t open_streams() const { return open_streams_; }
  // The stream of which a head or trailers have begun and not ended; 0: none.
  int32_t head_of() const { return head_of_; }
  uint64_t requests() const { return requests_; }
  // Why Feed said false, for the log: "" without.
  std::string_view fault() const { return fault_; }

 private:
  struct Callbacks;
  struct Slot;  // A stream that is open.
  friend struct Callbacks;
  Slot* SlotOf(int32_t stream_id) const;
  Slot* TakeSlot(ServerStream* stream);
  void Close(Slot* slot, uint32_t error_code);
  void PayIdleFrame();
  void CheckStreamId(int32_t stream_id);
  void Refill(int64_t now_ns);
  void EarnIdleFrames(int64_t more);
  void Break(uint32_t error_code, std::string fault);

  const SessionLimits limits_;
  Acceptor& acceptor_;
  nghttp2_session* session_ = nullptr;
  int32_t last_id_ = 0;
  bool has_skipped_ids_ = false;
  int32_t head_of_ = 0;
  size_t header_bytes_ = 0;  // Of the header block that is being received.
  bool too_large_ = false;
  bool broken_ = false;
  Slot* open_ = nullptr;  // A ring of the streams that are open.
  Slot* free_ = nullptr;
  size_t open_streams_ = 0;
  uint64_t requests_ = 0;
  int64_t idle_frames_left_;
  int64_t refilled_ns_ = 0;
  std::string fault_;
};

}  // namespace weir::http2
