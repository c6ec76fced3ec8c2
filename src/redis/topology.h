// Where calls go: one server, the master that Sentinels name, or the nodes of a Cluster. The client
// asks for a node for each call and tells what servers answered.
//
// Thread safety: the loop's thread only. Ownership: held by the client and by the topology's own
// tasks; Close ends them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "redis/client.h"
#include "redis/node.h"
#include "redis/reply_error.h"
#include "redis/shared.h"

namespace weir::redis {

class Topology {
 public:
  // Called when calls that found no node may find one now.
  using OnChange = std::function<void()>;

  static std::shared_ptr<Topology> Create(std::shared_ptr<Shared> shared, OnChange on_change);
  virtual ~Topology() = default;

  // The node for `slot_key`. Null: not known yet; on_change will tell.
  virtual std::shared_ptr<Node> Pick(std::string_view slot_key) = 0;
  // The node that a redirect names. Null: none, so Pick.
  virtual std::shared_ptr<Node> At(const Address& address) = 0;
  // What a server answered, when its remedy is to look around: MOVED, READONLY, CLUSTERDOWN, …
  virtual void OnError(Node& node, const ErrorMeaning& meaning, std::string_view text) = 0;
  // Whether MOVED and ASK are to be followed.
  virtual bool IsCluster() const { return false; }
  // Whether a call that met `meaning` may find another node by waiting.
  virtual bool MayFindMaster() const = 0;
  virtual uint16_t GroupOf(std::string_view key) const = 0;
  virtual void AddTo(Client::Stats& stats) const = 0;
  virtual void Close() = 0;
};

}  // namespace weir::redis
