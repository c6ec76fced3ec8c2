// The nodes of a Cluster and their slots. The map is read with CLUSTER SLOTS from any node that
// answers, one question at a time: at the start, after MOVED or CLUSTERDOWN, and while a node is in
// trouble. MOVED mends one slot at once.
//
// Thread safety and ownership: as Topology.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/task.h"
#include "net/event.h"
#include "redis/backoff.h"
#include "redis/node_set.h"
#include "redis/slot_map.h"
#include "redis/topology.h"

namespace weir::redis {

class ClusterTopology final : public Topology,
                              private NodeObserver,
                              public std::enable_shared_from_this<ClusterTopology> {
 public:
  static std::shared_ptr<ClusterTopology> Create(std::shared_ptr<Shared> shared,
                                                 OnChange on_change);

  std::shared_ptr<Node> Pick(std::string_view slot_key) override;
  std::shared_ptr<Node> At(const Address& address) override;
  void OnError(Node& node, const ErrorMeaning& meaning, std::string_view text) override;
  bool IsCluster() const override { return true; }
  bool MayFindMaster() const override { return true; }
  uint16_t GroupOf(std::string_view key) const override { return KeySlot(key); }
  void AddTo(Client::Stats& stats) const override;
  void Close() override;

 private:
  ClusterTopology(std::shared_ptr<Shared> shared, OnChange on_change);
  static Task<void> RefreshLoop(std::shared_ptr<ClusterTopology> self);
  static Task<bool> Refresh(std::shared_ptr<ClusterTopology> self);
  static Task<bool> Ask(std::shared_ptr<ClusterTopology> self, Address address);
  std::vector<Address> Candidates();
  void Adopt(SlotMap map);
  void WantRefresh();
  void OnTrouble(Node&) override { WantRefresh(); }

  const std::shared_ptr<Shared> shared_;
  OnChange on_change_;
  NodeSet nodes_;
  SlotMap map_;
  std::vector<std::shared_ptr<Node>> masters_;  // As map_.masters().
  std::map<Address, int64_t> redirected_ns_;    // Nodes that ASK named, which may own no slot yet.
  size_t next_candidate_ = 0;
  Backoff backoff_;
  net::Event wake_;
  bool refresh_wanted_ = true;
  bool failing_ = false;
  bool closed_ = false;
};

}  // namespace weir::redis
