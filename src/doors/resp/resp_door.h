// RespDoor: what the RESP door answers to one command. It reads, asks Decide, and writes; sockets
// are serve_resp.h's.
//
//   RespDoor door(worker, "0.1.0");                                // one per loop
//   Session session = door.NewSession(peer, now_ns);
//   door.Answer(session, words, door.Tick(now_ns, wall_ns), out);
//
// Thread safety: one loop; it uses that loop's worker. Ownership: borrows the worker.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "decide/engine.h"
#include "doors/checks.h"
#include "doors/resp/check_command.h"
#include "doors/resp/command_table.h"
#include "doors/resp/connection_commands.h"
#include "doors/resp/pending_replies.h"
#include "doors/resp/session.h"
#include "net/endpoint.h"
#include "wire/buffer.h"

namespace weir::doors::resp {

class RespDoor {
 public:
  using Words = std::span<const std::string_view>;

  // `version` is told to clients.
  RespDoor(decide::Worker& worker, std::string version);

  Session NewSession(const net::Endpoint& peer, int64_t now_ns);

  // The instant that commands are decided at; ask once for all that have arrived.
  struct Instant {
    core::Now now;
    int64_t clock_ns;  // As the loop has it.
  };
  Instant Tick(int64_t now_ns, int64_t wall_ns);

  decide::Worker& worker() { return worker_; }
  // Whether decisions wait for a shared store: then Begin is asked, else Answer.
  bool waits() const { return worker_.waits(); }

  // Appends exactly one reply. (None, and the session is to close, for what only a browser sends.)
  // REQUIRES: at least one word.
  void Answer(Session& session, Words words, const Instant& instant, wire::Buffer& out);

  // The same, but what must wait goes to `pending`, to be awaited. False: await `pending` first,
  // then ask again: nothing has happened, and no order is lost.
  bool Begin(Session& session, Words words, const Instant& instant, wire::Buffer& out,
             PendingReplies& pending);

 private:
  // Null: the command has been refused.
  const CommandInfo* Admit(Session& session, Words words, wire::Buffer& out);
  void Throttle(Session& session, Words words, const Instant& instant, wire::Buffer& out);
  void Check(Session& session, Words words, const Instant& instant, wire::Buffer& out);
  void End(Session& session, Command command, Words words, const Instant& instant,
           wire::Buffer& out);
  static Result<ReservationEnd> ReadEnd(Command command, Words words);
  Result<decide::DecisionPtr> BeginDecision(Command command, Words words);

  decide::Worker& worker_;
  Checks checks_;
  CheckReader reader_;
  ConnectionCommands connection_commands_;
  wire::Buffer json_;
  uint64_t next_id_;
};

}  // namespace weir::doors::resp
