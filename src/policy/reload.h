// What a reload from one policy to the next would do.
//
//   policy::ReloadPlan plan = policy::Diff(*running, *loaded);
//   if (!plan.restart_needed.empty()) Refuse(policy::RestartMessage(plan));
//   for (const std::string& warning : plan.warnings) Log(warning);
//
// Pure functions; nothing is swapped here.
#pragma once

#include <string>
#include <vector>

#include "policy/policy.h"

namespace weir::policy {

struct ReloadPlan {
  // Settings that only a restart changes ("listen.gateway: the address changed"). Not empty: refuse
  // the reload.
  std::vector<std::string> restart_needed;

  std::vector<std::string> added;    // Limits by name.
  std::vector<std::string> removed;  // Their counters may be forgotten.
  std::vector<std::string>
      rerated;  // The rate or capacity of some variant changed; counters carry over.
  std::vector<std::string> restarted;  // Start afresh: unit, algorithm, per or period kind changed.

  // One sentence for each restarted limit, for the log.
  std::vector<std::string> warnings;
};

ReloadPlan Diff(const Policy& running, const Policy& next);

// "restart to apply: listen.gateway: the address changed from ... to ...". Empty when no restart is
// needed.
std::string RestartMessage(const ReloadPlan& plan);

}  // namespace weir::policy
