// Server: `weir serve`. It joins the parts: one engine, one shard per core, the doors that the
// policy asks for, reload and drain.
//
// Thread safety: the main thread, which becomes the first shard's; Create and Run from there.
//
//   auto server = Server::Create({.config_path = "weir.yaml", .policy = policy}).value();
//   return server->Run(std::cout);
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "cli/connection_bound.h"
#include "cli/door_services.h"
#include "cli/drain.h"
#include "cli/file_watch.h"
#include "cli/reload.h"
#include "cli/shard.h"
#include "cli/signals.h"
#include "cli/summary.h"
#include "decide/engine.h"
#include "net/resolver.h"
#include "policy/policy.h"
#include "weir/result.h"

namespace weir::cli {

struct ServerOptions {
  std::string config_path;                       // For reloads.
  std::shared_ptr<const policy::Policy> policy;  // Required.
  LogLevel log_level = LogLevel::kInfo;
  int64_t summary_period_ns = 60'000'000'000;  // 0: no summaries.
};

class Server {
 public:
  // Opens every door. kUnavailable names the address that is taken; kInvalidArgument the file that
  // cannot be used.
  static Result<std::unique_ptr<Server>> Create(ServerOptions options);
  ~Server();

  // Says `listening DOOR=ADDRESS` for each door, one per line, and serves until SIGTERM or SIGINT
  // and the drain after it. Returns how many calls were cut off.
  int Run(std::ostream& announcements);

 private:
  explicit Server(ServerOptions options);
  Result<void> Start();
  Result<void> OpenDoors();
  void WatchFiles();
  void OnSignal(int number);
  void Reload(const char* why);
  Result<Reloader::Apply> PrepareReload(const policy::Config& next);

  const ServerOptions options_;
  SystemClock clock_;
  std::unique_ptr<Logger> logger_;
  shared_store::NodeState node_;
  std::unique_ptr<decide::Engine> engine_;
  std::unique_ptr<ConnectionBound> bound_;
  ServerState state_;
  std::unique_ptr<Reloader> reloader_;
  std::unique_ptr<net::Resolver> resolver_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::unique_ptr<Signals> signals_;
  std::unique_ptr<FileWatch> watch_;
  std::unique_ptr<Summary> summary_;
  std::unique_ptr<Drain> drain_;
  int calls_cut_ = 0;
};

}  // namespace weir::cli
