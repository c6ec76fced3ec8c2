// The commands of `weir`, one source file each. Every one adds itself to the command line and
// leaves its exit code in `exit_code` when it was asked for.
//
// Thread safety: the main thread only.
//
//   CLI::App app("...");
//   int exit_code = 0;
//   AddVersion(app, exit_code);
//   app.parse(argc, argv);
#pragma once

namespace CLI {
class App;
}

namespace weir::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  // Of `check`: denied.
inline constexpr int kExitUsage = 2;    // Of `check`: no decision.

inline constexpr const char* kVersion = WEIR_VERSION;

void AddServe(CLI::App& app, int& exit_code);
void AddValidate(CLI::App& app, int& exit_code);
void AddExplain(CLI::App& app, int& exit_code);
void AddCheck(CLI::App& app, int& exit_code);
void AddImport(CLI::App& app, int& exit_code);
void AddMockUpstream(CLI::App& app, int& exit_code);
void AddVersion(CLI::App& app, int& exit_code);

}  // namespace weir::cli
