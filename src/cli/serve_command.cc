#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/policy_file.h"
#include "cli/server.h"

namespace weir::cli {
namespace {

struct ServeArguments {
  std::string config;
  std::string stray;  // A word that is no option: mostly the configuration's name.
  std::string log_level = "info";
  double summary_s = 60;
};

LogLevel LevelOf(const std::string& name) {
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError}) {
    if (LogLevelName(level) == name) return level;
  }
  return LogLevel::kOff;
}

int Serve(const ServeArguments& arguments) {
  if (!arguments.stray.empty()) {
    std::cerr << "weir serve: " << arguments.stray
              << ": the configuration is named by --config: weir serve --config " << arguments.stray
              << "\n";
    return kExitUsage;
  }
  const std::string path = FindConfigFile(arguments.config, "serve", std::cerr);
  if (path.empty()) return kExitUsage;
  std::shared_ptr<const policy::Policy> policy = LoadPolicyFile(path, std::cerr);
  if (policy == nullptr) return kExitFailure;
  Result<std::unique_ptr<Server>> server =
      Server::Create({.config_path = path,
                      .policy = std::move(policy),
                      .log_level = LevelOf(arguments.log_level),
                      .summary_period_ns = static_cast<int64_t>(arguments.summary_s * 1e9)});
  if (!server) {
    std::cerr << "weir serve: " << server.error().message << "\n";
    return kExitFailure;
  }
  (*server)->Run(std::cout);
  return kExitOk;
}

}  // namespace

void AddServe(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("serve", "Run: limit and forward, decide over HTTP, gRPC and RESP");
  command->footer(
      "Standard output says `listening DOOR=ADDRESS` for each door; logs go to standard error, one "
      "JSON object per "
      "line.\n"
      "SIGHUP reloads the configuration. SIGTERM drains: readiness off, accepting for "
      "timeouts.drain_delay, then calls\n"
      "under way finish within timeouts.drain. A second SIGTERM ends at once.\n\n"
      "Examples:\n"
      "  weir serve --config examples/quickstart.yaml\n"
      "  WEIR_CONFIG=/etc/weir/weir.yaml weir serve --log-level warn");
  auto arguments = std::make_shared<ServeArguments>();
  command->add_option("--config", arguments->config,
                      "The configuration; else the variable WEIR_CONFIG names it");
  command
      ->add_option("--log-level", arguments->log_level, "What is logged; calls are logged at info")
      ->check(CLI::IsMember({"debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
  command
      ->add_option("--summary-every", arguments->summary_s,
                   "Seconds between summaries in the log; 0: none")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  command->add_option("STRAY", arguments->stray)->group("");  // Not shown in the help.
  command->callback([&exit_code, arguments] { exit_code = Serve(*arguments); });
}

}  // namespace weir::cli
