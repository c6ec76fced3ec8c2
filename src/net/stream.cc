#include "net/stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <utility>

#include "net/tls.h"

namespace weir::net {
namespace {

std::string TlsReason(SSL* ssl) {
  const long verified = SSL_get_verify_result(ssl);
  if (verified != X509_V_OK) return X509_verify_cert_error_string(verified);
  const unsigned long code = ERR_peek_last_error();
  if (const char* reason = ERR_reason_error_string(code)) return reason;
  return "the peer closed the connection";
}

}  // namespace

// A TLS handshake in progress, waiting for the socket.
class Stream::HandshakeOp {
 public:
  explicit HandshakeOp(Stream& stream) : stream_(stream) {}
  bool await_ready() {
    attempt_ = stream_.TryHandshake(*this);
    return attempt_ == Attempt::kDone;
  }
  void await_suspend(std::coroutine_handle<> caller) {
    caller_ = caller;
    stream_.handshaker_ = this;
  }
  IoStatus await_resume() const noexcept { return status_; }

 private:
  friend class Stream;
  Stream& stream_;
  Attempt attempt_ = Attempt::kDone;
  IoStatus status_ = IoStatus::kOk;
  std::coroutine_handle<> caller_;
};

Result<std::unique_ptr<Stream>> Stream::Adopt(EventLoop& loop, int fd, const Endpoint& peer) {
  std::unique_ptr<Stream> stream(new Stream(loop, fd, peer));
  if (auto watched = loop.Watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, stream.get());
      !watched) {
    return std::unexpected(watched.error());
  }
  return stream;
}

Stream::Stream(EventLoop& loop, int fd, const Endpoint& peer) : loop_(loop), fd_(fd), peer_(peer) {
  next_ = loop_.streams_;
  if (next_ != nullptr) next_->previous_ = this;
  loop_.streams_ = this;
}

Stream::~Stream() {
  DropTls();
  loop_.Unwatch(fd_, this);
  close(fd_);
  (previous_ != nullptr ? previous_->next_ : loop_.streams_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}

void Stream::DropTls() {
  if (ssl_ == nullptr) return;
  SSL_free(ssl_);
  ssl_ = nullptr;
}

void Stream::Note(uint32_t events) {
  if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) readable_ = true;
  if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) writable_ = true;
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) hung_up_ = true;
}

void Stream::OnEvents(uint32_t /*events*/) {
  if (handshaker_ != nullptr && TryHandshake(*handshaker_) == Attempt::kDone) {
    loop_.ResumeSoon(std::exchange(handshaker_, nullptr)->caller_);
  }
  if (reader_ != nullptr && TryRead(*reader_) == Attempt::kDone) {
    loop_.ResumeSoon(std::exchange(reader_, nullptr)->caller_);
  }
  if (writer_ != nullptr && TryWrite(*writer_) == Attempt::kDone) {
    loop_.ResumeSoon(std::exchange(writer_, nullptr)->caller_);
  }
  if (hung_up_ && on_hangup_ && reader_ == nullptr) std::exchange(on_hangup_, nullptr)();
}

void Stream::OnHangup(std::move_only_function<void()> on_hangup) {
  on_hangup_ = std::move(on_hangup);
  if (on_hangup_ && hung_up_) std::exchange(on_hangup_, nullptr)();
}

void Stream::Sweep(int64_t now_ns) {
  const auto time_out = [&](auto*& op, auto&& fail) {
    fail(*op);
    loop_.ResumeSoon(std::exchange(op, nullptr)->caller_);
  };
  if (now_ns >= read_deadline_ns_) {
    if (reader_ != nullptr)
      time_out(reader_, [](ReadOp& op) { op.result_ = {IoStatus::kTimedOut, 0}; });
    if (handshaker_ != nullptr)
      time_out(handshaker_, [](HandshakeOp& op) { op.status_ = IoStatus::kTimedOut; });
  }
  if (writer_ != nullptr && now_ns >= write_deadline_ns_) {
    time_out(writer_, [](WriteOp& op) { op.result_.status = IoStatus::kTimedOut; });
  }
}

void Stream::Cancel() {
  cancelled_ = true;
  if (reader_ != nullptr) {
    reader_->result_ = {IoStatus::kCancelled, 0};
    loop_.ResumeSoon(std::exchange(reader_, nullptr)->caller_);
  }
  if (writer_ != nullptr) {
    writer_->result_.status = IoStatus::kCancelled;
    loop_.ResumeSoon(std::exchange(writer_, nullptr)->caller_);
  }
  if (handshaker_ != nullptr) {
    handshaker_->status_ = IoStatus::kCancelled;
    loop_.ResumeSoon(std::exchange(handshaker_, nullptr)->caller_);
  }
}

