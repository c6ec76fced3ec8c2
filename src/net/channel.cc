// Stream over a Channel.
#include "net/channel.h"

#include <utility>

namespace weir::net {

std::unique_ptr<Stream> Stream::OverChannel(EventLoop& loop, std::shared_ptr<Channel> channel,
                                            const Endpoint& peer, bool is_tls) {
  std::unique_ptr<Stream> stream(new Stream(loop, /*fd=*/-1, peer));
  stream->carrier_ = Carrier::kChannel;
  stream->is_tls_ = is_tls;
  stream->readable_ = channel->readable();
  channel->stream_ = stream.get();
  stream->channel_ = std::move(channel);
  return stream;
}

Stream::Attempt Stream::ReadChannel(ReadOp& op) {
  op.result_ = channel_->Receive(op.buffer_);
  readable_ = channel_->readable();
  return op.result_.ok() && op.result_.bytes == 0 ? Attempt::kWantRead : Attempt::kDone;
}

Stream::Attempt Stream::WriteChannel(WriteOp& op, size_t& sent) {
  const iovec& piece = op.pieces_[op.first_piece_];
  const IoResult took = channel_->Send({static_cast<const char*>(piece.iov_base), piece.iov_len});
  op.result_.status = took.status;
  sent = took.bytes;
  if (!took.ok() || sent > 0) return Attempt::kDone;
  writable_ = false;
  return Attempt::kWantWrite;
}

void Channel::Raise(uint32_t events) {
  if (stream_ == nullptr) return;
  stream_->Note(events);
  stream_->OnEvents(events);
}

void Channel::RaiseReadable() { Raise(EPOLLIN); }
void Channel::RaiseWritable() { Raise(EPOLLOUT); }
void Channel::RaiseHangup() { Raise(EPOLLHUP); }

}  // namespace weir::net
