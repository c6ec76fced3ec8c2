#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/commands.h"

namespace weir::cli {

void AddVersion(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->footer("Example:\n  weir version");
  command->callback([&exit_code] {
    std::cout << "weir " << kVersion << "\n";
    exit_code = kExitOk;
  });
}

}  // namespace weir::cli
