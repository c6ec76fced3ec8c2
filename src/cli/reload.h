// Reloader: reads the configuration again and swaps the running policy, or says why not and leaves
// it. What a reload changes beside the policy is prepared before the swap and applied after it, so
// that a fault in either leaves both as they were.
//
// Thread safety: any threads; reloads run one after the other.
//
//   Reloader reloader(engine, logger, "weir.yaml", [&](const policy::Policy& next) { … });
//   Result<policy::ReloadPlan> done = reloader.Reload("SIGHUP");
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/log.h"
#include "decide/engine.h"
#include "policy/policy.h"
#include "policy/reload.h"
#include "weir/result.h"

namespace weir::cli {

class Reloader {
 public:
  using Apply = std::function<void()>;
  // Reads what `next` needs. Apply runs while `next` lives. An error ends the reload.
  using Prepare = std::function<Result<Apply>(const policy::Policy& next)>;

  // Both are called on the thread that reloads.
  Reloader(decide::Engine& engine, Logger& logger, std::string path, Prepare prepare);

  // `why` is logged with the outcome. kInvalidArgument: the configuration is wrong (every fault,
  // one per line) or a certificate is; kFailedPrecondition: only a restart could apply it. Either
  // way the running policy stays, and weir_config_last_reload_successful says 0. Blocks on file
  // reads.
  Result<policy::ReloadPlan> Reload(std::string_view why);

 private:
  Result<policy::ReloadPlan> Swap();

  decide::Engine& engine_;
  Logger& logger_;
  const std::string path_;
  const Prepare prepare_;
  std::mutex mutex_;  // One reload at a time.
};

}  // namespace weir::cli
