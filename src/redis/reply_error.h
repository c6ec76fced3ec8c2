// What a server's error replies mean for the one who sent the command: the one place that knows
// their words.
//
//   const ErrorMeaning meaning = MeaningOf("MOVED 3999 127.0.0.1:6381");
//   if (meaning.remedy == Remedy::kFollow) …
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "redis/client_options.h"
#include "weir/result.h"

namespace weir::redis {

enum class ErrorKind : uint8_t {
  kNoScript,        // The server does not know the script with this digest.
  kMoved,           // The slot belongs to another node.
  kAsk,             // This key, this once, is at another node: its slot is being moved.
  kTryAgain,        // The keys are on both sides of a slot that is being moved.
  kClusterDown,     // The Cluster, or the slot, has no owner for now.
  kCrossSlot,       // Keys of several slots in one command: a mistake of the caller.
  kReadOnly,        // A replica: the master has changed.
  kMasterDown,      // A replica that has lost its master and does not serve stale data.
  kLoading,         // The server is reading its data.
  kBusy,            // A script has run for too long.
  kOutOfMemory,     // maxmemory is reached, and nothing may be evicted.
  kMisconfigured,   // The server cannot save, and so refuses writes.
  kNoReplicas,      // Too few replicas to take a write.
  kNoAuth,          // The connection has not given a password.
  kWrongPassword,   // The password, or the user, is wrong.
  kNoPermission,    // The user may not run this command or touch this key.
  kNoProtocol,      // HELLO asks for a version that the server does not speak.
  kTooManyClients,  // maxclients is reached.
  kOther,           // A script's own error, a wrong argument, …
};

enum class Remedy : uint8_t {
  kNone,        // Tell the caller.
  kSendText,    // Send the script itself.
  kFollow,      // Send it to the node that is named, and learn where slots are.
  kFollowOnce,  // Send it to the node that is named, after ASKING.
  kWait,        // Send it again a little later.
  kFindMaster,  // Find the master, and send it there.
  kReconnect,   // This connection is of no use; tell the caller.
};

struct ErrorMeaning {
  ErrorKind kind = ErrorKind::kOther;
  Remedy remedy = Remedy::kNone;
  ErrorCode code = ErrorCode::kInternal;  // For the caller, once the remedy is of no avail.
  bool refused = false;                   // For certain, nothing of the command was carried out.
};

// `text` is an error reply without its '-'.
ErrorMeaning MeaningOf(std::string_view text);

// The error that the caller gets: "127.0.0.1:6379: OOM command not allowed …", cut to a few hundred
// printable bytes. Not for replies to commands that hold a secret: servers repeat arguments.
Error ErrorOf(const ErrorMeaning& meaning, std::string_view text, const Address& from);

// The first word of an error reply, "ERR", "MOVED", …, or "an error" when it is none: safe to show
// whatever was sent.
std::string_view ErrorWord(std::string_view text);

struct Redirect {
  uint16_t slot = 0;
  Address target;
};
// Where MOVED and ASK point. A target without a host means the host that was asked. Empty when the
// text is malformed.
std::optional<Redirect> ParseRedirect(std::string_view text, const Address& asked);

}  // namespace weir::redis
