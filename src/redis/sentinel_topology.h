// The master that Sentinels name. One connection to one Sentinel at a time: it tells of a switch by
// itself (+switch-master), is asked every few seconds, and is left for the next Sentinel when the
// master turns out to be none.
//
// Thread safety and ownership: as Topology.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/task.h"
#include "net/event.h"
#include "net/stream.h"
#include "redis/backoff.h"
#include "redis/node_set.h"
#include "redis/sentinel_session.h"
#include "redis/topology.h"

namespace weir::redis {

class SentinelTopology final : public Topology,
                               private NodeObserver,
                               public std::enable_shared_from_this<SentinelTopology> {
 public:
  static std::shared_ptr<SentinelTopology> Create(std::shared_ptr<Shared> shared,
                                                  OnChange on_change);

  std::shared_ptr<Node> Pick(std::string_view slot_key) override;
  std::shared_ptr<Node> At(const Address&) override { return nullptr; }
  void OnError(Node& node, const ErrorMeaning& meaning, std::string_view text) override;
  bool MayFindMaster() const override { return true; }
  uint16_t GroupOf(std::string_view) const override { return 0; }
  void AddTo(Client::Stats& stats) const override;
  void Close() override;

 private:
  SentinelTopology(std::shared_ptr<Shared> shared, OnChange on_change);
  static Task<void> Watch(std::shared_ptr<SentinelTopology> self);
  static Task<void> Converse(std::shared_ptr<SentinelTopology> self, Address sentinel,
                             Dialed dialed);
  Task<void> PauseUntil(int64_t until_ns);
  static Task<bool> Say(net::Stream& stream, wire::Buffer& out);
  void OnTrouble(Node& node) override;
  void LookAround();
  void OnMaster(const Address& master);
  void Learn(const std::vector<Address>& sentinels);
  void OnFault(const Address& sentinel, const Error& error);

  const std::shared_ptr<Shared> shared_;
  OnChange on_change_;
  NodeSet nodes_;
  std::shared_ptr<Node> master_;
  std::vector<Address> sentinels_;
  size_t next_sentinel_ = 0;
  size_t failed_in_turn_ = 0;      // Sentinels that were of no use since the last one that was.
  net::Stream* stream_ = nullptr;  // Of the conversation under way.
  int64_t answered_ns_ = 0;        // When a Sentinel last named a master.
  Backoff backoff_;
  net::Event wake_;
  bool failing_ = false;
  bool closed_ = false;
};

}  // namespace weir::redis
