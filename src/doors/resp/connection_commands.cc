#include "doors/resp/connection_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "doors/answer.h"
#include "wire/decimal.h"

namespace weir::doors::resp {
namespace {

using Reply = weir::resp::ReplyWriter;
using Words = std::span<const std::string_view>;

constexpr std::string_view kUser = "default";
constexpr size_t kNameBytesMax = 256;
constexpr size_t kShownBytes = 128;
constexpr std::string_view kNotAnInteger = "ERR value is not an integer or out of range";
constexpr std::string_view kHelloWithoutPassword =
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
    "<proto> "
    "AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol "
    "version at the same time";
constexpr std::string_view kNoPassword =
    "ERR AUTH <password> called without any password configured for the default user. Are you sure "
    "your configuration is correct?";

// What may stand in a line of CLIENT LIST; "" clears the name.
bool IsName(std::string_view text) {
  return text.size() <= kNameBytesMax &&
         std::ranges::all_of(text, [](char c) { return c >= '!' && c <= '~'; });
}

void AppendUnknownSubcommand(std::string_view command, std::string_view subcommand, Reply& reply) {
  std::string upper(command);
  for (char& c : upper) c = static_cast<char>(c & ~0x20);
  reply.Error(fmt::format("ERR unknown subcommand '{}'. Try {} HELP.",
                          subcommand.substr(0, kShownBytes), upper));
}

bool SetName(Session& session, std::string_view name, Reply& reply) {
  if (!IsName(name)) {
    reply.Error("ERR Client names cannot contain spaces, newlines or special characters.");
    return false;
  }
  session.name = name;
  return true;
}

void SetInfo(Session& session, std::string_view attribute, std::string_view value, Reply& reply) {
  const bool library = EqualsLower(attribute, "lib-name");
  if (!library && !EqualsLower(attribute, "lib-ver")) {
    return reply.Error(
        fmt::format("ERR Unrecognized option '{}'", attribute.substr(0, kShownBytes)));
  }
  if (!IsName(value)) {
    return reply.Error(fmt::format("ERR {} cannot contain spaces, newlines or special characters.",
                                   library ? "lib-name" : "lib-ver"));
  }
  (library ? session.library : session.library_version) = value;
  reply.Simple("OK");
}

std::string ClientLine(const Session& session, int64_t now_ns) {
  return fmt::format(
      "id={} addr={} name={} age={} idle=0 flags=N db=0 sub=0 psub=0 multi=-1 cmd=client "
      "user={} lib-name={} lib-ver={} resp={}\n",
      session.id, session.peer, session.name, (now_ns - session.began_ns) / 1'000'000'000, kUser,
      session.library, session.library_version, session.protocol);
}

void AppendCommand(const CommandInfo& command, Reply& reply) {
  reply.Array(6);
  reply.Bulk(command.name);
  reply.Integer(command.arity);
  reply.Array(1);
  reply.Simple("fast");
  for (int i = 0; i < 3; ++i) reply.Integer(command.has_key ? 1 : 0);
}

void AppendDocs(const CommandInfo& command, Reply& reply) {
  reply.Bulk(command.name);
  reply.Map(2);
  reply.Bulk("summary");
  reply.Bulk(command.summary);
  reply.Bulk("group");
  reply.Bulk(command.has_key || command.name.starts_with("weir.") ? "module" : "connection");
}

void CommandDocs(Words names, Reply& reply) {
  if (names.empty()) {
    reply.Map(AllCommands().size());
    for (const CommandInfo& command : AllCommands()) AppendDocs(command, reply);
    return;
  }
  const auto known = std::ranges::count_if(
      names, [](std::string_view name) { return FindCommand(name) != nullptr; });
  reply.Map(static_cast<size_t>(known));
  for (const std::string_view name : names) {
    if (const CommandInfo* command = FindCommand(name)) AppendDocs(*command, reply);
  }
}

void CommandInfos(Words names, Reply& reply) {
  if (names.empty()) {
    reply.Array(AllCommands().size());
    for (const CommandInfo& command : AllCommands()) AppendCommand(command, reply);
    return;
  }
  reply.Array(names.size());
  for (const std::string_view name : names) {
    const CommandInfo* const command = FindCommand(name);
    if (command != nullptr) {
      AppendCommand(*command, reply);
    } else {
      reply.NullArray();
    }
  }
}

void Commands(Words words, Reply& reply) {
  if (words.size() == 1) return CommandInfos({}, reply);
  const std::string_view what = words[1];
  if (EqualsLower(what, "docs")) return CommandDocs(words.subspan(2), reply);
  if (EqualsLower(what, "info")) return CommandInfos(words.subspan(2), reply);
  if (EqualsLower(what, "count")) return reply.Integer(std::ssize(AllCommands()));
  if (!EqualsLower(what, "list")) return AppendUnknownSubcommand("command", what, reply);
  reply.Array(AllCommands().size());
  for (const CommandInfo& command : AllCommands()) reply.Bulk(command.name);
}

// redis-benchmark asks for these two.
void Config(Words words, Reply& reply) {
  if (!EqualsLower(words[1], "get")) return AppendUnknownSubcommand("config", words[1], reply);
  if (words.size() < 3) return AppendWrongArity("config|get", reply);
  struct Setting {
    std::string_view name, value;
  };
  static constexpr Setting kSettings[] = {{"appendonly", "no"}, {"save", ""}};
  const auto asked = [&](const Setting& setting) {
    return std::ranges::any_of(words.subspan(2), [&](std::string_view name) {
      return name == "*" || EqualsLower(name, setting.name);
    });
  };
  reply.Map(static_cast<size_t>(std::ranges::count_if(kSettings, asked)));
  for (const Setting& setting : kSettings) {
    if (!asked(setting)) continue;
    reply.Bulk(setting.name);
    reply.Bulk(setting.value);
  }
}

void Select(std::string_view index, Reply& reply) {
  const std::optional<int64_t> number = wire::ParseDecimal(index);
  if (!number) return reply.Error(kNotAnInteger);
  if (*number != 0) return reply.Error("ERR DB index is out of range");
  reply.Simple("OK");
}

}  // namespace

void AppendUnknownCommand(std::string_view name, Reply& reply) {
  // The words after the name are not shown: one may be a password of a misspelt AUTH.
  reply.Error(fmt::format("ERR unknown command '{}'", name.substr(0, kShownBytes)));
}

void AppendWrongArity(std::string_view name, Reply& reply) {
  reply.Error(fmt::format("ERR wrong number of arguments for '{}' command", name));
}

void AppendError(const Error& error, Reply& reply) {
  if (error.code == ErrorCode::kInvalidArgument) return reply.Error("ERR " + error.message);
  std::string code(CodeName(error.code));
  for (char& c : code) c = c >= 'a' && c <= 'z' ? static_cast<char>(c & ~0x20) : c;
  reply.Error(code + " " + error.message);
}

const policy::Secret& ConnectionCommands::password() {
  static const policy::Secret kNone;
  const std::optional<policy::DoorConfig>& door = worker_.policy().config().listen.resp;
  return door ? door->token : kNone;
}

void ConnectionCommands::Answer(Command command, Session& session, Words words, int64_t now_ns,
                                wire::Buffer& out) {
  Reply reply(out, session.protocol);
  switch (command) {
    case Command::kAuth:
      return Auth(session, words, reply);
    case Command::kHello:
      return Hello(session, words, out);
    case Command::kClient:
      return Client(session, words, now_ns, reply);
    case Command::kCommand:
      return Commands(words, reply);
    case Command::kConfig:
      return Config(words, reply);
    case Command::kInfo:
      return Info(reply);
    case Command::kReset:
      return Reset(session, reply);
    case Command::kSelect:
      return Select(words[1], reply);
    case Command::kEcho:
      return reply.Bulk(words[1]);
    case Command::kPing:
      if (words.size() > 2) return AppendWrongArity("ping", reply);
      return words.size() == 2 ? reply.Bulk(words[1]) : reply.Simple("PONG");
    default:  // QUIT
      session.closing = true;
      reply.Simple("OK");
  }
}

bool ConnectionCommands::Authenticate(Session& session, std::string_view user,
                                      std::string_view password, Reply& reply) {
  const policy::Secret& wanted = this->password();
  const bool right = user == kUser && (wanted.empty() || EqualSecrets(password, wanted.Reveal()));
  if (!right) reply.Error("WRONGPASS invalid username-password pair or user is disabled.");
  session.authenticated = session.authenticated || right;
  return right;
}

void ConnectionCommands::Auth(Session& session, Words words, Reply& reply) {
  if (words.size() > 3) return reply.Error("ERR syntax error");
  if (words.size() == 2 && !wants_password()) return reply.Error(kNoPassword);
  const std::string_view user = words.size() == 3 ? words[1] : kUser;
  if (Authenticate(session, user, words.back(), reply)) reply.Simple("OK");
}

// The options take effect together: not at all when one of them is wrong.
void ConnectionCommands::Hello(Session& session, Words words, wire::Buffer& out) {
  Reply reply(out, session.protocol);
  int64_t protocol = session.protocol;
  if (words.size() > 1) {
    const std::optional<int64_t> asked = wire::ParseDecimal(words[1]);
    if (!asked) return reply.Error("ERR Protocol version is not an integer or out of range");
    if (*asked != 2 && *asked != 3) return reply.Error("NOPROTO unsupported protocol version");
    protocol = *asked;
  }
  Words credentials;
  std::optional<std::string_view> name;
  for (size_t i = 2; i < words.size();) {
    if (EqualsLower(words[i], "auth") && i + 2 < words.size()) {
      credentials = words.subspan(i + 1, 2);
      i += 3;
    } else if (EqualsLower(words[i], "setname") && i + 1 < words.size()) {
      name = words[i + 1];
      i += 2;
    } else {
      // Not the word itself where it is no option: it may be a password.
      const bool known = EqualsLower(words[i], "auth") || EqualsLower(words[i], "setname");
      return reply.Error(fmt::format("ERR Syntax error in HELLO option{}{}", known ? " " : "",
                                     known ? words[i] : ""));
    }
  }
  if (!credentials.empty() && !Authenticate(session, credentials[0], credentials[1], reply)) return;
  if (!session.authenticated) return reply.Error(kHelloWithoutPassword);
  if (name && !SetName(session, *name, reply)) return;
  session.protocol = static_cast<int>(protocol);

  Reply greeting(out, session.protocol);
  greeting.Map(7);
  greeting.Bulk("server");
  greeting.Bulk("weir");
  greeting.Bulk("version");
  greeting.Bulk(version_);
  greeting.Bulk("proto");
  greeting.Integer(session.protocol);
  greeting.Bulk("id");
  greeting.Integer(static_cast<int64_t>(session.id));
  greeting.Bulk("mode");
  greeting.Bulk("standalone");
  greeting.Bulk("role");
  greeting.Bulk("master");
  greeting.Bulk("modules");
  greeting.Array(0);
}

void ConnectionCommands::Client(Session& session, Words words, int64_t now_ns, Reply& reply) {
  struct Subcommand {
    std::string_view name;
    size_t least, most;  // Words.
  };
  static constexpr Subcommand kSubcommands[] = {
      {"setinfo", 4, 4}, {"setname", 3, 3}, {"getname", 2, 2},  {"id", 2, 2},
      {"info", 2, 2},    {"list", 2, 1024}, {"no-evict", 3, 3}, {"no-touch", 3, 3}};
  const auto* const known = std::ranges::find_if(
      kSubcommands, [&](const Subcommand& one) { return EqualsLower(words[1], one.name); });
  if (known == std::end(kSubcommands)) return AppendUnknownSubcommand("client", words[1], reply);
  const std::string_view what = known->name;
  if (words.size() < known->least || words.size() > known->most)
    return AppendWrongArity("client|" + std::string(what), reply);
  if (what == "setinfo") return SetInfo(session, words[2], words[3], reply);
  if (what == "id") return reply.Integer(static_cast<int64_t>(session.id));
  if (what == "getname") return session.name.empty() ? reply.Null() : reply.Bulk(session.name);
  if (what == "info" || what == "list") return reply.Bulk(ClientLine(session, now_ns));
  if (what == "setname") {
    if (SetName(session, words[2], reply)) reply.Simple("OK");
    return;
  }
  if (!EqualsLower(words[2], "on") && !EqualsLower(words[2], "off"))
    return reply.Error("ERR syntax error");
  reply.Simple("OK");  // There is nothing to evict or to touch.
}

void ConnectionCommands::Info(Reply& reply) {
  reply.Bulk(
      fmt::format("# Server\r\nweir_version:{}\r\nredis_mode:standalone\r\n\r\n"
                  "# Persistence\r\nloading:0\r\n\r\n"
                  "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n",
                  version_));
}

void ConnectionCommands::Reset(Session& session, Reply& reply) {
  session.protocol = 2;
  session.authenticated = !wants_password();
  session.name.clear();
  reply.Simple("RESET");
}

}  // namespace weir::doors::resp
