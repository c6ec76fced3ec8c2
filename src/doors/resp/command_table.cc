#include "doors/resp/command_table.h"

namespace weir::doors::resp {
namespace {

// The busiest first: they are looked up in this order.
constexpr CommandInfo kCommands[] = {
    {Command::kThrottle, "cl.throttle", -5, false, true,
     "Takes units of a token bucket that the call describes, or says how long to wait."},
    {Command::kCheck, "weir.check", -3, false, false,
     "Decides a call by the limits of the policy that apply to its attributes."},
    {Command::kSettle, "weir.settle", -4, false, false,
     "Ends a reservation with the amounts that were really used."},
    {Command::kRelease, "weir.release", 2, false, false,
     "Ends a reservation and gives all of it back."},
    {Command::kPing, "ping", -1, false, false, "Answers PONG, or its argument."},
    {Command::kAuth, "auth", -2, true, false, "Authenticates the connection."},
    {Command::kClient, "client", -2, false, false, "Names the connection, or tells about it."},
    {Command::kCommand, "command", -1, false, false, "Tells about the commands."},
    {Command::kConfig, "config", -2, false, false, "Answers CONFIG GET for benchmarks."},
    {Command::kEcho, "echo", 2, false, false, "Answers its argument."},
    {Command::kHello, "hello", -1, true, false, "Chooses the protocol and authenticates."},
    {Command::kInfo, "info", -1, false, false, "Tells about the server."},
    {Command::kQuit, "quit", -1, true, false, "Closes the connection."},
    {Command::kReset, "reset", 1, true, false, "Makes the connection as new."},
    {Command::kSelect, "select", 2, false, false, "Accepts database 0."},
};

}  // namespace

bool EqualsLower(std::string_view text, std::string_view lower) {
  if (text.size() != lower.size()) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c) != lower[i]) return false;
  }
  return true;
}

std::span<const CommandInfo> AllCommands() { return kCommands; }

const CommandInfo* FindCommand(std::string_view name) {
  for (const CommandInfo& command : kCommands) {
    if (EqualsLower(name, command.name)) return &command;
  }
  return nullptr;
}

}  // namespace weir::doors::resp
