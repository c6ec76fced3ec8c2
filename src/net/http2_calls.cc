#include "net/http2_calls.h"

#include <utility>

#include "net/http2_stream.h"

namespace weir::net {

Http2Calls::Http2Calls(ServeCall serve, const Http2Options& options)
    : serve_(std::move(serve)),
      unfinished_max_(2 * size_t{options.limits.concurrent_streams_max}),
      write_timeout_ns_(options.write_timeout_ns) {}

Http2Calls::~Http2Calls() = default;

void Http2Calls::Start(Http2Connection& connection) {
  connection_ = &connection;
  stalled_.emplace(connection.loop(), [this] { LookForStalled(); });
}

http2::ServerStream* Http2Calls::OnStream(int32_t stream_id) {
  // Calls of streams that the client has reset need some time to end.
  if (*unfinished_ >= unfinished_max_) return nullptr;
  return Http2Stream::Open(*this, stream_id);
}

void Http2Calls::Serve(std::shared_ptr<Http2Stream> stream) {
  Stream& socket = connection_->socket();
  connection_->loop().Spawn(serve_(
      Stream::OverChannel(connection_->loop(), std::move(stream), socket.peer(), socket.is_tls())));
}

void Http2Calls::OnServed(Http2Stream& stream) {
  unsent_.push_back(&stream);
  connection_->connections().AddUnsent(+1);
  if (!stalled_->armed() && write_timeout_ns_ > 0) stalled_->ArmAt(now_ns() + write_timeout_ns_);
}

void Http2Calls::OnStreamClosed(Http2Stream& stream) {
  connection_->connections().AddUnsent(-static_cast<int>(std::erase(unsent_, &stream)));
}

// Answers that are complete here have no one who waits for them but this.
void Http2Calls::LookForStalled() {
  const int64_t since_ns = now_ns() - write_timeout_ns_;
  for (const Http2Stream* stream : unsent_) {
    if (stream->moved_ns() <= since_ns) session().Reset(stream->id(), http2::kCancel);
  }
  Wake();
  if (!unsent_.empty()) stalled_->ArmAt(now_ns() + write_timeout_ns_ / 2);
}

}  // namespace weir::net