void Stream::ShutdownWrite() {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    SSL_shutdown(ssl_);
  }
  shutdown(fd_, SHUT_WR);
}

bool Stream::IsQuiet() const {
  if (hung_up_ || cancelled_ || (ssl_ != nullptr && SSL_has_pending(ssl_))) return false;
  if (!readable_) return true;  // Drained, and no edge since.
  char byte;
  const ssize_t got = recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

// Reading
// ----------------------------------------------------------------------------------------------------------

bool Stream::ReadOp::await_ready() {
  if (stream_.cancelled_) {
    result_ = {IoStatus::kCancelled, 0};
    return true;
  }
  if (!stream_.readable_ && stream_.ssl_ == nullptr) return false;
  return stream_.TryRead(*this) == Attempt::kDone;
}

void Stream::ReadOp::await_suspend(std::coroutine_handle<> caller) {
  assert(stream_.reader_ == nullptr);
  caller_ = caller;
  stream_.reader_ = this;
}

Stream::Attempt Stream::TryRead(ReadOp& op) {
  if (op.buffer_.empty()) {
    op.result_ = {};
    return readable_ || (ssl_ != nullptr && SSL_has_pending(ssl_)) ? Attempt::kDone
                                                                   : Attempt::kWantRead;
  }
  if (ssl_ == nullptr) {
    ssize_t got;
    do {
      got = recv(fd_, op.buffer_.data(), op.buffer_.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
      // A short read has drained the socket, unless the peer's FIN waits behind it.
      readable_ = static_cast<size_t>(got) == op.buffer_.size() || hung_up_;
      op.result_ = {IoStatus::kOk, static_cast<size_t>(got)};
      return Attempt::kDone;
    }
    if (got == 0) {
      op.result_ = {IoStatus::kEnd, 0};
      return Attempt::kDone;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      readable_ = false;
      return Attempt::kWantRead;
    }
    op.result_ = {IoStatus::kBroken, 0};
    return Attempt::kDone;
  }
  size_t got = 0;
  ERR_clear_error();
  const int done = SSL_read_ex(ssl_, op.buffer_.data(), op.buffer_.size(), &got);
  if (done == 1) {
    op.result_ = {IoStatus::kOk, got};
    return Attempt::kDone;
  }
  switch (SSL_get_error(ssl_, done)) {
    case SSL_ERROR_WANT_READ:
      readable_ = false;
      return Attempt::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      writable_ = false;
      return Attempt::kWantWrite;
    case SSL_ERROR_ZERO_RETURN:
      op.result_ = {IoStatus::kEnd, 0};
      return Attempt::kDone;
    default:
      // A FIN without close_notify is a truncation (RFC 8446 section 6.1): never a clean end.
      if (const char* reason = ERR_reason_error_string(ERR_peek_last_error())) tls_fault_ = reason;
      op.result_ = {IoStatus::kBroken, 0};
      return Attempt::kDone;
  }
}

// Writing
// ----------------------------------------------------------------------------------------------------------

Stream::WriteOp::WriteOp(Stream& stream, std::string_view first, std::string_view second,
                         std::string_view third)
    : stream_(stream) {
  int next = 0;
  for (const std::string_view piece : {first, second, third}) {
    pieces_[next++] = {const_cast<char*>(piece.data()), piece.size()};
  }
}

bool Stream::WriteOp::await_ready() {
  if (stream_.cancelled_) {
    result_.status = IoStatus::kCancelled;
    return true;
  }
  if (!stream_.writable_ && stream_.ssl_ == nullptr) return false;
  return stream_.TryWrite(*this) == Attempt::kDone;
}

void Stream::WriteOp::await_suspend(std::coroutine_handle<> caller) {
  assert(stream_.writer_ == nullptr);
  caller_ = caller;
  stream_.writer_ = this;
  stream_.write_deadline_ns_ = stream_.write_timeout_ns_ > 0
                                   ? stream_.loop_.now_ns() + stream_.write_timeout_ns_
                                   : kNoDeadline;
}

Stream::Attempt Stream::TryWrite(WriteOp& op) {
  auto& pieces = op.pieces_;
  int& first = op.first_piece_;
  for (;;) {
    while (first < static_cast<int>(pieces.size()) && pieces[first].iov_len == 0) ++first;
    if (first == static_cast<int>(pieces.size())) return Attempt::kDone;
    size_t sent = 0;
    if (ssl_ == nullptr) {
      msghdr message{};
      message.msg_iov = &pieces[first];
      message.msg_iovlen = pieces.size() - first;
      while (pieces[first + message.msg_iovlen - 1].iov_len == 0) --message.msg_iovlen;
      const ssize_t took = message.msg_iovlen == 1 ? send(fd_, pieces[first].iov_base,
                                                          pieces[first].iov_len, MSG_NOSIGNAL)
                                                   : sendmsg(fd_, &message, MSG_NOSIGNAL);
      if (took < 0) {
        if (errno == EINTR) continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
          writable_ = false;
          return Attempt::kWantWrite;
        }
        op.result_.status = IoStatus::kBroken;
        return Attempt::kDone;
      }
      sent = static_cast<size_t>(took);
    } else {
      ERR_clear_error();
      const int done = SSL_write_ex(ssl_, pieces[first].iov_base, pieces[first].iov_len, &sent);
      if (done != 1) {
        switch (SSL_get_error(ssl_, done)) {
          case SSL_ERROR_WANT_WRITE:
            writable_ = false;
            return Attempt::kWantWrite;
          case SSL_ERROR_WANT_READ:
            return Attempt::kWantRead;
          default:
            op.result_.status = IoStatus::kBroken;
            return Attempt::kDone;
        }
      }
    }
    op.result_.bytes += sent;
    while (sent > 0) {
      const size_t part = std::min(sent, pieces[first].iov_len);
      pieces[first].iov_base = static_cast<char*>(pieces[first].iov_base) + part;
      pieces[first].iov_len -= part;
      sent -= part;
      if (pieces[first].iov_len == 0) ++first;
    }
  }
}

// TLS
// --------------------------------------------------------------------------------------------------------------

Stream::Attempt Stream::TryHandshake(HandshakeOp& op) {
  if (cancelled_) {
    op.status_ = IoStatus::kCancelled;
    return Attempt::kDone;
  }
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_);
  if (done == 1) return Attempt::kDone;
  switch (SSL_get_error(ssl_, done)) {
    case SSL_ERROR_WANT_READ:
      return Attempt::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      return Attempt::kWantWrite;
    default:
      op.status_ = IoStatus::kBroken;
      return Attempt::kDone;
  }
}

