#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "policy/envoy_ratelimit/import.h"

namespace weir::cli {
namespace {

namespace fs = std::filesystem;

bool IsYaml(const fs::directory_entry& entry) {
  const fs::path& path = entry.path();
  const bool hidden = path.filename().string().starts_with('.');
  return entry.is_regular_file() && !hidden &&
         (path.extension() == ".yaml" || path.extension() == ".yml");
}

// A folder stands for the YAML files in it, by name. Empty, after a sentence, when it has none.
std::vector<std::string> FilesOf(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    if (IsYaml(*it)) files.push_back(it->path().string());
  }
  if (error) {
    std::cerr << "weir import: " << path << ": " << error.message() << "\n";
    return {};
  }
  if (files.empty()) std::cerr << "weir import: " << path << " has no *.yaml or *.yml files\n";
  std::ranges::sort(files);
  return files;
}

int ImportEnvoyRatelimit(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    const std::vector<std::string> some = FilesOf(path);
    if (some.empty()) return kExitFailure;
    files.insert(files.end(), some.begin(), some.end());
  }
  const policy::envoy_ratelimit::Imported imported = policy::envoy_ratelimit::Import(files);
  for (const policy::ConfigError& error : imported.errors)
    std::cerr << policy::ToString(error) << "\n";
  if (!imported.errors.empty()) return kExitFailure;
  for (const policy::ConfigError& note : imported.notes)
    std::cerr << "note: " << policy::ToString(note) << "\n";
  std::cout << imported.yaml;
  return kExitOk;
}

}  // namespace

void AddImport(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("import", "Turn another limiter's configuration into Weir's");
  command->require_subcommand(1);
  command->footer(
      "Example:\n  weir import envoy-ratelimit config/ > limits.yaml\n\n"
      "Each explains itself: weir import envoy-ratelimit --help");
  CLI::App* envoy = command->add_subcommand(
      "envoy-ratelimit", "The configuration of envoyproxy/ratelimit, as limits by descriptors");
  envoy->footer(
      "The limits go to standard output; what has no equivalent goes to standard error and into\n"
      "comments, as FILE:LINE:COL. Exit code: 0 imported, 1 not.\n\n"
      "Examples:\n"
      "  weir import envoy-ratelimit config/ > limits.yaml && weir validate limits.yaml\n"
      "  weir explain --config limits.yaml --domain mongo_cps database=users");
  auto paths = std::make_shared<std::vector<std::string>>();
  envoy->add_option("DIR|FILE", *paths, "Files, or folders of *.yaml and *.yml files")->required();
  envoy->callback([&exit_code, paths] { exit_code = ImportEnvoyRatelimit(*paths); });
}

}  // namespace weir::cli
