#include "store/memory/sharded_map.h"

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <deque>
#include <optional>
#include <utility>

namespace weir::store {
namespace {

struct KeyHash {
  using is_avalanching = void;  // The key is a hash already.
  size_t operator()(const base::Key128& key) const { return key.lo; }
};

}  // namespace

// Entries lie densely in a deque, which grows without moving them, so that a cursor can walk over
// them.
struct alignas(64) ShardedMap::Bucket {
  mutable std::mutex mutex;
  boost::unordered_flat_map<base::Key128, uint32_t, KeyHash> index;
  std::deque<Entry> entries;
  size_t cursor = 0;

  void EraseAt(uint32_t position) {
    index.erase(entries[position].key);
    if (position + 1 < entries.size()) {
      entries[position] = std::move(entries.back());
      index[entries[position].key] = position;
    }
    entries.pop_back();
  }
  uint32_t NextPosition() {
    if (++cursor >= entries.size()) cursor = 0;
    return static_cast<uint32_t>(cursor);
  }
  Standing StandingAt(uint32_t position, core::Now now) const {
    const Entry& entry = entries[position];
    return StandingOfWide(*entry.meter, entry.state, now, Spread(entry.key));
  }
};

ShardedMap::ShardedMap(KeyBudget* budget) : buckets_(new Bucket[kShards]), budget_(budget) {}
ShardedMap::~ShardedMap() = default;

ShardedMap::Shard::Shard(Bucket* bucket, KeyBudget* budget)
    : bucket_(bucket), budget_(budget), lock_(bucket->mutex) {}

ShardedMap::Shard ShardedMap::Lock(base::Key128 key) {
  return Shard(&buckets_[key.hi % kShards], budget_);
}

ShardedMap::Entry* ShardedMap::Shard::Find(base::Key128 key) {
  const auto it = bucket_->index.find(key);
  return it == bucket_->index.end() ? nullptr : &bucket_->entries[it->second];
}

ShardedMap::Entry* ShardedMap::Shard::Insert(base::Key128 key, const core::Meter& meter,
                                             core::Now now) {
  // Two looked at per insertion: what has expired goes faster than newcomers come.
  for (int i = 0; i < 2 && !bucket_->entries.empty(); ++i) {
    const uint32_t position = bucket_->NextPosition();
    if (!bucket_->StandingAt(position, now).full) continue;
    bucket_->EraseAt(position);
    budget_->GiveBack();
  }
  return budget_->TryTake() ? InsertPaid(key, meter) : nullptr;
}

ShardedMap::Entry* ShardedMap::Shard::InsertPaid(base::Key128 key, const core::Meter& meter) {
  bucket_->index.emplace(key, static_cast<uint32_t>(bucket_->entries.size()));
  return &bucket_->entries.emplace_back(Entry{key, &meter, {}});
}

void ShardedMap::Shard::Remove(base::Key128 key) { bucket_->EraseAt(bucket_->index.at(key)); }

void ShardedMap::Shard::Erase(base::Key128 key) {
  if (Find(key) == nullptr) return;
  Remove(key);
  budget_->GiveBack();
}

bool ShardedMap::EvictOne(base::Key128 near, core::Now now) {
  constexpr size_t kLooks = 64;
  size_t looked = 0;
  for (int i = 0; i < kShards && looked < kLooks; ++i) {
    Bucket& bucket = buckets_[(near.hi + static_cast<uint64_t>(i)) % kShards];
    const std::scoped_lock lock(bucket.mutex);
    std::optional<uint32_t> victim;
    double victim_share = 0;
    const size_t looks = std::min(bucket.entries.size(), kLooks / 2);
    for (size_t look = 0; look < looks; ++look, ++looked) {
      const uint32_t position = bucket.NextPosition();
      const Standing standing = bucket.StandingAt(position, now);
      if (!standing.full && standing.exhausted) continue;
      const double share = standing.full ? 0 : standing.used_share;
      if (!victim || share < victim_share) victim = position, victim_share = share;
      if (standing.full) break;
    }
    if (!victim) continue;
    bucket.EraseAt(*victim);
    budget_->GiveBack();
    return true;
  }
  return false;
}

int64_t ShardedMap::CountLive(core::Now now) const {
  int64_t live = 0;
  for (int i = 0; i < kShards; ++i) {
    const Bucket& bucket = buckets_[i];
    const std::scoped_lock lock(bucket.mutex);
    for (uint32_t position = 0; position < bucket.entries.size(); ++position) {
      live += bucket.StandingAt(position, now).full ? 0 : 1;
    }
  }
  return live;
}

int64_t ShardedMap::MemoryBytes() const {
  int64_t bytes = 0;
  for (int i = 0; i < kShards; ++i) {
    const Bucket& bucket = buckets_[i];
    const std::scoped_lock lock(bucket.mutex);
    bytes += static_cast<int64_t>(bucket.entries.size() * sizeof(Entry) +
                                  bucket.index.bucket_count() * (sizeof(base::Key128) + 8));
  }
  return bytes;
}

}  // namespace weir::store
