#include "cli/summary.h"

#include <utility>

namespace weir::cli {

Summary::Summary(net::EventLoop& loop, decide::Engine& engine, const ConnectionBound& bound,
                 Logger& logger, int64_t period_ns)
    : loop_(loop),
      engine_(engine),
      bound_(bound),
      logger_(logger),
      period_ns_(period_ns),
      timer_(loop, [this] {
        Log();
        Arm();
      }) {
  Arm();
}

void Summary::Arm() {
  if (period_ns_ > 0) timer_.ArmAt(loop_.clock().MonotonicNs() + period_ns_);
}

void Summary::Log() {
  const metrics::WeirMetrics& metrics = engine_.metrics();
  const uint64_t allowed = metrics.DecisionCount(metrics::Outcome::kAllowed);
  const uint64_t denied = metrics.DecisionCount(metrics::Outcome::kDenied);
  logger_.Log(LogLevel::kInfo, "summary",
              {{"allowed", static_cast<int64_t>(allowed - std::exchange(allowed_, allowed))},
               {"denied", static_cast<int64_t>(denied - std::exchange(denied_, denied))},
               {"connections", bound_.open()},
               {"keys", static_cast<int64_t>(metrics.StoreKeys())},
               {"log_lines_dropped", static_cast<int64_t>(logger_.dropped())}});
}

}  // namespace weir::cli
