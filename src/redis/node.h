// One server: its connections, made one at a time, and the calls that wait for one of them.
//
// Calls wait here until a connection takes them, so that a connection that breaks takes with it
// only what it had sent. All calls that come within one tick of the loop leave in one write, on the
// connection with the fewest commands under way.
//
// Thread safety: the loop's thread only. Ownership: its tasks keep it alive until Close or Retire
// has run its course. Borrows its observer until then.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/task.h"
#include "net/event.h"
#include "redis/backoff.h"
#include "redis/call.h"
#include "redis/client_options.h"
#include "redis/pipeline.h"
#include "redis/shared.h"
#include "weir/result.h"

namespace weir::redis {

class Node;

class NodeObserver {
 public:
  // A connection was lost or could not be made.
  virtual void OnTrouble(Node& node) = 0;

 protected:
  ~NodeObserver() = default;
};

class Node : public std::enable_shared_from_this<Node> {
 public:
  // Begins to connect at once.
  static std::shared_ptr<Node> Create(std::shared_ptr<Shared> shared, const Address& address,
                                      int connections, NodeObserver& observer);
  ~Node();

  const Address& address() const { return address_; }
  // From now on at least so many.
  void RaiseConnections(int connections);

  // Sends the call when there is a connection. It ends at once with kNotSent when there is none and
  // the next attempt lies beyond its deadline, and with kRoute when this node is leaving.
  void Enqueue(Call& call);

  // Makes its connections anew once what is under way has been answered: the server is not what it
  // was (READONLY). At most once a second.
  void Renew();
  // Takes no more calls (those that wait end with kRoute), and closes when what is under way has
  // been answered or is overdue.
  void Retire();
  // Ends everything at once; calls end with kCancelled.
  void Close();

  bool done() const { return closed_ && links_.empty() && !attempting_; }
  int ready() const;
  int sockets() const { return static_cast<int>(links_.size()) + (attempting_ ? 1 : 0); }
  size_t waiting() const { return waiting_.size(); }
  size_t under_way() const;
  uint64_t late_replies() const;
  const Error& fault() const { return fault_; }

 private:
  struct Link;
  Node(std::shared_ptr<Shared> shared, const Address& address, int connections,
       NodeObserver& observer);
  static Task<void> ConnectLoop(std::shared_ptr<Node> node);
  static Task<void> ReadLoop(std::shared_ptr<Node> node, std::shared_ptr<Link> link);
  static Task<void> WriteLoop(std::shared_ptr<Node> node, std::shared_ptr<Link> link);
  void OnDialed(Dialed dialed);
  void OnDialFailed(const Error& error);
  void OnLinkEnded(Link& link, const Error& error);
  void FailTheImpatient();
  void Kick();
  void Drain(Link& link);

  const std::shared_ptr<Shared> shared_;
  const Address address_;
  int connections_;
  NodeObserver* observer_;
  Backoff backoff_;
  net::Event wake_;  // Of ConnectLoop.
  std::vector<std::shared_ptr<Link>> links_;
  CallQueue waiting_;
  bool flush_pending_ = false;  // A connection will take what waits at the end of this tick.
  size_t next_link_ = 0;
  bool attempting_ = false;
  bool failing_ = false;  // The last attempt failed.
  bool retired_ = false;
  bool closed_ = false;
  int64_t next_attempt_ns_ = 0;
  int64_t renewed_ns_ = INT64_MIN / 2;
  Error fault_;
};

}  // namespace weir::redis
