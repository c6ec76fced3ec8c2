#include "net/http2_connection.h"

#include <algorithm>
#include <utility>

#include "net/serve_pipelined.h"

namespace weir::net {
namespace {

constexpr size_t kReadBytes = 32 * 1024;
constexpr size_t kIdleBytes = 4 * 1024;  // What a connection without a stream keeps to write from.
constexpr size_t kWriteBytes = 64 * 1024;  // At a time: what a slow connection holds.
// Of an old connection, between "open no more streams" and the last id that is answered: what is on
// its way arrives.
constexpr int64_t kLastStreamsNs = 1'000'000'000;

int64_t After(int64_t since_ns, int64_t timeout_ns) {
  return timeout_ns > 0 ? since_ns + timeout_ns : kNoDeadline;
}

// Up to a tenth more, so that clients that came together do not leave together. The bits of the
// clock are random enough for that.
int64_t Spread(int64_t age_ns, int64_t now_ns) {
  const uint64_t bits = static_cast<uint64_t>(now_ns) * 0x9e3779b97f4a7c15u;
  return age_ns + age_ns / 10 / 256 * static_cast<int64_t>(bits >> 56);
}

}  // namespace

void Http2Connections::BeginDrain() {
  draining_ = true;
  for (Http2Connection* at = first_; at != nullptr; at = at->next_) at->AskToLeaveWhenUsed();
}

void Http2Connections::AskToLeave() {
  for (Http2Connection* at = first_; at != nullptr; at = at->next_) at->AskToLeave();
}

void Http2Connections::CloseIdle() {
  for (Http2Connection* at = first_; at != nullptr; at = at->next_) at->TakeNoMore();
}

Http2Connection::Http2Connection(std::unique_ptr<Stream> socket, const Http2Options& options,
                                 http2::Acceptor& acceptor, Http2Connections& connections)
    : loop_(socket->loop()),
      socket_(std::move(socket)),
      options_(options),
      connections_(connections),
      next_(connections.first_),
      wake_(loop_),
      written_(loop_),
      idle_since_ns_(loop_.now_ns()),
      aging_(loop_, [this] { Age(); }),
      session_(options.limits, acceptor) {
  if (next_ != nullptr) next_->previous_ = this;
  connections_.first_ = this;
  socket_->SetWriteTimeout(options_.write_timeout_ns);
  if (options_.max_age_ns > 0)
    aging_.ArmAt(loop_.now_ns() + Spread(options_.max_age_ns, loop_.now_ns()));
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

void Http2Connection::TakeNoMore() {
  if (std::exchange(closing_, true)) return;
  session_.GoAway();
  Wake();
}

void Http2Connection::Age() {
  if (asked_to_leave_) return TakeNoMore();
  AskToLeave();
  aging_.ArmAt(loop_.now_ns() + kLastStreamsNs);
}

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
    IoResult got = co_await socket_->WaitReadable();
    if (got.ok()) {
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
    NoteStreams();
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
    NoteStreams();
    if (!out_.empty()) {
      connections_.AddUnsent(+1);
      const IoResult sent = co_await socket_->Write(out_.View());
      connections_.AddUnsent(-1);
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

void Http2Connection::NoteStreams() {
  if (session_.head_of() != head_of_) {
    head_of_ = session_.head_of();
    head_began_ns_ = loop_.now_ns();
  }
  const bool busy = session_.open_streams() > 0;
  const bool used = was_busy_ || session_.requests() > requests_seen_;
  was_busy_ = busy;
  requests_seen_ = session_.requests();
  if (busy || !used) return;
  idle_since_ns_ = loop_.now_ns();
  SetDeadline();
  if (connections_.draining_ && !over_) AskToLeaveWhenUsed();
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

}  // namespace weir::net
