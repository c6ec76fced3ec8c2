#include "gateway/forward.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "gateway/answer_relay.h"
#include "gateway/body_upload.h"
#include "gateway/loop_state.h"
#include "gateway/own_answer.h"
#include "gateway/tunnel.h"
#include "gateway/upstream_request.h"

namespace weir::gateway {
namespace {

constexpr int kExtraTries = 2;
constexpr size_t kReadBytes = 16 * 1024;
constexpr size_t kCopyBytes =
    8 * 1024;  // Up to here copying a body behind its head is cheaper than a second piece.
constexpr int64_t kStaleNs =
    100'000'000;  // A kept-alive connection that ends so soon was closed before the request came.

// How one try on one connection ended.
struct Outcome {
  enum class Kind : uint8_t {
    kAnswered,  // The upstream's answer was passed on, whole.
    kRepeat,    // No answer, and another try is safe.
    kFault,     // No answer: give one with `status` and `reason`.
    kAbort,     // The client is gone, or its answer was cut short.
  };
  Kind kind = Kind::kAnswered;
  int status = 0;
  const char* reason = "";
};

Outcome Fault(int status, const char* reason) { return {Outcome::Kind::kFault, status, reason}; }
constexpr Outcome kAborted{Outcome::Kind::kAbort, 0, ""};

int64_t DeadlineOf(LoopState& state, const Call& call, int64_t timeout_ns) {
  return std::min(call.deadline_ns,
                  timeout_ns > 0 ? state.loop().now_ns() + timeout_ns : net::kNoDeadline);
}

bool IsIdempotent(http1::Method method) {
  switch (method) {
    case http1::Method::kGet:
    case http1::Method::kHead:
    case http1::Method::kPut:
    case http1::Method::kDelete:
    case http1::Method::kOptions:
      return true;
    default:
      return false;
  }
}

// Takes the waiting upstream down when the client hangs up.
class HangupWatch {
 public:
  HangupWatch(net::Stream& client, net::Stream& upstream, Call& call) : client_(client) {
    client_.OnHangup([&upstream, &call] {
      call.client_gone = true;
      upstream.Cancel();
    });
  }
  ~HangupWatch() { client_.OnHangup(nullptr); }
  HangupWatch(const HangupWatch&) = delete;
  HangupWatch& operator=(const HangupWatch&) = delete;

 private:
  net::Stream& client_;
};

// One try: a request on one connection, and its answer.
class Exchange {
 public:
  Exchange(LoopState& state, Client& client, Call& call, UpstreamPool::Loan& loan)
      : state_(state),
        client_(client),
        call_(call),
        loan_(loan),
        upstream_(*loan.stream),
        watch_(client.stream, *loan.stream, call) {}

  Task<Outcome> Run();
  // After Run: the connection can carry another call.
  bool reusable() const { return reusable_; }

 private:
  Task<bool> Send();
  Task<Outcome> ReadAnswer();
  Task<Outcome> Lost(net::IoStatus status);
  Task<Outcome> Relay(size_t head_bytes);
  Task<Outcome> Tunnel(size_t head_bytes);
  bool MayRepeat(net::IoStatus status) const;
  void CountAnswer(int status) {
    call_.upstream->pool->series().answers[static_cast<size_t>(std::clamp(status / 100, 0, 5))].Add(
        state_.shard());
  }

