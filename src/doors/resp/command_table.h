// The commands of the RESP door, as COMMAND tells clients of them.
//
//   const CommandInfo* command = FindCommand("Cl.Throttle");
//   if (command == nullptr || !command->Takes(words.size())) return Refuse();
//
// Thread safety: constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace weir::doors::resp {

enum class Command : uint8_t {
  kThrottle,
  kCheck,
  kSettle,
  kRelease,
  kAuth,
  kClient,
  kCommand,
  kConfig,
  kEcho,
  kHello,
  kInfo,
  kPing,
  kQuit,
  kReset,
  kSelect,
};

struct CommandInfo {
  Command command;
  std::string_view name;  // Lower case.
  int arity;              // As Redis has it: words with the name; -n: at least n.
  bool before_auth;       // Also for those who have not said the password yet.
  bool has_key;           // The first word after the name names a counter.
  std::string_view summary;

  bool Takes(size_t words) const {
    return arity < 0 ? words >= static_cast<size_t>(-arity) : words == static_cast<size_t>(arity);
  }
};

std::span<const CommandInfo> AllCommands();
// In any case; null when there is none.
const CommandInfo* FindCommand(std::string_view name);
// ASCII, in any case; `lower` is in lower case.
bool EqualsLower(std::string_view text, std::string_view lower);

}  // namespace weir::doors::resp
