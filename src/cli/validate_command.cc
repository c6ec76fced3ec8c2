#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/policy_file.h"
#include "policy/describe.h"

namespace weir::cli {

void AddValidate(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("validate", "Check a configuration and say in words what it means");
  command->footer(
      "Exit code: 0 valid, 1 not; then each fault is a line FILE:LINE:COL: what is wrong and what "
      "is meant.\n\n"
      "Examples:\n  weir validate examples/quickstart.yaml\n  weir validate --json weir.yaml | jq "
      ".limits");
  auto file = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("FILE", *file, "The configuration")->required();
  command->add_flag("--json", *json, "The effective policy as JSON, secrets redacted");
  command->callback([&exit_code, file, json] {
    const std::shared_ptr<const policy::Policy> policy = LoadPolicyFile(*file, std::cerr);
    if (policy == nullptr) {
      exit_code = kExitFailure;
      return;
    }
    if (*json) {  // The policy in words says its warnings itself.
      for (const policy::ConfigError& warning : policy->warnings()) {
        std::cerr << "warning: " << policy::ToString(warning) << "\n";
      }
    }
    std::string text = *json ? policy::ToJson(*policy) : policy::Describe(*policy);
    if (!text.ends_with('\n')) text += '\n';
    std::cout << text;
    exit_code = kExitOk;
  });
}

}  // namespace weir::cli
