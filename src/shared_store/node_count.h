// NodeCounter: tells the store every two seconds that this node lives, and hears how many nodes do,
// so that each knows its share of the limits while the store is away.
//
//   NodeCounter counter({.loop = &loop, .client = client, .node = &node_state});
//   counter.Start();
//   …
//   counter.Leave();          // The node shuts down: it is no longer counted.
//
// What is reckoned with is the most of the last four answers (NodesSeen): a heartbeat that was lost
// does not raise anybody's share. While the store is away the last count stands.
//
// Thread safety: the loop's thread; NodeState is read by all. Ownership: borrows everything; the
// loop must not run any more when it is destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "net/event.h"
#include "net/event_loop.h"
#include "redis/client.h"
#include "store/lease/node_share.h"

namespace weir::shared_store {

// What the loops of one process share.
struct NodeState {
  uint64_t id = 0;                // Of this process, among the nodes.
  std::atomic<int64_t> nodes{1};  // That share the limits: as configured, or as the store counts.
};

class NodeCounter {
 public:
  struct Options {
    net::EventLoop* loop = nullptr;
    redis::Client* client = nullptr;
    NodeState* node = nullptr;
    std::string prefix = "weir:1:";
    // A node that is silent for four of them is forgotten. The first ones follow each other faster.
    int64_t beat_ns = 2'000'000'000;
  };

  explicit NodeCounter(Options options);

  // Once.
  void Start();
  // Takes the node off the list, behind a heartbeat that is under way, and ends. A store that is
  // away forgets the node by itself.
  void Leave();

 private:
  Task<void> Run();
  Task<Result<resp::Value>> Say(std::string_view leaves);

  const Options options_;
  const std::string key_, id_, believed_us_;
  store::lease::NodesSeen seen_;
  net::Event leaving_;
};

}  // namespace weir::shared_store
