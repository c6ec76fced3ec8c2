// Puts a limit's overrides where SelectVariant finds them: by hash, or in the list to scan.
//
//   IndexOverrides(limit);    // once, when all of limit.variants are there
//
// Not thread-safe; runs while the policy is built.
#pragma once

#include "policy/policy.h"

namespace weir::policy {

// Fills in exact_overrides and scanned_overrides. REQUIRES: both are empty.
void IndexOverrides(Limit& limit);

}  // namespace weir::policy
