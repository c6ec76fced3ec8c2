#include "redis/cluster_topology.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

namespace weir::redis {
namespace {

constexpr size_t kCandidatesMax = 16;  // Asked in one turn.
constexpr int64_t kRefreshSpacingNs = 100'000'000;
constexpr int64_t kRedirectedKeepNs = 5'000'000'000;

}  // namespace

std::shared_ptr<ClusterTopology> ClusterTopology::Create(std::shared_ptr<Shared> shared,
                                                         OnChange on_change) {
  std::shared_ptr<ClusterTopology> self(
      new ClusterTopology(std::move(shared), std::move(on_change)));
  self->shared_->loop.Spawn(RefreshLoop(self));
  return self;
}

ClusterTopology::ClusterTopology(std::shared_ptr<Shared> shared, OnChange on_change)
    : shared_(std::move(shared)),
      on_change_(std::move(on_change)),
      nodes_(shared_, *this),
      next_candidate_(shared_->options.seed),
      backoff_(shared_->options.backoff_min_ns, shared_->options.backoff_max_ns,
               shared_->options.seed * 0x9e3779b97f4a7c15),
      wake_(shared_->loop) {}

std::shared_ptr<Node> ClusterTopology::Pick(std::string_view slot_key) {
  if (slot_key.empty()) {
    for (size_t i = 0; i < masters_.size(); ++i) {
      const auto& node = masters_[next_candidate_++ % masters_.size()];
      if (node->ready() > 0) return node;
    }
    return masters_.empty() ? nullptr : masters_.front();
  }
  const int owner = map_.OwnerIndexOf(KeySlot(slot_key));
  if (owner >= 0) return masters_[static_cast<size_t>(owner)];
  WantRefresh();
  return nullptr;
}

std::shared_ptr<Node> ClusterTopology::At(const Address& address) {
  std::shared_ptr<Node> node = nodes_.Get(address, shared_->options.connections);
  if (node != nullptr) redirected_ns_[address] = shared_->loop.now_ns();
  return node;
}

void ClusterTopology::OnError(Node& node, const ErrorMeaning& meaning, std::string_view text) {
  if (meaning.kind == ErrorKind::kAsk || meaning.kind == ErrorKind::kTryAgain) return;
  if (meaning.kind == ErrorKind::kMoved) {
    const std::optional<Redirect> redirect = ParseRedirect(text, node.address());
    if (redirect && map_.OwnerOf(redirect->slot) != nullptr &&
        *map_.OwnerOf(redirect->slot) == redirect->target) {
      return;  // Learnt since this call was sent.
    }
    std::shared_ptr<Node> target = redirect ? At(redirect->target) : nullptr;
    if (target != nullptr) {
      map_.Move(redirect->slot, redirect->target);
      if (masters_.size() < map_.masters().size()) masters_.push_back(std::move(target));
    }
  }
  WantRefresh();
}

void ClusterTopology::WantRefresh() {
  refresh_wanted_ = true;
  wake_.Set();
}

Task<void> ClusterTopology::RefreshLoop(std::shared_ptr<ClusterTopology> self) {
  Shared& shared = *self->shared_;
  while (!self->closed_) {
    if (!self->refresh_wanted_) {
      co_await self->wake_.Wait();
      self->wake_.Reset();
      continue;
    }
    self->refresh_wanted_ = false;
    const bool refreshed = co_await Refresh(self);
    if (refreshed) {
      self->backoff_.Reset();
    } else {
      self->refresh_wanted_ = true;
    }
    const int64_t until_ns =
        shared.loop.now_ns() + (refreshed ? kRefreshSpacingNs : self->backoff_.NextNs());
    while (!self->closed_ && shared.loop.now_ns() < until_ns) {
      co_await self->wake_.WaitUntil(until_ns);
      self->wake_.Reset();
    }
  }
}

// Nodes with a connection first, then the others, then what was configured; in turn.
std::vector<Address> ClusterTopology::Candidates() {
  std::vector<Address> candidates;
  const auto add = [&](const Address& address) {
    if (candidates.size() == kCandidatesMax) return;
    if (std::ranges::find(candidates, address) == candidates.end()) candidates.push_back(address);
  };
  const auto add_in_turn = [&](const std::vector<Address>& from) {
    for (size_t i = 0; i < from.size(); ++i) add(from[(next_candidate_ + i) % from.size()]);
  };
  ++next_candidate_;
  std::vector<Address> connected;
  for (const auto& [address, node] : nodes_.nodes()) {
    if (node->ready() > 0) connected.push_back(address);
  }
  add_in_turn(connected);
  add_in_turn(map_.replicas());
  add_in_turn(map_.masters());
  add_in_turn(shared_->options.addresses);
  return candidates;
}

Task<bool> ClusterTopology::Refresh(std::shared_ptr<ClusterTopology> self) {
  const std::vector<Address> candidates = self->Candidates();
  for (const Address& address : candidates) {
    const bool answered = co_await Ask(self, address);
    if (answered || self->closed_) co_return answered;
  }
  if (!std::exchange(self->failing_, true)) {
    self->shared_->Notice("no node of the Cluster tells the map of slots; the last fault: " +
                          self->shared_->last_fault);
  }
  co_return false;
}

Task<bool> ClusterTopology::Ask(std::shared_ptr<ClusterTopology> self, Address address) {
  Shared& shared = *self->shared_;
  const std::shared_ptr<Node> node = self->nodes_.Get(address, 1);
  if (node == nullptr) co_return false;
  const std::string_view words[] = {"CLUSTER", "SLOTS"};
  Request request;
  request.words = words;
  AwaitedCall call(shared.loop, request, shared.loop.now_ns() + shared.options.connect_timeout_ns);
  node->Enqueue(call);
  shared.Watch(call);
  co_await call;
  if (self->closed_) co_return false;
  Result<SlotMap> map = MakeError(ErrorCode::kUnavailable, address.ToString() + ": no answer");
  if (call.outcome() == Call::Outcome::kReply) {
    map = call.reply().IsError()
              ? std::unexpected(ErrorOf(MeaningOf(call.reply().text), call.reply().text, address))
              : SlotMap::Parse(call.reply(), address);
  } else if (!call.fault().message.empty()) {
    map = std::unexpected(call.fault());
  }
  if (!map) {
    shared.last_fault = map.error().message;
    // One that is only a candidate keeps no connection.
    const bool is_master = std::ranges::find(self->masters_, node) != self->masters_.end();
    if (!is_master) self->nodes_.Retire(address);
    co_return false;
  }
  self->Adopt(std::move(*map));
  co_return true;
}

void ClusterTopology::Adopt(SlotMap map) {
  failing_ = false;
  if (!map.SameOwners(map_)) {
    ++shared_->topology_changes;
    shared_->Notice("the Cluster has " + std::to_string(map.masters().size()) + " masters for " +
                    std::to_string(map.slots_owned()) + " slots");
  }
  map_ = std::move(map);
  masters_.clear();
  for (const Address& address : map_.masters()) {
    std::shared_ptr<Node> node = nodes_.Get(address, shared_->options.connections);
    if (node == nullptr) {  // Too many left-overs of earlier maps.
      nodes_.RetireUnless([&](const Address& known) {
        return std::ranges::find(map_.masters(), known) != map_.masters().end();
      });
      node = nodes_.Get(address, shared_->options.connections);
    }
    masters_.push_back(std::move(node));
  }
  const int64_t now_ns = shared_->loop.now_ns();
  std::erase_if(redirected_ns_,
                [&](const auto& one) { return now_ns - one.second > kRedirectedKeepNs; });
  nodes_.RetireUnless([&](const Address& known) {
    return std::ranges::find(map_.masters(), known) != map_.masters().end() ||
           redirected_ns_.contains(known);
  });
  if (on_change_) on_change_();
}

void ClusterTopology::AddTo(Client::Stats& stats) const { nodes_.AddTo(stats); }

void ClusterTopology::Close() {
  closed_ = true;
  on_change_ = nullptr;
  nodes_.Close();
  wake_.Set();
}

}  // namespace weir::redis
