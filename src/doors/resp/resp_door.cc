#include "doors/resp/resp_door.h"

#include <utility>

#include "doors/check_api/decision_json.h"
#include "doors/resp/throttle.h"

namespace weir::doors::resp {
namespace {

// More loops than a server can have; so that ids of connections differ over all of them.
constexpr uint64_t kIdStride = 1024;

using Reply = weir::resp::ReplyWriter;

// A page in a browser can send a request here, with commands in its body.
bool IsHttp(std::string_view word) {
  return EqualsLower(word, "post") || EqualsLower(word, "host:");
}

}  // namespace

RespDoor::RespDoor(decide::Worker& worker, std::string version)
    : worker_(worker),
      checks_(worker, metrics::Door::kResp),
      connection_commands_(worker, std::move(version)),
      next_id_(worker.shard() + 1) {}

Session RespDoor::NewSession(const net::Endpoint& peer, int64_t now_ns) {
  Session session;
  session.id = std::exchange(next_id_, next_id_ + kIdStride);
  session.peer = peer.ToString();
  session.began_ns = now_ns;
  session.authenticated = !connection_commands_.wants_password();
  return session;
}

RespDoor::Instant RespDoor::Tick(int64_t now_ns, int64_t wall_ns) {
  worker_.policy();  // Takes over one that was reloaded.
  return {worker_.engine().NowAt(now_ns, wall_ns), now_ns};
}

const CommandInfo* RespDoor::Admit(Session& session, Words words, wire::Buffer& out) {
  const CommandInfo* const command = FindCommand(words[0]);
  if (command != nullptr && command->Takes(words.size()) &&
      (session.authenticated || command->before_auth)) [[likely]]
    return command;
  Reply reply(out, session.protocol);
  if (command == nullptr && IsHttp(words[0])) {
    session.closing = true;
  } else if (command == nullptr) {
    AppendUnknownCommand(words[0], reply);
  } else if (!command->Takes(words.size())) {
    AppendWrongArity(command->name, reply);
  } else {
    reply.Error("NOAUTH Authentication required.");
  }
  return nullptr;
}

void RespDoor::Answer(Session& session, Words words, const Instant& instant, wire::Buffer& out) {
  const CommandInfo* const command = Admit(session, words, out);
  if (command == nullptr) return;
  switch (command->command) {
    case Command::kThrottle:
      return Throttle(session, words, instant, out);
    case Command::kCheck:
      return Check(session, words, instant, out);
    case Command::kSettle:
    case Command::kRelease:
      return End(session, command->command, words, instant, out);
    default:
      return connection_commands_.Answer(command->command, session, words, instant.clock_ns, out);
  }
}

void RespDoor::Throttle(Session& session, Words words, const Instant& instant, wire::Buffer& out) {
  Reply reply(out, session.protocol);
  if (words.size() > 6) return AppendWrongArity("cl.throttle", reply);
  const Result<resp::Throttle> throttle = ReadThrottle(words);
  if (!throttle) return AppendError(throttle.error(), reply);
  const Result<const decide::Verdict*> decided =
      worker_.DecideAdHoc(throttle->rule, throttle->quantity, throttle->Options(), instant.now);
  if (!decided) return AppendError(ThrottleError(decided.error()), reply);
  AppendThrottle(**decided, reply);
}

void RespDoor::Check(Session& session, Words words, const Instant& instant, wire::Buffer& out) {
  Reply reply(out, session.protocol);
  const Result<const json::CheckItem*> item = reader_.Read(words, worker_.policy().attributes());
  if (!item) return AppendError(item.error(), reply);
  const Result<const decide::Verdict*> decided = checks_.Decide(**item, false, instant.now);
  if (!decided) return AppendError(decided.error(), reply);
  json_.Clear();
  AppendDecision(**decided, json_);
  reply.Bulk(json_.View());
}

Result<ReservationEnd> RespDoor::ReadEnd(Command command, Words words) {
  if (command == Command::kRelease) return ReleaseOf(words[1]);
  return ReadSettle(words);
}

void RespDoor::End(Session& session, Command command, Words words, const Instant& instant,
                   wire::Buffer& out) {
  Reply reply(out, session.protocol);
  const Result<ReservationEnd> end = ReadEnd(command, words);
  if (!end) return AppendError(end.error(), reply);
  const Result<decide::Settled> settled = checks_.Settle(*end, instant.now);
  if (!settled) return AppendError(settled.error(), reply);
  json_.Clear();
  AppendSettled(end->reservation, *settled, json_);
  reply.Bulk(json_.View());
}

// Over a shared store
// ----------------------------------------------------------------------------------------------------

Result<decide::DecisionPtr> RespDoor::BeginDecision(Command command, Words words) {
  if (command == Command::kCheck) {
    const Result<const json::CheckItem*> item = reader_.Read(words, worker_.policy().attributes());
    if (!item) return std::unexpected(item.error());
    return checks_.Begin(**item, false);
  }
  const Result<resp::Throttle> throttle = ReadThrottle(words);
  if (!throttle) return std::unexpected(throttle.error());
  Result<decide::DecisionPtr> begun =
      worker_.BeginAdHoc(throttle->rule, throttle->quantity, throttle->Options());
  if (!begun) return std::unexpected(ThrottleError(begun.error()));
  return begun;
}

bool RespDoor::Begin(Session& session, Words words, const Instant& instant, wire::Buffer& out,
                     PendingReplies& pending) {
  const CommandInfo* const command = Admit(session, words, out);
  if (command == nullptr) return true;
  Reply reply(out, session.protocol);
  switch (command->command) {
    case Command::kThrottle:
    case Command::kCheck: {
      if (!pending.TakesDecision()) return false;
      if (command->command == Command::kThrottle && words.size() > 6) {
        AppendWrongArity(command->name, reply);
        return true;
      }
      Result<decide::DecisionPtr> begun = BeginDecision(command->command, words);
      if (begun) {
        pending.Add(*std::move(begun), command->command == Command::kThrottle, out.size());
      } else {
        AppendError(begun.error(), reply);
      }
      return true;
    }
    case Command::kSettle:
    case Command::kRelease: {
      if (!pending.TakesEnd()) return false;
      Result<ReservationEnd> end = ReadEnd(command->command, words);
      if (end) {
        pending.Add(*std::move(end), out.size());
      } else {
        AppendError(end.error(), reply);
      }
      return true;
    }
    default:
      connection_commands_.Answer(command->command, session, words, instant.clock_ns, out);
      return true;
  }
}

}  // namespace weir::doors::resp
