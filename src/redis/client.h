// Client: the shared store (one Redis or Valkey server, a Sentinel's master, or a Cluster) as one
// event loop sees it.
//
// A few pipelined connections for each node; all calls that begin within one tick of the loop leave
// in one write. Connections are made and made again in the background, one attempt at a time for
// each node, with jittered backoff. Moves (MOVED, ASK, a new master) and missing scripts are
// followed inside.
//
// Delivery: a command is never sent again once it may have been carried out. One that was never
// sent, or that a server refused to carry out, is tried again until its deadline.
//
// Thread safety: the loop's thread only; one Client for each loop. Ownership: borrows the loop and
// the resolver, which must outlive it. Calls still waiting when it is destroyed end with
// kCancelled. Bounds: options.connections sockets for each node, options.queue_calls_max and
// queue_bytes_max.
//
//   auto client = Client::Create(loop, resolver, ParseUrl("redis://127.0.0.1").value());
//   Result<resp::Value> reply = co_await client->RunScript(sha1, text, keys, args,
//                                                          loop.now_ns() + 20'000'000);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/task.h"
#include "net/event_loop.h"
#include "net/resolver.h"
#include "redis/client_options.h"
#include "weir/result.h"
#include "wire/resp/value.h"

namespace weir::redis {

class Core;

// What is known of a command whose call ended with an error.
enum class Delivery : uint8_t {
  kNotCarriedOut,  // For certain: never sent, or refused.
  kUnknown,        // Sent, and no answer came.
};

struct CallOptions {
  CallOptions(int64_t deadline) : deadline_ns(deadline) {}  // NOLINT: a bare deadline will do.

  int64_t deadline_ns;  // On the loop's monotonic clock. Kept to 1 ms.
  // Told when the call ends with an error. Must outlive the call.
  Delivery* delivery = nullptr;
  // The answer of a command that had been sent when its deadline passed, should it come after all
  // and not be an error: so that what it did can be undone. At most once, on the loop's thread.
  std::move_only_function<void(resp::Value reply)> on_late;
};

class Client {
 public:
  // Never fails, and connects in the background. REQUIRES: options.addresses is not empty.
  static std::unique_ptr<Client> Create(net::EventLoop& loop, net::Resolver& resolver,
                                        ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // One EVALSHA on the node that owns keys[0] (any node without keys); the script's text follows
  // when the node does not know it. All views must stay valid until the task ends.
  //
  // Errors: kDeadlineExceeded; kUnavailable: no connection, lost connection, or a store that cannot
  // serve (LOADING, BUSY, OOM, READONLY, CLUSTERDOWN … until the deadline); kResourceExhausted: the
  // queue is full; kPermissionDenied: the password or the user's rights are wrong;
  // kInvalidArgument: keys of different groups; kInternal: the script failed; kCancelled: the
  // client is gone.
  Task<Result<resp::Value>> RunScript(std::string_view sha1, std::string_view text,
                                      std::span<const std::string_view> keys,
                                      std::span<const std::string_view> args, CallOptions options);

  // One command, on the node that owns `slot_key` (any node when empty). Errors as above. Not for
  // commands that block, subscribe, or change the connection.
  Task<Result<resp::Value>> Call(std::span<const std::string_view> words, std::string_view slot_key,
                                 CallOptions options);

  // Keys of one group may share a script call: the hash slot in a Cluster, 0 elsewhere.
  uint16_t GroupOf(std::string_view key) const;

  struct Stats {
    int nodes = 0;        // That calls can go to.
    int connections = 0;  // Sockets: ready ones and the ones being made.
    int connections_ready = 0;
    size_t calls_waiting = 0;    // Not sent yet.
    size_t calls_under_way = 0;  // Sent and not answered, those past their deadline included.
    uint64_t connects = 0;       // Attempts since the start.
    uint64_t connects_failed = 0;
    uint64_t redirects = 0;     // MOVED and ASK followed.
    uint64_t script_loads = 0;  // NOSCRIPT answered with the text.
    uint64_t topology_changes = 0;
    uint64_t late_replies = 0;
  };
  Stats stats() const;
  // Why the last connection failed, "" when none has. Never holds a secret.
  const std::string& last_fault() const;

 private:
  explicit Client(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace weir::redis
