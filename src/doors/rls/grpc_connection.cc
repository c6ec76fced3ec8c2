#include "doors/rls/grpc_connection.h"

#include <utility>

#include "doors/rls/health.h"

namespace weir::doors::rls {
namespace {

constexpr int64_t kLookEveryNs = 500'000'000;
constexpr std::string_view kTooLate = "the call's deadline has passed";

}  // namespace

GrpcConnection::GrpcConnection(const GrpcServices& services, const GrpcTimeouts& timeouts,
                               net::EventLoop& loop, const net::DrainFlag& drain)
    : services_(services),
      timeouts_(timeouts),
      loop_(loop),
      drain_(drain),
      settled_(loop),
      stalled_(loop, [this] { LookForStalled(); }) {}

GrpcConnection::~GrpcConnection() = default;

void GrpcConnection::Start(http2::ServerSession& session, std::function<void()> wake) {
  session_ = &session;
  wake_ = std::move(wake);
}

http2::ServerStream* GrpcConnection::OnStream(int32_t stream_id) {
  if (free_.empty()) free_.push_back(calls_.emplace_back(std::make_unique<GrpcCall>(*this)).get());
  GrpcCall* const call = free_.back();
  free_.pop_back();
  call->Begin(stream_id, loop_.now_ns());
  if (!stalled_.armed()) stalled_.ArmAt(loop_.now_ns() + kLookEveryNs);
  return call;
}

// Calls whose message does not come, and answers that nobody takes.
void GrpcConnection::LookForStalled() {
  bool some = false;
  for (const std::unique_ptr<GrpcCall>& call : calls_) {
    if (call->ended() || call->held()) continue;
    some = true;
    const int64_t limit_ns = call->answered() ? timeouts_.answer_ns : timeouts_.message_ns;
    if (limit_ns > 0 && loop_.now_ns() - call->moved_ns() >= limit_ns)
      session_->Reset(call->stream_id(), http2::kCancel);
  }
  if (!some) return;
  stalled_.ArmAt(loop_.now_ns() + kLookEveryNs);
  wake_();
}

void GrpcConnection::OnEnded(GrpcCall& call) {
  if (!call.held()) free_.push_back(&call);
}

Task<void> GrpcConnection::Settled() {
  while (waiting_ > 0) {
    settled_.Reset();
    co_await settled_.Wait();
  }
}

void GrpcConnection::OnMessage(GrpcCall& call) {
  if (call.method() == GrpcMethod::kHealthCheck) return AnswerHealth(call);
  AnswerRateLimit(call);
}

void GrpcConnection::AnswerHealth(GrpcCall& call) {
  const bool ready = services_.ready.load(std::memory_order_relaxed);
  const grpc::Status status = AnswerHealthCheck(call.message(), ready, call.body());
  if (status == grpc::Status::kOk) return call.Succeed();
  call.Fail(status, status == grpc::Status::kNotFound ? "service: this server has no such service"
                                                      : "the message is no HealthCheckRequest");
}

void GrpcConnection::AnswerRateLimit(GrpcCall& call) {
  if (call.timeout_ns() == 0) return call.Fail(grpc::Status::kDeadlineExceeded, kTooLate);
  RateLimitService& service = services_.rate_limit;
  service.worker().policy();  // As of now.
  const core::Now now = service.worker().engine().NowAt(loop_.now_ns(), loop_.wall_ns());
  if (service.waits()) return BeginRateLimit(call, now);
  Conclude(call, service.Decide(call.message(), now));
}

void GrpcConnection::BeginRateLimit(GrpcCall& call, core::Now now) {
  RateLimitService& service = services_.rate_limit;
  Result<decide::DecisionPtr> begun = service.Begin(call.message());
  if (!begun) return call.Fail(grpc::StatusOf(begun.error().code), begun.error().message);
  if (const auto finished = service.worker().FinishNow(**begun, now))
    return Conclude(call, *finished);
  const int64_t timeout_ns = call.timeout_ns();
  const int64_t deadline_ns =
      timeout_ns > INT64_MAX - loop_.now_ns() ? INT64_MAX : loop_.now_ns() + timeout_ns;
  call.Hold();
  ++waiting_;
  ++drain_.waiting;
  loop_.Spawn(FinishLater(call, std::move(*begun), now, deadline_ns));
}

Task<void> GrpcConnection::FinishLater(GrpcCall& call, decide::DecisionPtr decision, core::Now now,
                                       int64_t deadline_ns) {
  {
    const decide::DecisionPtr held = std::move(decision);
    const Result<const decide::Verdict*> decided =
        co_await services_.rate_limit.worker().Finish(*held, now);
    if (loop_.now_ns() > deadline_ns) {
      call.Fail(grpc::Status::kDeadlineExceeded, kTooLate);
    } else {
      Conclude(call, decided);
    }
  }
  call.Let();
  if (call.ended()) free_.push_back(&call);
  wake_();
  --drain_.waiting;
  if (--waiting_ == 0) settled_.Set();
}

void GrpcConnection::Conclude(GrpcCall& call, const Result<const decide::Verdict*>& decided) {
  if (!decided) return call.Fail(grpc::StatusOf(decided.error().code), decided.error().message);
  services_.rate_limit.AppendResponse(**decided, loop_.wall_ns(), call.body());
  call.Succeed();
}

}  // namespace weir::doors::rls
