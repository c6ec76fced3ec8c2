#include "net/serve_http2.h"

#include <algorithm>
#include <utility>

#include "net/http2_connection.h"
#include "net/http2_stream.h"
#include "net/serve_pipelined.h"

namespace weir::net {
namespace {

constexpr size_t kReadBytes = 32 * 1024;
constexpr size_t kIdleBytes = 4 * 1024;  // What a connection without a stream keeps to write from.
constexpr size_t kWriteBytes = 64 * 1024;  // At a time: what a slow connection holds.

int64_t After(int64_t since_ns, int64_t timeout_ns) {
  return timeout_ns > 0 ? since_ns + timeout_ns : kNoDeadline;
}

}  // namespace

void Http2Connections::BeginDrain() {
  draining_ = true;
  for (Http2Connection* at = first_; at != nullptr; at = at->next()) at->AskToLeaveWhenUsed();
}

void Http2Connections::AskToLeave() {
  for (Http2Connection* at = first_; at != nullptr; at = at->next()) at->AskToLeave();
}

void Http2Connections::CloseIdle() {
  for (Http2Connection* at = first_; at != nullptr; at = at->next()) at->CloseIdle();
}

Task<void> ServeHttp2(std::unique_ptr<Stream> stream, ServeCall serve, Http2Options options,
                      Http2Connections& connections) {
  Http2Connection connection(std::move(stream), std::move(serve), options, connections);
  co_await connection.Run();
}

Http2Connection::Http2Connection(std::unique_ptr<Stream> socket, ServeCall serve,
                                 const Http2Options& options, Http2Connections& connections)
    : loop_(socket->loop()),
      socket_(std::move(socket)),
      serve_(std::move(serve)),
      options_(options),
      connections_(connections),
      next_(connections.first_),
      wake_(loop_),
      written_(loop_),
      idle_since_ns_(loop_.now_ns()),
      stalled_(loop_, [this] { LookForStalled(); }),
      session_(options.limits, *this) {
  if (next_ != nullptr) next_->previous_ = this;
  connections_.first_ = this;
  socket_->SetWriteTimeout(options_.write_timeout_ns);
}

Http2Connection::~Http2Connection() {
  (previous_ != nullptr ? previous_->next_ : connections_.first_) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}

void Http2Connection::AskToLeaveWhenUsed() {
  if (session_.requests() > 0 && session_.open_streams() == 0) AskToLeave();
}

void Http2Connection::AskToLeave() {
  if (std::exchange(asked_to_leave_, true)) return;
  session_.ShutdownNotice();
  Wake();
}

void Http2Connection::CloseIdle() {
  if (std::exchange(closing_, true)) return;
  session_.GoAway();
  Wake();
}

// Reading and writing
// -------------------------------------------------------------------------------------------------

Task<void> Http2Connection::Run() {
  loop_.Spawn(Write(*this));
  co_await Read();
  over_ = true;
  Wake();
  co_await written_.Wait();
  co_await CloseGently(*socket_);
}

Task<void> Http2Connection::Read() {
  for (;;) {
    SetDeadline();
    const IoResult waited = co_await socket_->WaitReadable();
    IoResult got = waited;
    if (waited.ok()) {
      char* const room = in_.Prepare(kReadBytes);
      got = co_await socket_->Read({room, kReadBytes});
    }
    if (got.status == IoStatus::kTimedOut) {
      session_.GoAway();
      co_return;
    }
    if (!got.ok()) {
      socket_->Cancel();  // Nobody reads what is written.
      co_return;
    }
    in_.Commit(got.bytes);
    const bool goes_on = session_.Feed(in_.View(), loop_.now_ns());
    in_.ClearAndShrink(0);  // A quiet connection holds no buffer.
    Wake();
    if (!goes_on) co_return;
  }
}

Task<void> Http2Connection::Write(Http2Connection& connection) {
  co_await connection.WriteAll();
  connection.written_.Set();
}

Task<void> Http2Connection::WriteAll() {
  for (;;) {
    co_await loop_.TickEnd();
    wake_.Reset();
    session_.Drain(out_, kWriteBytes);
    if (!out_.empty()) {
      ++connections_.unsent_;
      const IoResult sent = co_await socket_->Write(out_.View());
      --connections_.unsent_;
      out_.Clear();
      if (sent.ok()) continue;
      socket_->Cancel();  // Reading ends, too.
      co_return;
    }
    if (over_) co_return;
    if (session_.finished()) {
      SetDeadline();  // Reading ends.
      co_return;
    }
    if (session_.open_streams() == 0) out_.ClearAndShrink(kIdleBytes);
    co_await wake_.Wait();
  }
}

void Http2Connection::SetDeadline() {
  if (session_.finished()) return socket_->SetReadDeadline(loop_.now_ns());
  int64_t deadline_ns = kNoDeadline;
  if (head_of_ != 0) deadline_ns = After(head_began_ns_, options_.header_timeout_ns);
  if (session_.open_streams() == 0) {
    deadline_ns = std::min(deadline_ns, After(idle_since_ns_, options_.idle_timeout_ns));
  }
  socket_->SetReadDeadline(deadline_ns);
}

// Streams
// -------------------------------------------------------------------------------------------------

http2::ServerStream* Http2Connection::OnStream(int32_t stream_id) {
  // Calls of streams that the client has reset need some time to end.
  if (*unfinished_ >= 2 * size_t{options_.limits.concurrent_streams_max}) return nullptr;
  head_of_ = stream_id;
  head_began_ns_ = loop_.now_ns();
  return Http2Stream::Open(*this, stream_id);
}

void Http2Connection::OnHeadComplete() { head_of_ = 0; }

void Http2Connection::Serve(std::shared_ptr<Http2Stream> stream) {
  loop_.Spawn(
      serve_(Stream::OverChannel(loop_, std::move(stream), socket_->peer(), socket_->is_tls())));
}

void Http2Connection::OnServed(Http2Stream& stream) {
  unsent_.push_back(&stream);
  ++connections_.unsent_;
  if (!stalled_.armed() && options_.write_timeout_ns > 0)
    stalled_.ArmAt(loop_.now_ns() + options_.write_timeout_ns);
}

void Http2Connection::OnStreamClosed(Http2Stream& stream) {
  connections_.unsent_ -= static_cast<int>(std::erase(unsent_, &stream));
  if (head_of_ == stream.id()) head_of_ = 0;
  if (session_.open_streams() > 0) return;
  idle_since_ns_ = loop_.now_ns();
  SetDeadline();
  if (connections_.draining_ && !over_) AskToLeaveWhenUsed();
}

// Answers that are complete here have no one who waits for them but this.
void Http2Connection::LookForStalled() {
  const int64_t since_ns = loop_.now_ns() - options_.write_timeout_ns;
  for (const Http2Stream* stream : unsent_) {
    if (stream->moved_ns() <= since_ns) session_.Reset(stream->id(), http2::kCancel);
  }
  Wake();
  if (!unsent_.empty()) stalled_.ArmAt(loop_.now_ns() + options_.write_timeout_ns / 2);
}

}  // namespace weir::net
