#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app("Keeps APIs, above all AI APIs, inside their limits.", "weir");
  app.footer("Each command explains itself: weir serve --help");
  app.set_help_all_flag("--help-all", "This help, and that of every command");
  app.require_subcommand(0, 1);

  int exit_code = weir::cli::kExitOk;
  weir::cli::AddServe(app, exit_code);
  weir::cli::AddValidate(app, exit_code);
  weir::cli::AddExplain(app, exit_code);
  weir::cli::AddCheck(app, exit_code);
  weir::cli::AddMockUpstream(app, exit_code);
  weir::cli::AddVersion(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? weir::cli::kExitOk : weir::cli::kExitUsage;
  }
  if (app.get_subcommands().empty()) std::cout << app.help();
  return exit_code;
}
