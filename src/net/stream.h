// Stream: a connected byte stream (TCP, unix socket, TLS over either, or a Channel in memory) with
// awaitable reads and writes.
//
// The one place where bytes meet the kernel: codecs, doors and the gateway see only this.
// Edge-triggered: a read that comes up short is known to have drained the socket, so a request
// costs one recv and one send.
//
// Thread safety: the loop's thread only. At most one read and one write wait at a time (they may
// wait together). Ownership: whoever holds the Stream closes it by destroying it; no operation may
// be pending then.
//
//   IoResult got = co_await stream.Read(buffer);
//   if (!got.ok()) co_return;                       // end of stream, deadline, reset
//   IoResult sent = co_await stream.Write({buffer.data(), got.bytes});
#pragma once

#include <sys/uio.h>

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/task.h"
#include "net/endpoint.h"
#include "net/event_loop.h"
#include "weir/result.h"

struct ssl_st;

namespace weir::net {

class Channel;
class TlsContext;

enum class IoStatus : uint8_t {
  kOk,
  kEnd,        // The peer has finished sending.
  kTimedOut,   // The deadline ran out.
  kCancelled,  // Cancel was called here.
  kBroken,     // Reset, broken pipe, TLS alert, …
};

struct IoResult {
  IoStatus status = IoStatus::kOk;
  size_t bytes = 0;  // Read: what arrived. Write: what the kernel took.
  bool ok() const { return status == IoStatus::kOk; }
};

inline constexpr int64_t kNoDeadline = INT64_MAX;

class Stream final : private FdWatcher {
 public:
  // Takes `fd` (connected, non-blocking). kUnavailable when the loop cannot watch it (the fd is
  // closed then).
  static Result<std::unique_ptr<Stream>> Adopt(EventLoop& loop, int fd, const Endpoint& peer);
  // Bytes that come and go through `channel`. `is_tls`: whether they crossed the network in TLS.
  static std::unique_ptr<Stream> OverChannel(EventLoop& loop, std::shared_ptr<Channel> channel,
                                             const Endpoint& peer, bool is_tls);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  class ReadOp;
  class WriteOp;

  // Reads at least one byte. `buffer` must have room for one and must outlive the wait.
  ReadOp Read(std::span<char> buffer);
  // Waits until a Read would not have to (bytes or an end are there), so that a quiet connection
  // need hold no buffer. Ends as Read does, with no bytes.
  ReadOp WaitReadable();
  // What can be read without waiting, up to the buffer's size, left where it is. 0 bytes when
  // nothing is there, or an end. REQUIRES: a socket without TLS.
  size_t Peek(std::span<char> buffer) const;
  // As WaitReadable, for more than Peek has shown. REQUIRES: !peer_hung_up().
  ReadOp WaitForMore();
  // Writes all of the pieces, in one system call when the kernel takes them. The bytes must outlive
  // the wait.
  WriteOp Write(std::string_view first, std::string_view second = {}, std::string_view third = {});

  // Reads that wait past this instant (monotonic ns) end with kTimedOut, to a sweep's precision (50
  // ms).
  void SetReadDeadline(int64_t deadline_ns) { read_deadline_ns_ = deadline_ns; }
  // Each write that waits longer than this ends with kTimedOut. 0: no bound.
  void SetWriteTimeout(int64_t timeout_ns) { write_timeout_ns_ = timeout_ns; }

  // Ends what waits with kCancelled, and every later operation too.
  void Cancel();
  // Tells the peer that nothing more comes (TLS: close_notify, then FIN). Reading goes on.
  void ShutdownWrite();
  // Called once when the peer closes or resets while no read waits for it. May call Cancel on other
  // streams; must not destroy this one. Null removes it.
  void OnHangup(std::move_only_function<void()> on_hangup);
  bool peer_hung_up() const { return hung_up_; }

  // Starts TLS on the connection. As a client, `server_name` is sent (SNI) and verified.
  // kUnavailable with the reason.
  Task<Result<void>> StartTlsClient(const TlsContext& context, std::string server_name,
                                    int64_t deadline_ns);
  Task<Result<void>> StartTlsServer(const TlsContext& context, int64_t deadline_ns);
  // Why TLS ended a read with kBroken, as far as the peer said: "tlsv13 alert certificate
  // required". "" when it did not.
  std::string_view tls_fault() const { return tls_fault_; }
  // The protocol agreed by ALPN, "" without.
  std::string_view alpn() const;
  bool is_tls() const { return is_tls_; }

