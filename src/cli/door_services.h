// DoorServices: the services of the doors for programs (api, admin, ops, resp, grpc), one set for
// each loop.
//
// Thread safety: the loop's thread; ServerState may be shared by all loops.
//
//   ServerState state;
//   DoorServices services(worker, state);
//   loop.Spawn(net::ServeHttp(std::move(stream), services.For(metrics::Door::kApi), options,
//   drain));
#pragma once

#include <atomic>

#include "cli/commands.h"
#include "decide/engine.h"
#include "doors/admin/admin.h"
#include "doors/check_api/check_api.h"
#include "doors/ops/ops.h"
#include "doors/resp/resp_door.h"
#include "doors/rls/grpc_connection.h"
#include "doors/rls/rate_limit_service.h"
#include "metrics/weir_metrics.h"
#include "net/http_service.h"

namespace weir::cli {

// What the doors know of the server as a whole. It outlives all loops.
struct ServerState {
  std::atomic<bool> ready{false};  // What /readyz says.
  doors::ReloadFunction reload;    // Any thread. Set before the first door opens.
};

class DoorServices {
 public:
  // Borrows both.
  DoorServices(decide::Worker& worker, const ServerState& state)
      : api_(worker),
        admin_(worker, state.reload),
        ops_(worker.engine().metrics(), state.ready),
        resp_(worker, kVersion),
        rate_limit_(worker, /*jitter_seed=*/worker.shard()),
        ready_(state.ready) {}

  // REQUIRES: kApi, kAdmin or kOps.
  net::HttpService& For(metrics::Door door) {
    if (door == metrics::Door::kApi) return api_;
    if (door == metrics::Door::kAdmin) return admin_;
    return ops_;
  }
  doors::resp::RespDoor& resp() { return resp_; }
  doors::rls::GrpcServices grpc() { return {rate_limit_, ready_}; }

 private:
  doors::CheckApi api_;
  doors::Admin admin_;
  doors::Ops ops_;
  doors::resp::RespDoor resp_;
  doors::rls::RateLimitService rate_limit_;
  const std::atomic<bool>& ready_;
};

}  // namespace weir::cli
