// Denials that the store has spoken and that still hold: "cost n is denied for R" is true of every
// cost of at least n until the instant at which the question was sent, plus R. Answers floods
// without a round trip and admits nothing by itself, so it can only be too strict, and only where
// units come back before their time:
//   - a refund, a reset or a settle made here: call Drop;
//   - the same made by another node, on a counter that has reservations or leases: such a denial is
//     kept for at most `reserved_max_ns`;
//   - a reset by another node: nothing is kept for longer than `max_ns`;
//   - a new policy: call DropAll.
// Parallel limits are not for this cache: a slot may come free at any time.
//
//   DenyCache cache({.slots = 65536});
//   cache.Put(key, /*cost=*/5, sent_ns, retry_after_ns, /*reservations=*/false);
//   if (auto denial = cache.Find(key, cost, now_ns)) ...      // Denied for denial->wait_ns.
//
// A fixed number of slots, four to a set; a newcomer replaces the entry of its set that ends first.
// All operations are O(1) and none allocates after construction.
// Thread safety: one thread (one cache per event loop). Times are the node's monotonic clock, ns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/keyed_hash.h"

namespace weir::store::lease {

using base::Key128;

class DenyCache {
 public:
  struct Options {
    size_t slots = 65536;  // Rounded up to a power of two, at least 4. 64 bytes each.
    int64_t max_ns = 1'000'000'000;
    int64_t reserved_max_ns = 100'000'000;
  };

  explicit DenyCache(const Options& options);

  // Remembers that the store denied `cost` (above 0) for `retry_after_ns` from `sent_ns`, when the
  // question left; core::kNever counts as very long. `reservations`: units of this counter may come
  // back out of turn (reservations, leases). `standing`: what else the store said.
  struct Standing {
    int64_t remaining = 0;
    int64_t reset_after_ns = 0;  // Below 2^62.
    uint32_t rate = 0;           // Which rate denied: under another the same cost may pass.
    friend bool operator==(const Standing&, const Standing&) = default;
  };
  void Put(Key128 key, int64_t cost, int64_t sent_ns, int64_t retry_after_ns, bool reservations,
           const Standing& standing);
  void Put(Key128 key, int64_t cost, int64_t sent_ns, int64_t retry_after_ns, bool reservations) {
    Put(key, cost, sent_ns, retry_after_ns, reservations, Standing());
  }

  struct Denial {
    int64_t cost = 0;     // That was denied, at most the one that is asked about.
    int64_t wait_ns = 0;  // Until that cost passes, above 0, as the store said, however long it is
                          // believed; core::kNever. A larger cost waits for longer.
    Standing standing;    // As the store told it, its time less what has passed.
    friend bool operator==(const Denial&, const Denial&) = default;
  };
  // What is known to deny `cost` under that rate. Nothing: ask the store.
  std::optional<Denial> Find(Key128 key, int64_t cost, int64_t now_ns, uint32_t rate = 0) const;

  void Drop(Key128 key);
  void DropAll() { ++generation_; }

 private:
  static constexpr size_t kWays = 4;
  static constexpr int64_t kForeverNs = std::numeric_limits<int64_t>::max();
  struct Slot {
    Key128 key;
    int64_t cost = 0;
    int64_t until_ns = 0;  // So long it is believed.
    int64_t ends_ns = 0;   // So long the store said it would last; kForeverNs.
    uint32_t generation = 0;
    uint32_t rate = 0;
    int64_t remaining = 0;
    int64_t full_ns = 0;  // When all is there again.
  };

  size_t SetOf(Key128 key) const { return (key.lo & set_mask_) * kWays; }
  bool Holds(const Slot& slot, Key128 key) const {
    return slot.generation == generation_ && slot.key == key;
  }

  Options options_;
  uint32_t generation_ = 1;
  size_t set_mask_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace weir::store::lease
