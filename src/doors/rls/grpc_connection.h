// GrpcConnection: the calls of one connection to the gRPC door, and which service answers them. It
// reads and decides; sockets are net's.
//
//   GrpcConnection calls(services, loop);
//   http2::ServerSession session(limits, calls);
//   calls.Start(session, [&] { /* the session may have something to say */ });
//
// Thread safety: one loop. Ownership: borrows the services, the loop and the session; must outlive
// the session and, while waiting() is above 0, every task of the loop.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "base/task.h"
#include "decide/engine.h"
#include "doors/rls/grpc_call.h"
#include "doors/rls/rate_limit_service.h"
#include "net/event.h"
#include "net/event_loop.h"
#include "net/serve_pipelined.h"
#include "wire/http2/server_session.h"

namespace weir::doors::rls {

// What the calls of a loop are answered by.
struct GrpcServices {
  RateLimitService& rate_limit;
  const std::atomic<bool>& ready;
};

// How long a call may stand still.
struct GrpcTimeouts {
  int64_t message_ns = 10'000'000'000;  // From its first frame to its last. 0: none.
  int64_t answer_ns = 30'000'000'000;   // Between two pieces of its answer. 0: none.
};

class GrpcConnection final : public http2::Acceptor, public GrpcCallOwner {
 public:
  // `drain` is told of the calls that wait for a shared store.
  GrpcConnection(const GrpcServices& services, const GrpcTimeouts& timeouts, net::EventLoop& loop,
                 const net::DrainFlag& drain);
  ~GrpcConnection();

  void Start(http2::ServerSession& session, std::function<void()> wake);
  http2::ServerStream* OnStream(int32_t stream_id) override;

  // Until no call waits for the store.
  Task<void> Settled();

 private:
  http2::ServerSession& session() override { return *session_; }
  int64_t now_ns() const override { return loop_.now_ns(); }
  void OnMessage(GrpcCall& call) override;
  void OnEnded(GrpcCall& call) override;
  void LookForStalled();
  void AnswerHealth(GrpcCall& call);
  void AnswerRateLimit(GrpcCall& call);
  void BeginRateLimit(GrpcCall& call, core::Now now);
  Task<void> FinishLater(GrpcCall& call, decide::DecisionPtr decision, core::Now now,
                         int64_t deadline_ns);
  void Conclude(GrpcCall& call, const Result<const decide::Verdict*>& decided);

  const GrpcServices services_;
  const GrpcTimeouts timeouts_;
  net::EventLoop& loop_;
  const net::DrainFlag& drain_;
  http2::ServerSession* session_ = nullptr;
  std::function<void()> wake_;
  std::vector<std::unique_ptr<GrpcCall>> calls_;
  std::vector<GrpcCall*> free_;
  int waiting_ = 0;
  net::Event settled_;
  net::Timer stalled_;
};

}  // namespace weir::doors::rls
