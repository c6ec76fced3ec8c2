#include "cli/reload.h"

#include <utility>

#include "cli/store_options.h"

namespace weir::cli {

Reloader::Reloader(decide::Engine& engine, Logger& logger, std::string path, Prepare prepare)
    : engine_(engine), logger_(logger), path_(std::move(path)), prepare_(std::move(prepare)) {}

Result<policy::ReloadPlan> Reloader::Swap() {
  policy::Policy::LoadResult loaded = LoadPolicy(path_);
  if (!loaded) {
    std::string faults;
    for (const policy::ConfigError& error : loaded.error()) {
      if (!faults.empty()) faults += '\n';
      faults += policy::ToString(error);
    }
    return InvalidArgument(std::move(faults));
  }
  Result<Apply> apply = prepare_(**loaded);
  if (!apply) return std::unexpected(apply.error());
  Result<policy::ReloadPlan> plan = engine_.Reload(*loaded);
  if (plan) (*apply)();
  return plan;
}

Result<policy::ReloadPlan> Reloader::Reload(std::string_view why) {
  const std::lock_guard lock(mutex_);
  Result<policy::ReloadPlan> plan = Swap();
  engine_.metrics().SetReloadSuccessful(plan.has_value());
  if (!plan) {
    logger_.Log(LogLevel::kError, "reload failed; the running policy stays",
                {{"by", why}, {"error", std::string_view(plan.error().message)}});
    return plan;
  }
  for (const std::string& warning : plan->warnings) {
    logger_.Log(LogLevel::kWarn, "reload: a limit starts afresh",
                {{"limit_change", std::string_view(warning)}});
  }
  logger_.Log(LogLevel::kInfo, "reloaded",
              {{"by", why},
               {"limits_added", static_cast<int64_t>(plan->added.size())},
               {"limits_removed", static_cast<int64_t>(plan->removed.size())},
               {"limits_rerated", static_cast<int64_t>(plan->rerated.size())},
               {"limits_restarted", static_cast<int64_t>(plan->restarted.size())}});
  return plan;
}

}  // namespace weir::cli
