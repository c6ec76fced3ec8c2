#include "redis/slot_map.h"

#include <algorithm>
#include <optional>

namespace weir::redis {
namespace {

// [host, port, id, …]: a host may be null or empty (the one that was asked) or "?" (unknown).
std::optional<Address> ReadNode(const resp::Value& node, const Address& asked) {
  if (!node.IsList() || node.items.size() < 2) return std::nullopt;
  const resp::Value& host = node.items[0];
  const resp::Value& port = node.items[1];
  if (!port.IsInteger() || port.integer < 1 || port.integer > 65535) return std::nullopt;
  if (!host.IsNull() && !host.IsString()) return std::nullopt;
  Address address{host.text, static_cast<int>(port.integer)};
  if (address.host.empty()) address.host = asked.host;
  return address;
}

bool IsSlot(const resp::Value& value) {
  return value.IsInteger() && value.integer >= 0 && value.integer < kSlots;
}

}  // namespace

uint16_t SlotMap::IndexOf(const Address& master) {
  const auto found = std::ranges::find(masters_, master);
  if (found != masters_.end()) return static_cast<uint16_t>(found - masters_.begin());
  if (masters_.size() == kNodesMax) return kNobody;
  masters_.push_back(master);
  return static_cast<uint16_t>(masters_.size() - 1);
}

Result<SlotMap> SlotMap::Parse(const resp::Value& reply, const Address& asked) {
  const auto malformed = [&] {
    return MakeError(ErrorCode::kUnavailable,
                     asked.ToString() + ": the answer to CLUSTER SLOTS is malformed");
  };
  if (!reply.IsList()) return malformed();
  SlotMap map;
  for (const resp::Value& range : reply.items) {
    if (!range.IsList() || range.items.size() < 3) return malformed();
    if (!IsSlot(range.items[0]) || !IsSlot(range.items[1])) return malformed();
    for (size_t i = 2; i < range.items.size(); ++i) {
      const std::optional<Address> node = ReadNode(range.items[i], asked);
      if (!node) return malformed();
      if (node->host == "?") continue;  // The one that was asked has not met it yet.
      if (i > 2) {
        const bool known = std::ranges::find(map.replicas_, *node) != map.replicas_.end();
        if (!known && map.replicas_.size() < kNodesMax) map.replicas_.push_back(*node);
        continue;
      }
      const uint16_t owner = map.IndexOf(*node);
      for (int64_t slot = range.items[0].integer; slot <= range.items[1].integer; ++slot) {
        map.owner_[static_cast<size_t>(slot)] = owner;
      }
    }
  }
  if (map.empty()) {
    return MakeError(ErrorCode::kUnavailable, asked.ToString() + ": the Cluster has no slots yet");
  }
  return map;
}

void SlotMap::Move(uint16_t slot, const Address& target) {
  const uint16_t owner = IndexOf(target);
  if (owner != kNobody) owner_[slot] = owner;
}

int SlotMap::slots_owned() const {
  return static_cast<int>(kSlots - std::ranges::count(owner_, kNobody));
}

bool SlotMap::SameOwners(const SlotMap& other) const {
  for (uint16_t slot = 0; slot < kSlots; ++slot) {
    const Address* here = OwnerOf(slot);
    const Address* there = other.OwnerOf(slot);
    if ((here == nullptr) != (there == nullptr)) return false;
    if (here != nullptr && *here != *there) return false;
  }
  return true;
}

}  // namespace weir::redis
