#include "cli/policy_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <ostream>

#include "cli/store_options.h"

namespace weir::cli {

std::shared_ptr<const policy::Policy> LoadPolicyFile(const std::string& path,
                                                     std::ostream& errors) {
  policy::Policy::LoadResult loaded = LoadPolicy(path);
  if (loaded) return std::move(*loaded);
  for (const policy::ConfigError& error : loaded.error()) errors << policy::ToString(error) << "\n";
  return nullptr;
}

std::string FindConfigFile(const std::string& option, const char* command, std::ostream& errors) {
  std::string path = option;
  if (const char* from_environment = std::getenv("WEIR_CONFIG");
      path.empty() && from_environment != nullptr) {
    path = from_environment;
  }
  if (path.empty()) {
    errors << "weir " << command
           << ": no configuration: name one with --config FILE or WEIR_CONFIG=FILE; "
           << "examples/quickstart.yaml is one to start from\n";
    return "";
  }
  errno = 0;
  if (std::ifstream file(path); !file || file.peek() == std::ifstream::traits_type::eof()) {
    const int reason = errno;
    errors << "weir " << command << ": cannot read the configuration " << path << ": "
           << (reason != 0 ? std::strerror(reason) : "it is empty")
           << "; name a readable file with --config FILE or WEIR_CONFIG=FILE\n";
    return "";
  }
  return path;
}

}  // namespace weir::cli
