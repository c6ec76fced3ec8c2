#include "redis/topology.h"

#include <utility>

#include "redis/cluster_topology.h"
#include "redis/node_set.h"
#include "redis/sentinel_topology.h"

namespace weir::redis {
namespace {

// One server at a fixed address. (Its name may come to stand for another machine: new connections
// look it up again.)
class StandaloneTopology final : public Topology, private NodeObserver {
 public:
  explicit StandaloneTopology(std::shared_ptr<Shared> shared) : nodes_(shared, *this) {
    node_ = nodes_.Get(shared->options.addresses.front(), shared->options.connections);
  }

  std::shared_ptr<Node> Pick(std::string_view) override { return node_; }
  std::shared_ptr<Node> At(const Address&) override { return nullptr; }
  void OnError(Node& node, const ErrorMeaning& meaning, std::string_view) override {
    if (meaning.remedy == Remedy::kFindMaster) node.Renew();
  }
  bool MayFindMaster() const override { return false; }
  uint16_t GroupOf(std::string_view) const override { return 0; }
  void AddTo(Client::Stats& stats) const override { nodes_.AddTo(stats); }
  void Close() override { nodes_.Close(); }

 private:
  void OnTrouble(Node&) override {}

  NodeSet nodes_;
  std::shared_ptr<Node> node_;
};

}  // namespace

std::shared_ptr<Topology> Topology::Create(std::shared_ptr<Shared> shared, OnChange on_change) {
  switch (shared->options.kind) {
    case ClientOptions::Kind::kSentinel:
      return SentinelTopology::Create(std::move(shared), std::move(on_change));
    case ClientOptions::Kind::kCluster:
      return ClusterTopology::Create(std::move(shared), std::move(on_change));
    case ClientOptions::Kind::kStandalone:
      break;
  }
  return std::make_shared<StandaloneTopology>(std::move(shared));
}

}  // namespace weir::redis
