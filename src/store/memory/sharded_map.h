// Bounded map of counters behind 128 locks, for state that does not fit the lock-free table.
//
//   ShardedMap::Shard shard = map.Lock(key);          // Held until it goes out of scope.
//   if (ShardedMap::Entry* entry = shard.Find(key)) ...
//
// Entries at full quota are dropped a few at a time by the insertions that come after, so no sweep
// ever pauses a shard.
//
// Thread safety: any thread. A thread holds one Shard at a time. Insertion allocates.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/keyed_hash.h"
#include "core/meter.h"
#include "store/memory/key_budget.h"
#include "store/memory/wide_state.h"

namespace weir::store {

class ShardedMap {
 public:
  struct Entry {
    base::Key128 key;
    const core::Meter* meter = nullptr;  // The one that wrote the state.
    WideState state;
  };

  // `budget` is not owned and outlives the map.
  explicit ShardedMap(KeyBudget* budget);
  ~ShardedMap();

  struct Bucket;
  class Shard {
   public:
    Entry* Find(base::Key128 key);
    // Makes an empty entry. Null when there is no budget. REQUIRES: the key has none.
    Entry* Insert(base::Key128 key, const core::Meter& meter, core::Now now);
    // The same with a place of the budget that the caller holds and hands over.
    Entry* InsertPaid(base::Key128 key, const core::Meter& meter);
    // Both invalidate every Entry pointer of this shard. Remove leaves the entry's place of the
    // budget to the caller. REQUIRES of Remove: the key has an entry.
    void Erase(base::Key128 key);
    void Remove(base::Key128 key);

   private:
    friend class ShardedMap;
    Shard(Bucket* bucket, KeyBudget* budget);
    Bucket* bucket_;
    KeyBudget* budget_;
    std::unique_lock<std::mutex> lock_;
  };
  Shard Lock(base::Key128 key);

  // Removes the entry nearest to full quota among those of the key's shard that it looks at (a
  // bounded number), going on to other shards while it finds none that is not exhausted. REQUIRES:
  // the caller holds no Shard.
  bool EvictOne(base::Key128 near, core::Now now);

  int64_t CountLive(core::Now now) const;
  int64_t MemoryBytes() const;

  // The bits by which fixed windows are shifted, as in the lock-free table.
  static uint64_t Spread(base::Key128 key) { return key.lo >> 17 << 18; }

 private:
  static constexpr int kShards = 128;
  std::unique_ptr<Bucket[]> buckets_;
  KeyBudget* budget_;
};

}  // namespace weir::store
