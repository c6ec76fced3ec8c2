#include "net/stream.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

#include "net/channel.h"

namespace weir::net {

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
  if (channel_ != nullptr) {
    channel_->Detach();
  } else {
    loop_.Unwatch(fd_, this);
    close(fd_);
  }
  (previous_ != nullptr ? previous_->next_ : loop_.streams_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
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
  if (carrier_ == Carrier::kChannel) return channel_->ShutdownWrite();
  if (carrier_ == Carrier::kTls) ShutdownTls();
  shutdown(fd_, SHUT_WR);
}

bool Stream::IsQuiet() const {
  if (hung_up_ || cancelled_ || HasDecrypted()) return false;
  if (!readable_) return true;  // Drained, and no edge since.
  if (carrier_ == Carrier::kChannel) return false;
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
  if (!stream_.readable_ && stream_.carrier_ != Carrier::kTls) return false;
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
    return readable_ || HasDecrypted() ? Attempt::kDone : Attempt::kWantRead;
  }
  switch (carrier_) {
    case Carrier::kSocket:
      return ReadSocket(op);
    case Carrier::kTls:
      return ReadTls(op);
    case Carrier::kChannel:
      break;
  }
  return ReadChannel(op);
}

Stream::Attempt Stream::ReadSocket(ReadOp& op) {
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

size_t Stream::Peek(std::span<char> buffer) const {
  assert(carrier_ == Carrier::kSocket);
  const ssize_t got = recv(fd_, buffer.data(), buffer.size(), MSG_PEEK | MSG_DONTWAIT);
  return got > 0 ? static_cast<size_t>(got) : 0;
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
  if (!stream_.writable_ && stream_.carrier_ != Carrier::kTls) return false;
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
    const Attempt attempt = carrier_ == Carrier::kSocket ? WriteSocket(op, sent)
                            : carrier_ == Carrier::kTls  ? WriteTls(op, sent)
                                                         : WriteChannel(op, sent);
    if (attempt != Attempt::kDone || !op.result_.ok()) return attempt;
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

Stream::Attempt Stream::WriteSocket(WriteOp& op, size_t& sent) {
  iovec* const first = &op.pieces_[op.first_piece_];
  msghdr message{};
  message.msg_iov = first;
  message.msg_iovlen = op.pieces_.size() - op.first_piece_;
  while (first[message.msg_iovlen - 1].iov_len == 0) --message.msg_iovlen;
  ssize_t took;
  do {
    took = message.msg_iovlen == 1 ? send(fd_, first->iov_base, first->iov_len, MSG_NOSIGNAL)
                                   : sendmsg(fd_, &message, MSG_NOSIGNAL);
  } while (took < 0 && errno == EINTR);
  if (took >= 0) {
    sent = static_cast<size_t>(took);
    return Attempt::kDone;
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    writable_ = false;
    return Attempt::kWantWrite;
  }
  op.result_.status = IoStatus::kBroken;
  return Attempt::kDone;
}

}  // namespace weir::net
