// The commands that clients of Redis send when they connect and now and then: HELLO, AUTH, CLIENT,
// COMMAND, CONFIG GET, INFO, SELECT, PING, ECHO, QUIT, RESET. They answer as Redis does, as far as
// a server without data can.
//
//   ConnectionCommands commands(worker, "0.1.0");
//   commands.Answer(Command::kHello, session, words, now_ns, out);
//
// Thread safety: one loop. Ownership: borrows the worker.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "decide/engine.h"
#include "doors/resp/command_table.h"
#include "doors/resp/session.h"
#include "policy/config.h"
#include "wire/buffer.h"
#include "wire/resp/reply_writer.h"

namespace weir::doors::resp {

class ConnectionCommands {
 public:
  using Words = std::span<const std::string_view>;

  ConnectionCommands(decide::Worker& worker, std::string version)
      : worker_(worker), version_(std::move(version)) {}

  // Appends exactly one reply. REQUIRES: none of the commands that decide; as many words as the
  // command table says.
  void Answer(Command command, Session& session, Words words, int64_t now_ns, wire::Buffer& out);

  bool wants_password() { return !password().empty(); }

 private:
  using Reply = weir::resp::ReplyWriter;

  const policy::Secret& password();
  // False: the error has been written.
  bool Authenticate(Session& session, std::string_view user, std::string_view password,
                    Reply& reply);
  void Auth(Session& session, Words words, Reply& reply);
  void Hello(Session& session, Words words, wire::Buffer& out);
  void Client(Session& session, Words words, int64_t now_ns, Reply& reply);
  void Info(Reply& reply);
  void Reset(Session& session, Reply& reply);

  decide::Worker& worker_;
  const std::string version_;
};

// "ERR unknown command ..." and so on; what is shown of the client's words is bounded.
void AppendUnknownCommand(std::string_view name, weir::resp::ReplyWriter& reply);
void AppendWrongArity(std::string_view name, weir::resp::ReplyWriter& reply);
// "ERR cost.tokens: ...", or the code that the API would give: "NOT_FOUND reservation: ...".
void AppendError(const Error& error, weir::resp::ReplyWriter& reply);

}  // namespace weir::doors::resp
