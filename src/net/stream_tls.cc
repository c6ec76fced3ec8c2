// Stream over TLS.
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <utility>

#include "net/stream.h"
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

bool Stream::HandshakeOp::await_ready() { return stream_.TryHandshake(*this) == Attempt::kDone; }

void Stream::HandshakeOp::await_suspend(std::coroutine_handle<> caller) {
  caller_ = caller;
  stream_.handshaker_ = this;
}

void Stream::DropTls() {
  if (ssl_ == nullptr) return;
  SSL_free(ssl_);
  ssl_ = nullptr;
}

void Stream::ShutdownTls() {
  ERR_clear_error();
  SSL_shutdown(ssl_);
}

bool Stream::HasDecrypted() const { return ssl_ != nullptr && SSL_has_pending(ssl_) != 0; }

Stream::Attempt Stream::ReadTls(ReadOp& op) {
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

Stream::Attempt Stream::WriteTls(WriteOp& op, size_t& sent) {
  const iovec& piece = op.pieces_[op.first_piece_];
  ERR_clear_error();
  const int done = SSL_write_ex(ssl_, piece.iov_base, piece.iov_len, &sent);
  if (done == 1) return Attempt::kDone;
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

void Stream::BeginTls(const TlsContext& context) {
  carrier_ = Carrier::kTls;
  is_tls_ = true;
  ssl_ = SSL_new(context.native());
  SSL_set_mode(ssl_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                         SSL_MODE_RELEASE_BUFFERS);
  SSL_set_fd(ssl_, fd_);
}

Task<Result<void>> Stream::StartTlsClient(const TlsContext& context, std::string server_name,
                                          int64_t deadline_ns) {
  BeginTls(context);
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
  BeginTls(context);
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
