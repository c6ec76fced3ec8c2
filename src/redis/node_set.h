// The nodes that a client knows, and those that are leaving.
//
// Thread safety: the loop's thread only. Ownership: owns its nodes with the tasks that run for
// them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "redis/client_options.h"
#include "redis/node.h"
#include "redis/shared.h"

namespace weir::redis {

class NodeSet {
 public:
  static constexpr size_t kNodesMax = 1024;

  NodeSet(std::shared_ptr<Shared> shared, NodeObserver& observer)
      : shared_(std::move(shared)), observer_(observer) {}

  // The node at `address`, made when there is none, with at least `connections` connections. Null
  // when there are too many.
  std::shared_ptr<Node> Get(const Address& address, int connections);
  std::shared_ptr<Node> Find(const Address& address) const;
  void Retire(const Address& address);
  // Retires every node that `keep` does not want.
  void RetireUnless(const std::function<bool(const Address&)>& keep);
  void Close();

  const std::map<Address, std::shared_ptr<Node>>& nodes() const { return nodes_; }
  // Adds its share.
  void AddTo(Client::Stats& stats) const;

 private:
  const std::shared_ptr<Shared> shared_;
  NodeObserver& observer_;
  std::map<Address, std::shared_ptr<Node>> nodes_;
  std::vector<std::shared_ptr<Node>> leaving_;
};

}  // namespace weir::redis
