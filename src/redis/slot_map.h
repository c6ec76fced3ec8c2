// Which node of a Cluster owns which hash slot, as CLUSTER SLOTS tells it and MOVED mends it.
//
//   Result<SlotMap> map = SlotMap::Parse(reply, asked);
//   const Address* owner = map->OwnerOf(KeySlot(key));     // null: nobody, for now
//
// Thread safety: none; one owner. 32 KiB.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "redis/client_options.h"
#include "redis/key_slot.h"
#include "weir/result.h"
#include "wire/resp/value.h"

namespace weir::redis {

class SlotMap {
 public:
  SlotMap() { owner_.fill(kNobody); }

  // Reads the reply to CLUSTER SLOTS that came from `asked`, which stands in for nodes that the
  // reply gives no host. kUnavailable when it is malformed or names nobody.
  static Result<SlotMap> Parse(const resp::Value& reply, const Address& asked);

  const Address* OwnerOf(uint16_t slot) const {
    return owner_[slot] == kNobody ? nullptr : &masters_[owner_[slot]];
  }
  // The same as an index in masters(); -1: nobody.
  int OwnerIndexOf(uint16_t slot) const {
    return owner_[slot] == kNobody ? -1 : static_cast<int>(owner_[slot]);
  }
  // MOVED: from now on `slot` is the target's. Ignored beyond kNodesMax nodes.
  void Move(uint16_t slot, const Address& target);

  const std::vector<Address>& masters() const { return masters_; }
  const std::vector<Address>& replicas() const { return replicas_; }
  bool empty() const { return masters_.empty(); }
  int slots_owned() const;
  // Whether every slot has the owner that it has in `other`.
  bool SameOwners(const SlotMap& other) const;

  static constexpr size_t kNodesMax = 1024;

 private:
  static constexpr uint16_t kNobody = 0xffff;
  uint16_t IndexOf(const Address& master);

  std::vector<Address> masters_;
  std::vector<Address> replicas_;
  std::array<uint16_t, kSlots> owner_;
};

}  // namespace weir::redis