  LoopState& state_;
  Client& client_;
  Call& call_;
  UpstreamPool::Loan& loan_;
  net::Stream& upstream_;
  HangupWatch watch_;
  std::optional<BodyUpload> upload_;
  int64_t sent_ns_ = 0;
  bool sent_ = false;  // Some of the request may have reached the upstream.
  bool answer_began_ = false;
  bool reusable_ = false;
};

Task<Outcome> Exchange::Run() {
  upstream_.SetWriteTimeout(call_.view->timeouts.write_ns);
  call_.upstream_in.Clear();
  Outcome outcome;
  const bool sent = co_await Send();
  if (sent) {
    outcome = co_await ReadAnswer();
  } else {
    outcome = co_await Lost(net::IoStatus::kBroken);
  }
  if (upload_) {
    const bool complete = co_await upload_->Stop();
    reusable_ = reusable_ && complete;
  }
  co_return outcome;
}

// The head, and the body as far as it is at hand; the rest follows beside the answer. False: the
// connection is broken.
Task<bool> Exchange::Send() {
  call_.out.Clear();
  AppendUpstreamHead(call_, client_, loan_.url, call_.out);
  sent_ns_ = state_.loop().now_ns();
  upstream_.SetReadDeadline(DeadlineOf(state_, call_, call_.view->timeouts.first_byte_ns));
  std::string_view body;
  if (call_.body.whole() && !call_.body.none()) {
    if (SendsChunked(call_)) {
      http1::ChunkedWriter::AppendChunk(call_.out, call_.body.payload());
      http1::ChunkedWriter::AppendEnd(call_.out, call_.body.trailers());
    } else if (call_.body.payload().size() <= kCopyBytes) {
      call_.out.Append(call_.body.payload());
    } else {
      body = call_.body.payload();
    }
  }
  const net::IoResult written = co_await upstream_.Write(call_.out.View(), body);
  sent_ = sent_ || written.bytes > 0;
  if (!written.ok()) co_return false;
  if (call_.body.whole()) co_return true;
  if (call_.body.awaits_continue()) {
    // Only now is the body wanted: the call was allowed and there is somewhere to send it.
    call_.body.MarkContinued();
    const net::IoResult told = co_await client_.stream.Write("HTTP/1.1 100 Continue\r\n\r\n");
    if (!told.ok()) {
      call_.client_gone = true;
      co_return false;
    }
  }
  upstream_.SetReadDeadline(
      call_.deadline_ns);  // The first byte is due once the body has been sent.
  upload_.emplace(state_.loop(), call_, upstream_, SendsChunked(call_));
  upload_->Start();
  co_return true;
}

Task<Outcome> Exchange::ReadAnswer() {
  http1::HeadProgress progress;
  for (;;) {
    char* const room = call_.upstream_in.Prepare(kReadBytes);
    const net::IoResult got = co_await upstream_.Read({room, call_.upstream_in.spare()});
    if (!got.ok()) co_return co_await Lost(got.status);
    call_.upstream_in.Commit(got.bytes);
    for (;;) {
      const http1::ParseOutcome parsed = http1::ParseResponseHead(
          call_.upstream_in.View(), {}, call_.head.method_id, call_.answer, &progress);
      if (parsed.need_more()) break;
      if (parsed.error()) {
        CountAnswer(0);
        co_return Fault(502, "the upstream's answer is not valid HTTP");
      }
      if (!call_.answer.interim()) {
        call_.upstream->pool->series().first_byte.Record(state_.shard(),
                                                         state_.loop().now_ns() - sent_ns_);
        CountAnswer(call_.answer.status);
        if (call_.answer.switching_protocols) co_return co_await Tunnel(parsed.consumed);
        co_return co_await Relay(parsed.consumed);
      }
      answer_began_ = true;
      if (call_.answer.status != 100 && call_.head.minor_version >= 1) {  // 100 was our own to say.
        call_.out.Clear();
        AppendInterimHead(call_, call_.out);
        const net::IoResult told = co_await client_.stream.Write(call_.out.View());
        if (!told.ok()) co_return kAborted;
      }
      call_.upstream_in.Consume(parsed.consumed);
      progress = {};
      if (call_.upstream_in.empty()) break;
    }
  }
}

bool Exchange::MayRepeat(net::IoStatus status) const {
  if (answer_began_ || !call_.upstream_in.empty() || upload_ || !(call_.body.whole() || !sent_))
    return false;
  if (status != net::IoStatus::kEnd && status != net::IoStatus::kBroken) return false;
  if (!sent_ || IsIdempotent(call_.head.method_id)) return true;
  return loan_.reused && state_.loop().now_ns() - sent_ns_ < kStaleNs;
}

// The connection ended, or time ran out, before an answer's head was there.
Task<Outcome> Exchange::Lost(net::IoStatus status) {
  if (upload_) {
    const bool complete = co_await upload_->Stop();
    const RequestBody::Piece& fault = upload_->fault();
    if (!complete && fault.state == RequestBody::State::kRefused)
      co_return Fault(fault.status, fault.reason);
    if (!complete && fault.state == RequestBody::State::kTimedOut) {
      co_return Fault(408, "the body did not arrive in time");
    }
    if (!complete && fault.state == RequestBody::State::kGone) co_return kAborted;
  }
  if (call_.client_gone) co_return kAborted;
  if (MayRepeat(status)) co_return Outcome{.kind = Outcome::Kind::kRepeat};
  CountAnswer(0);
  if (status == net::IoStatus::kTimedOut)
    co_return Fault(504, "the upstream did not answer in time");
  co_return Fault(502, "the upstream closed the connection without an answer");
}

Task<Outcome> Exchange::Relay(size_t head_bytes) {
  // An answer that comes before the body has gone through leaves the rest of the body in the way of
  // the next request.
  if (upload_ && !upload_->finished()) call_.keep_alive = false;
  const bool upstream_keeps = call_.answer.keep_alive;
  call_.body.ReleasePayload();  // Nothing is repeated from here on; a stream may last for hours.
  const RelayEnd end = co_await RelayAnswer(state_, client_, call_, upstream_, head_bytes);
  reusable_ =
      end == RelayEnd::kWhole && upstream_keeps && call_.upstream_in.empty() && !call_.client_gone;
  if (end != RelayEnd::kWhole) co_return kAborted;
  co_return Outcome{};
}

Task<Outcome> Exchange::Tunnel(size_t head_bytes) {
  if (!call_.upgrade) co_return Fault(502, "the upstream switched protocols unasked");
  call_.status = 101;
  call_.keep_alive = false;
  call_.streaming = true;
  state_.metrics().OnStream(state_.shard(), 1);
  call_.out.Clear();
  AppendSwitchingHead(call_, call_.out);
  call_.upstream_in.Consume(head_bytes);
  call_.answer_begun = true;
  const net::IoResult told = co_await client_.stream.Write(call_.out.View());
  if (told.ok()) {
    client_.stream.OnHangup(nullptr);
    client_.in.Consume(call_.head_bytes);
    co_await RunTunnel(client_.stream, upstream_, client_.in.View(), call_.upstream_in.View(),
                       {.idle_ns = call_.view->timeouts.idle_ns, .deadline_ns = call_.deadline_ns});
  }
  co_return kAborted;
}

Task<Ending> AnswerFault(LoopState& state, Client& client, Call& call, int status,
                         std::string_view message) {
  // The client may still be sending: whatever is left of its body goes with the connection.
  if (!call.body.done()) call.keep_alive = false;
  RenderError(state, call, status, message);
  call.answer_begun = true;
  const net::IoResult sent = co_await client.stream.Write(call.out.View());
  if (!sent.ok()) co_return Ending::kAbort;
  co_return call.keep_alive ? Ending::kKeep : Ending::kClose;
}

}  // namespace

Task<Ending> Forward(LoopState& state, Client& client, Call& call) {
  UpstreamPool& pool = *call.upstream->pool;
  for (int tries_left = kExtraTries;; --tries_left) {
    std::optional<UpstreamPool::Loan> loan = pool.TakeIdle();
    if (!loan) {
      Result<UpstreamPool::Loan> opened =
          co_await pool.Open(DeadlineOf(state, call, call.view->timeouts.connect_ns));
      if (client.stream.peer_hung_up()) {
        if (opened) pool.Drop(std::move(*opened));
        call.client_gone = true;
        co_return Ending::kAbort;
      }
      if (!opened) {
        if (tries_left > 0 && state.loop().now_ns() < call.deadline_ns) continue;
        pool.series().answers[0].Add(state.shard());
        const bool late = opened.error().code == ErrorCode::kDeadlineExceeded;
        co_return co_await AnswerFault(state, client, call, late ? 504 : 502,
                                       late ? "the upstream could not be reached in time"
                                            : "the upstream could not be reached");
      }
      loan.emplace(std::move(*opened));
    }
    Outcome outcome;
    bool reusable = false;
    {
      Exchange exchange(state, client, call, *loan);
      outcome = co_await exchange.Run();
      reusable = exchange.reusable();
    }
    if (reusable) {
      pool.Return(std::move(*loan));
    } else {
      pool.Drop(std::move(*loan));
    }
    switch (outcome.kind) {
      case Outcome::Kind::kAnswered:
        co_return call.keep_alive ? Ending::kKeep : Ending::kClose;
      case Outcome::Kind::kAbort:
        co_return Ending::kAbort;
      case Outcome::Kind::kFault:
        co_return co_await AnswerFault(state, client, call, outcome.status, outcome.reason);
      case Outcome::Kind::kRepeat:
        if (tries_left > 0) continue;
        pool.series().answers[0].Add(state.shard());
        co_return co_await AnswerFault(state, client, call, 502,
                                       "the upstream closed the connection without an answer");
    }
  }
}

}  // namespace weir::gateway
