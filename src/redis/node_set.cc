#include "redis/node_set.h"

#include <utility>

namespace weir::redis {

std::shared_ptr<Node> NodeSet::Get(const Address& address, int connections) {
  auto found = nodes_.find(address);
  if (found == nodes_.end()) {
    if (nodes_.size() >= kNodesMax) return nullptr;
    std::shared_ptr<Node> node = Node::Create(shared_, address, connections, observer_);
    nodes_.emplace(address, node);
    return node;
  }
  found->second->RaiseConnections(connections);
  return found->second;
}

std::shared_ptr<Node> NodeSet::Find(const Address& address) const {
  const auto found = nodes_.find(address);
  return found == nodes_.end() ? nullptr : found->second;
}

void NodeSet::Retire(const Address& address) {
  const auto found = nodes_.find(address);
  if (found == nodes_.end()) return;
  std::shared_ptr<Node> node = std::move(found->second);
  nodes_.erase(found);
  std::erase_if(leaving_, [](const auto& one) { return one->done(); });
  leaving_.push_back(node);
  node->Retire();
}

void NodeSet::RetireUnless(const std::function<bool(const Address&)>& keep) {
  std::vector<Address> unwanted;
  for (const auto& [address, node] : nodes_) {
    if (!keep(address)) unwanted.push_back(address);
  }
  for (const Address& address : unwanted) Retire(address);
}

void NodeSet::Close() {
  for (const auto& [address, node] : nodes_) node->Close();
  for (const auto& node : leaving_) node->Close();
}

void NodeSet::AddTo(Client::Stats& stats) const {
  stats.nodes += static_cast<int>(nodes_.size());
  const auto add = [&](const Node& node) {
    stats.connections += node.sockets();
    stats.connections_ready += node.ready();
    stats.calls_waiting += node.waiting();
    stats.calls_under_way += node.under_way();
    stats.late_replies += node.late_replies();
  };
  for (const auto& [address, node] : nodes_) add(*node);
  for (const auto& node : leaving_) add(*node);
}

}  // namespace weir::redis
