// Shard: one event loop with all that lives on it: its worker, its gateway, the services of its
// doors, its listeners. A server runs one per core; shards share the engine, the resolver, the
// logger and the bound on connections.
//
// Thread safety: made and destroyed on the main thread while the loop does not run; the rest on the
// loop's thread, but for what says otherwise. Ownership: owns its loop; borrows what ShardOptions
// names.
//
//   auto shard = Shard::Create({.engine = &engine, …}, /*index=*/0).value();
//   shard->Listen(plan, /*first=*/nullptr);       // the others share the addresses of the first
//   shard->loop().Run();
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "cli/connection_bound.h"
#include "cli/door_plan.h"
#include "cli/door_services.h"
#include "decide/engine.h"
#include "doors/resp/serve_resp.h"
#include "doors/rls/serve_grpc.h"
#include "gateway/gateway.h"
#include "metrics/weir_metrics.h"
#include "net/event_loop.h"
#include "net/http_service.h"
#include "net/listener.h"
#include "net/resolver.h"
#include "net/serve_http2.h"
#include "shared_store/redis_store.h"
#include "weir/result.h"

namespace weir::cli {

struct ShardOptions {
  const Clock* clock = nullptr;
  decide::Engine* engine = nullptr;
  net::Resolver* resolver = nullptr;
  Logger* logger = nullptr;
  ConnectionBound* bound = nullptr;
  ServerState* state = nullptr;  // Readiness and reload, for the ops and admin doors.
  std::array<metrics::Counter, metrics::kDoorCount> refused;  // Connections beyond the bound.
  // With `store.kind: redis`; what a loop adds is left out.
  std::optional<shared_store::RedisStoreOptions> shared_store;
  shared_store::NodeState* node = nullptr;
};

class Shard {
 public:
  static Result<std::unique_ptr<Shard>> Create(const ShardOptions& options, size_t index);
  ~Shard();

  // Opens a listener for the door; on what `first` listens on when it is not null. kUnavailable
  // names the address.
  Result<void> Listen(const DoorPlan& plan, const Shard* first);
  // New connections of the open doors begin TLS with the certificates of these.
  void UseCertificates(std::span<const DoorPlan> plans);
  // The address of an open door, with its real port; null when it is not open here.
  const net::Endpoint* EndpointOf(metrics::Door door) const;

  net::EventLoop& loop() { return *loop_; }
  decide::Worker& worker() { return *worker_; }

  // The drain's steps, in order: answers say that connections close; nothing more is accepted;
  // connections that wait for a request are closed.
  void BeginDrain();
  void CloseListeners();
  void CloseIdle();
  // Gives back to a shared store what this loop holds of it; has_given_back() when that is done,
  // which takes at most RedisStore::kGiveBackNs. has_given_back: any thread.
  void GiveBackLeases();
  bool has_given_back() const { return has_given_back_.load(std::memory_order_relaxed); }
  // Calls under way: at the gateway, and at the other doors those that wait for the shared store.
  // (Without one they answer within the tick.) And answers of HTTP/2 that wait for their clients.
  int calls() const { return gateway_->calls() + drain_.waiting + http2_.unsent(); }
  // How many calls there were when ReportCalls ran last. Any thread.
  void ReportCalls() { reported_calls_.store(calls(), std::memory_order_relaxed); }
  int reported_calls() const { return reported_calls_.load(std::memory_order_relaxed); }

 private:
  struct OpenDoor {
    DoorPlan plan;
    std::unique_ptr<net::Listener> listener;
  };

  Shard(const ShardOptions& options, size_t index);
  void Accept(const DoorPlan& plan, std::unique_ptr<net::Stream> stream);
  Task<void> Serve(metrics::Door door, std::shared_ptr<const net::TlsContext> tls,
                   std::unique_ptr<net::Stream> stream);
  Task<void> ServeHttp(metrics::Door door, std::unique_ptr<net::Stream> stream);
  // The calls of one connection of HTTP/1.1, or of one stream of HTTP/2.
  Task<void> ServeCalls(metrics::Door door, std::unique_ptr<net::Stream> stream);
  Task<void> GiveBack();
  net::HttpServiceOptions HttpOptions();
  net::Http2Options Http2Options();
  net::Http2Options GrpcOptions();
  doors::resp::RespOptions RespOptions();

  const ShardOptions options_;
  const size_t index_;
  net::DrainFlag drain_;
  // For the resp door, which cannot announce that a connection closes: it answers as usual for as
  // long as new connections are accepted.
  net::DrainFlag doors_closed_;
  net::Http2Connections http2_;
  std::atomic<int> reported_calls_{0};
  std::atomic<bool> has_given_back_{false};
  WarningGate store_notices_;
  // Declared so that they go in the right order: listeners, then the gateway and the loop with its
  // tasks, then what the tasks use. (The shared store lets go of its sockets before all of them.)
  std::unique_ptr<shared_store::RedisStore> shared_store_;
  std::unique_ptr<decide::Worker> worker_;
  std::unique_ptr<DoorServices> services_;
  std::unique_ptr<net::EventLoop> loop_;
  std::unique_ptr<gateway::Gateway> gateway_;
  std::vector<std::unique_ptr<OpenDoor>> listeners_;
};

}  // namespace weir::cli
