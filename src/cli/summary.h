// The line that a server logs every minute: what it decided since the last one, and what it holds.
//
// Thread safety: the first shard's loop.
//
//   Summary summary(loop, engine, bound, logger, 60'000'000'000);
#pragma once

#include <cstdint>

#include "base/log.h"
#include "cli/connection_bound.h"
#include "decide/engine.h"
#include "net/event_loop.h"

namespace weir::cli {

class Summary {
 public:
  // Logs each `period_ns` until destroyed. 0: never.
  Summary(net::EventLoop& loop, decide::Engine& engine, const ConnectionBound& bound,
          Logger& logger, int64_t period_ns);

  // Logs now.
  void Log();

 private:
  void Arm();

  net::EventLoop& loop_;
  decide::Engine& engine_;
  const ConnectionBound& bound_;
  Logger& logger_;
  const int64_t period_ns_;
  uint64_t allowed_ = 0;
  uint64_t denied_ = 0;
  net::Timer timer_;
};

}  // namespace weir::cli
