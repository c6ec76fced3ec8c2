#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/policy_file.h"
#include "policy/describe.h"

namespace weir::cli {
namespace {

struct ExplainArguments {
  std::string config;
  std::string door = "api";
  std::string domain;
  std::vector<std::string> pairs;
};

int Explain(const ExplainArguments& arguments) {
  const std::string path = FindConfigFile(arguments.config, "explain", std::cerr);
  if (path.empty()) return kExitUsage;
  const std::shared_ptr<const policy::Policy> policy = LoadPolicyFile(path, std::cerr);
  if (policy == nullptr) return kExitFailure;
  const policy::Missing missing =
      arguments.door == "gateway" ? policy::Missing::kEmpty : policy::Missing::kSkip;
  Result<std::string> text =
      arguments.domain.empty()
          ? policy::ExplainPairs(*policy, arguments.pairs, missing)
          : policy::ExplainDescriptor(*policy, arguments.domain, arguments.pairs);
  if (!text) {
    std::cerr << "weir explain: " << text.error().message << "\n";
    return kExitUsage;
  }
  if (!text->ends_with('\n')) *text += '\n';
  std::cout << *text;
  return kExitOk;
}

}  // namespace

void AddExplain(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "explain", "Which limits apply to a call, with which keys, and why others do not");
  command->footer(
      "Examples:\n"
      "  weir explain --config weir.yaml client=alice method=POST path=/v1/chat/completions\n"
      "  weir explain --config weir.yaml --door gateway ip=203.0.113.7 path=/v1/models\n"
      "  weir explain --config weir.yaml --domain mongo_cps database=users   # a descriptor");
  auto arguments = std::make_shared<ExplainArguments>();
  command->add_option("--config", arguments->config,
                      "The configuration; else the variable WEIR_CONFIG names it");
  command
      ->add_option("--door", arguments->door,
                   "Where the call comes in: a missing attribute counts as empty at the gateway, "
                   "and makes a limit "
                   "not apply at the api")
      ->check(CLI::IsMember({"gateway", "api"}))
      ->capture_default_str();
  command->add_option("--domain", arguments->domain,
                      "Explain a descriptor of this domain: its entries as KEY=VALUE, in order");
  command->add_option("ATTRIBUTE=VALUE", arguments->pairs, "What is known of the call");
  command->callback([&exit_code, arguments] { exit_code = Explain(*arguments); });
}

}  // namespace weir::cli
