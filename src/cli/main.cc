#include <CLI/CLI.hpp>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/suggest.h"
#include "cli/commands.h"

namespace {

// "weir import"
std::string PathOf(const CLI::App& app) {
  const CLI::App* const parent = app.get_parent();
  return (parent != nullptr ? PathOf(*parent) + " " : "") + app.get_name();
}

// What a word that is no command is told; "" when the fault is another.
std::string UnknownCommand(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  if (!chosen.empty()) return UnknownCommand(*chosen.front());
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  const std::vector<std::string> left = app.remaining();
  if (names.empty() || left.empty() || left.front().starts_with('-')) return "";
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string path = PathOf(app);
  return path + ": there is no command `" + left.front() + "`" +
         weir::base::DidYouMean(left.front(), known) +
         "\nCommands: " + weir::base::ListOfNames(known) + "; each explains itself: " + path + " " +
         names.front() + " --help\n";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Keeps APIs, above all AI APIs, inside their limits.", "weir");
  app.footer("Each command explains itself: weir serve --help");
  app.set_help_all_flag("--help-all", "This help, and that of every command");
  app.set_version_flag("--version", std::string("weir ") + weir::cli::kVersion,
                       "Print the version");
  app.require_subcommand(0, 1);

  int exit_code = weir::cli::kExitOk;
  weir::cli::AddServe(app, exit_code);
  weir::cli::AddValidate(app, exit_code);
  weir::cli::AddExplain(app, exit_code);
  weir::cli::AddCheck(app, exit_code);
  weir::cli::AddImport(app, exit_code);
  weir::cli::AddMockUpstream(app, exit_code);
  weir::cli::AddVersion(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (const std::string unknown = UnknownCommand(app); !unknown.empty()) {
      std::cerr << unknown;
      return weir::cli::kExitUsage;
    }
    const int code = app.exit(error);
    return code == 0 ? weir::cli::kExitOk : weir::cli::kExitUsage;
  }
  if (app.get_subcommands().empty()) std::cout << app.help();
  return exit_code;
}