  const Endpoint& peer() const { return peer_; }
  EventLoop& loop() const { return loop_; }
  // True when the peer has neither sent bytes nor closed, up to the beginning of the loop's tick:
  // fit to carry a new request. No system call, unless the last read left the question open.
  bool IsQuiet() const;

 private:
  friend class Channel;
  friend class EventLoop;
  class HandshakeOp;
  enum class Attempt : uint8_t { kDone, kWantRead, kWantWrite };
  enum class Carrier : uint8_t { kSocket, kTls, kChannel };

  Stream(EventLoop& loop, int fd, const Endpoint& peer);
  void Note(uint32_t events) override;
  void OnEvents(uint32_t events) override;
  void Sweep(int64_t now_ns);
  Attempt TryRead(ReadOp& op);
  Attempt ReadSocket(ReadOp& op);
  Attempt ReadTls(ReadOp& op);
  Attempt ReadChannel(ReadOp& op);
  bool HasDecrypted() const;
  Attempt TryWrite(WriteOp& op);
  // The next of the op's pieces: kDone when some of it was taken, or the op has failed.
  Attempt WriteSocket(WriteOp& op, size_t& sent);
  Attempt WriteTls(WriteOp& op, size_t& sent);
  Attempt WriteChannel(WriteOp& op, size_t& sent);
  void BeginTls(const TlsContext& context);
  Attempt TryHandshake(HandshakeOp& op);
  Task<Result<void>> Handshake(std::string who, int64_t deadline_ns);
  void ShutdownTls();
  void DropTls();

  EventLoop& loop_;
  const int fd_;  // -1 over a channel.
  Endpoint peer_;
  Carrier carrier_ = Carrier::kSocket;
  bool is_tls_ = false;
  ssl_st* ssl_ = nullptr;
  std::shared_ptr<Channel> channel_;
  const char* tls_fault_ = "";
  ReadOp* reader_ = nullptr;
  WriteOp* writer_ = nullptr;
  HandshakeOp* handshaker_ = nullptr;
  int64_t read_deadline_ns_ = kNoDeadline;
  int64_t write_deadline_ns_ = kNoDeadline;
  int64_t write_timeout_ns_ = 0;
  bool readable_ = false;  // There may be bytes to read: set by an edge, cleared by a short read.
  bool writable_ = true;   // The kernel may take bytes: cleared by EAGAIN, set by an edge.
  bool hung_up_ = false;   // RDHUP, HUP or ERR was seen.
  bool cancelled_ = false;
  std::move_only_function<void()> on_hangup_;
  Stream* previous_ = nullptr;
  Stream* next_ = nullptr;
};

class [[nodiscard]] Stream::ReadOp {
 public:
  ReadOp(Stream& stream, std::span<char> buffer) : stream_(stream), buffer_(buffer) {}
  bool await_ready();
  void await_suspend(std::coroutine_handle<> caller);
  IoResult await_resume() const noexcept { return result_; }

 private:
  friend class Stream;
  Stream& stream_;
  std::span<char> buffer_;
  IoResult result_;
  std::coroutine_handle<> caller_;
};

class [[nodiscard]] Stream::WriteOp {
 public:
  WriteOp(Stream& stream, std::string_view first, std::string_view second, std::string_view third);
  bool await_ready();
  void await_suspend(std::coroutine_handle<> caller);
  IoResult await_resume() const noexcept { return result_; }

 private:
  friend class Stream;
  Stream& stream_;
  std::array<iovec, 3> pieces_;
  int first_piece_ = 0;
  IoResult result_;
  std::coroutine_handle<> caller_;
};

// A TLS handshake in progress, waiting for the socket.
class [[nodiscard]] Stream::HandshakeOp {
 public:
  explicit HandshakeOp(Stream& stream) : stream_(stream) {}
  bool await_ready();
  void await_suspend(std::coroutine_handle<> caller);
  IoStatus await_resume() const noexcept { return status_; }

 private:
  friend class Stream;
  Stream& stream_;
  IoStatus status_ = IoStatus::kOk;
  std::coroutine_handle<> caller_;
};

inline Stream::ReadOp Stream::Read(std::span<char> buffer) { return {*this, buffer}; }
inline Stream::ReadOp Stream::WaitReadable() { return {*this, {}}; }
inline Stream::ReadOp Stream::WaitForMore() {
  readable_ = false;  // More makes an edge.
  return WaitReadable();
}
inline Stream::WriteOp Stream::Write(std::string_view first, std::string_view second,
                                     std::string_view third) {
  return {*this, first, second, third};
}

}  // namespace weir::net
