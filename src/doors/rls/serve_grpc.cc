#include "doors/rls/serve_grpc.h"

#include <algorithm>
#include <utility>

#include "net/event.h"

namespace weir::doors::rls {
namespace {

constexpr size_t kReadBytes = 32 * 1024;
constexpr size_t kWriteBytes = 64 * 1024;
// Between "open no more calls" and the last id that is answered: calls on their way arrive.
constexpr int64_t kLastCallsNs = 1'000'000'000;

}  // namespace

// The shell between a socket and a session: one task reads, one writes at the end of a tick.
class GrpcSocket {
 public:
  GrpcSocket(std::unique_ptr<net::Stream> stream, const GrpcServices& services,
             const GrpcOptions& options, const net::DrainFlag& drain, GrpcConnections& connections)
      : loop_(stream->loop()),
        stream_(std::move(stream)),
        options_(options),
        connections_(connections),
        next_(connections.first_),
        wake_(loop_),
        written_(loop_),
        aging_(loop_, [this] { Age(); }),
        calls_(services, loop_, drain),
        session_(options.limits, calls_) {
    if (next_ != nullptr) next_->previous_ = this;
    connections_.first_ = this;
    calls_.Start(session_, [this] { wake_.Set(); });
    stream_->SetWriteTimeout(options_.write_timeout_ns);
    if (options_.max_connection_age_ns > 0) aging_.ArmAt(loop_.now_ns() + JitteredAge());
    if (connections_.draining_) AskToLeave();
  }
  ~GrpcSocket() {
    (previous_ != nullptr ? previous_->next_ : connections_.first_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
  }

  Task<void> Run() {
    loop_.Spawn(Write(*this));
    co_await Read();
    over_ = true;
    wake_.Set();
    co_await written_.Wait();
    co_await calls_.Settled();
    co_await net::CloseGently(*stream_);
  }

  void AskToLeave() {
    if (std::exchange(asked_to_leave_, true)) return;
    session_.ShutdownNotice();
    wake_.Set();
  }
  void TakeNoMore() {
    if (std::exchange(closing_, true)) return;
    session_.GoAway();
    wake_.Set();
  }
  GrpcSocket* next() const { return next_; }

 private:
  // Up to a tenth more: clients that came together do not leave together.
  int64_t JitteredAge() const {
    const auto bits = static_cast<uint64_t>(loop_.now_ns()) * 0x9e3779b97f4a7c15u;
    return options_.max_connection_age_ns +
           options_.max_connection_age_ns / 10 * static_cast<int64_t>(bits >> 56) / 256;
  }
  void Age() {
    if (asked_to_leave_) return TakeNoMore();
    AskToLeave();
    aging_.ArmAt(loop_.now_ns() + kLastCallsNs);
  }

  Task<void> Read() {
    for (;;) {
      SetDeadline();
      net::IoResult got = co_await stream_->WaitReadable();
      if (got.ok()) {
        char* const room = in_.Prepare(kReadBytes);
        got = co_await stream_->Read({room, kReadBytes});
      }
      if (got.status == net::IoStatus::kTimedOut) {
        session_.GoAway();
        co_return;
      }
      if (!got.ok()) {
        stream_->Cancel();  // Nobody reads what is written.
        co_return;
      }
      in_.Commit(got.bytes);
      const bool goes_on = session_.Feed(in_.View(), loop_.now_ns());
      in_.Clear();
      if (session_.requests() > requests_seen_) idle_since_ns_ = loop_.now_ns();
      requests_seen_ = session_.requests();
      wake_.Set();
      if (!goes_on) co_return;
    }
  }

  static Task<void> Write(GrpcSocket& socket) {
    co_await socket.WriteAll();
    socket.written_.Set();
  }

  Task<void> WriteAll() {
    for (;;) {
      co_await wake_.Wait();
      co_await loop_.TickEnd();
      wake_.Reset();
      bool more = true;
      while (more) {
        more = session_.Drain(out_, kWriteBytes);
        if (out_.empty()) break;
        const net::IoResult sent = co_await stream_->Write(out_.View());
        out_.Clear();
        if (!sent.ok()) {
          stream_->Cancel();  // Reading ends, too.
          co_return;
        }
      }
      if (session_.finished()) {
        stream_->SetReadDeadline(loop_.now_ns());  // Nothing more comes: reading ends.
        co_return;
      }
      if (over_) co_return;
    }
  }

  void SetDeadline() {
    const bool new_here = session_.requests() == 0;
    const int64_t timeout_ns = new_here && options_.head_timeout_ns > 0
                                   ? std::min(options_.head_timeout_ns, IdleTimeout())
                                   : IdleTimeout();
    stream_->SetReadDeadline(timeout_ns == INT64_MAX ? net::kNoDeadline
                                                     : idle_since_ns_ + timeout_ns);
  }
  int64_t IdleTimeout() const {
    return options_.idle_timeout_ns > 0 ? options_.idle_timeout_ns : INT64_MAX;
  }

  net::EventLoop& loop_;
  const std::unique_ptr<net::Stream> stream_;
  const GrpcOptions options_;
  GrpcConnections& connections_;
  GrpcSocket* next_ = nullptr;
  GrpcSocket* previous_ = nullptr;
  wire::Buffer in_;
  wire::Buffer out_;
  net::Event wake_;
  net::Event written_;
  net::Timer aging_;
  bool over_ = false;
  bool asked_to_leave_ = false;
  bool closing_ = false;
  uint64_t requests_seen_ = 0;
  int64_t idle_since_ns_ = loop_.now_ns();
  GrpcConnection calls_;
  http2::ServerSession session_;  // Last: what its end closes uses the rest.
};

void GrpcConnections::BeginDrain() {
  draining_ = true;
  for (GrpcSocket* at = first_; at != nullptr; at = at->next()) at->AskToLeave();
}

void GrpcConnections::CloseIdle() {
  for (GrpcSocket* at = first_; at != nullptr; at = at->next()) at->TakeNoMore();
}

Task<void> ServeGrpc(std::unique_ptr<net::Stream> stream, GrpcServices services,
                     GrpcOptions options, const net::DrainFlag& drain,
                     GrpcConnections& connections) {
  GrpcSocket socket(std::move(stream), services, options, drain, connections);
  co_await socket.Run();
}

}  // namespace weir::doors::rls
