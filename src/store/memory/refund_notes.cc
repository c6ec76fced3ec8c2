#include "store/memory/refund_notes.h"

#include <algorithm>

namespace weir::store {

RefundNotes::RefundNotes(int64_t max_keys)
    : shards_(new Shard[kShards]),
      room_(static_cast<size_t>(max_keys) / kShards + 16) {}  // Keys do not spread evenly.

RefundNotes::Note::Note(Shard* shard, base::Key128 key, size_t room, int64_t now_ns)
    : shard_(shard), key_(key), lock_(shard->mutex) {
  const auto found = shard->notes.find(key);
  if (found != shard->notes.end()) {
    const Kept& kept = found->second;
    const bool over = kept.until_ns <= now_ns;
    total = over ? core::RefundTotal(kept.total.mark()) : kept.total;
    meter_ = kept.meter;
  } else {
    total = core::RefundTotal(shard->forgotten);
    has_room_ = shard->notes.size() < room;
  }
}

void RefundNotes::Note::Use(const core::Meter* meter) {
  if (meter_ != meter) total.ForgetPlaces();
  meter_ = meter;
}

void RefundNotes::Note::Keep(int64_t until_ns, int64_t now_ns) {
  Kept& kept = shard_->notes[key_];
  kept = {total, meter_, std::max(kept.until_ns, until_ns)};
  if (shard_->notes.size() < shard_->sweep_at) return;
  std::erase_if(shard_->notes, [&](const auto& entry) {
    if (entry.second.until_ns > now_ns) return false;
    shard_->forgotten = std::max(shard_->forgotten, entry.second.total.mark());
    return true;
  });
  shard_->sweep_at = std::max<size_t>(64, 2 * shard_->notes.size());
}

int64_t RefundNotes::MemoryBytes() const {
  constexpr size_t kNodeBytes = sizeof(Kept) + sizeof(base::Key128) + 3 * sizeof(void*);
  size_t bytes = kShards * sizeof(Shard);
  for (size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    bytes += shards_[i].notes.size() * kNodeBytes;
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace weir::store
