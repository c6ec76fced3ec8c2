// Loads the policy that a command names, and says on a stream what is wrong with it.
//
// Thread safety: the main thread only.
//
//   std::shared_ptr<const policy::Policy> policy = LoadPolicyFile("weir.yaml", std::cerr);
//   if (policy == nullptr) return kExitFailure;
#pragma once

#include <iosfwd>
#include <memory>
#include <string>

#include "policy/policy.h"

namespace weir::cli {

// Null after having written every error to `errors`, one "FILE:LINE:COL: what" per line. ${VAR}
// comes from the process's environment. Blocks on file reads.
std::shared_ptr<const policy::Policy> LoadPolicyFile(const std::string& path, std::ostream& errors);

// The file that `--config` or WEIR_CONFIG names; empty, after a sentence with the remedy, when
// there is none or it cannot be read.
std::string FindConfigFile(const std::string& option, const char* command, std::ostream& errors);

}  // namespace weir::cli