Task<Result<void>> Stream::Handshake(std::string who, int64_t deadline_ns) {
  const int64_t saved_deadline_ns = std::exchange(read_deadline_ns_, deadline_ns);
  const IoStatus status = co_await HandshakeOp(*this);
  read_deadline_ns_ = saved_deadline_ns;
  readable_ = true;  // Bytes of the first record may have come with the handshake's last.
  if (status == IoStatus::kOk) co_return Result<void>();
  if (status == IoStatus::kTimedOut) {
    co_return MakeError(ErrorCode::kDeadlineExceeded, "TLS with " + who + ": no answer in time");
  }
  co_return MakeError(ErrorCode::kUnavailable, "TLS with " + who + ": " + TlsReason(ssl_));
}

Task<Result<void>> Stream::StartTlsClient(const TlsContext& context, std::string server_name,
                                          int64_t deadline_ns) {
  ssl_ = SSL_new(context.native());
  SSL_set_mode(ssl_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                         SSL_MODE_RELEASE_BUFFERS);
  SSL_set_fd(ssl_, fd_);
  SSL_set_connect_state(ssl_);
  if (ASN1_OCTET_STRING* ip = a2i_IPADDRESS(server_name.c_str()); ip != nullptr) {
    ASN1_OCTET_STRING_free(
        ip);  // SNI carries names only (RFC 6066 section 3); an address is verified as one.
    if (context.verifies())
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_), server_name.c_str());
  } else {
    SSL_set_tlsext_host_name(ssl_, server_name.c_str());
    if (context.verifies()) SSL_set1_host(ssl_, server_name.c_str());
  }
  co_return co_await Handshake(std::move(server_name), deadline_ns);
}

Task<Result<void>> Stream::StartTlsServer(const TlsContext& context, int64_t deadline_ns) {
  ssl_ = SSL_new(context.native());
  SSL_set_mode(ssl_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                         SSL_MODE_RELEASE_BUFFERS);
  SSL_set_fd(ssl_, fd_);
  SSL_set_accept_state(ssl_);
  co_return co_await Handshake(peer_.ToString(), deadline_ns);
}

std::string_view Stream::alpn() const {
  if (ssl_ == nullptr) return {};
  const unsigned char* name = nullptr;
  unsigned int length = 0;
  SSL_get0_alpn_selected(ssl_, &name, &length);
  return {reinterpret_cast<const char*>(name), length};
}

}  // namespace weir::net
