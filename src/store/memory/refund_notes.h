// What came back of each token bucket while others of its charges were open (core/refund_total.h),
// and which counters were forgotten while charges were, for as long as one of those charges can
// still be of account.
//
//   RefundNotes::Note note = notes.Lock(key, now_ns);     // Held until it goes out of scope.
//   receipt.mark = note.total.mark();             // With a charge under the same lock; or
//   note.Use(meter);
//   back = RefundOpen(bucket, &state, &note.total, receipt, units, now_ns);
//   note.Keep(until_ns, now_ns);                  // Until then time has not given all of it back.
//
// Thread safety: any thread. A thread holds one Note at a time, and takes it before the shard of a
// map. Memory: a note for each bucket with refunds in its last capacity of time and each counter
// that was reset, at most about max_keys.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/keyed_hash.h"
#include "core/meter.h"
#include "core/refund_total.h"

namespace weir::store {

class RefundNotes {
 private:
  struct Kept {
    core::RefundTotal total;
    const core::Meter* meter = nullptr;
    int64_t until_ns = 0;
  };
  // Keys are hashes already.
  struct HashOfKey {
    size_t operator()(base::Key128 key) const { return key.lo; }
  };
  struct alignas(64) Shard {
    std::mutex mutex;
    std::unordered_map<base::Key128, Kept, HashOfKey> notes;
    int64_t forgotten = 0;  // The largest total that was dropped: new ones begin there.
    size_t sweep_at = 64;   // Notes, when those that are over are dropped.
  };

 public:
  explicit RefundNotes(int64_t max_keys);

  class Note {
   public:
    core::RefundTotal total;
    // False: there is no room to remember a refund, so none may be made.
    bool has_room() const { return has_room_; }
    // Refunds under another meter than the last ones: places do not compare.
    void Use(const core::Meter* meter);
    void Keep(int64_t until_ns, int64_t now_ns);

   private:
    friend class RefundNotes;
    Note(Shard* shard, base::Key128 key, size_t room, int64_t now_ns);
    Shard* shard_;
    base::Key128 key_;
    std::unique_lock<std::mutex> lock_;
    const core::Meter* meter_ = nullptr;
    bool has_room_ = true;
  };
  Note Lock(base::Key128 key, int64_t now_ns) { return {&ShardOf(key), key, room_, now_ns}; }

  int64_t MemoryBytes() const;

 private:
  static constexpr size_t kShards = 256;
  Shard& ShardOf(base::Key128 key) const { return shards_[key.hi % kShards]; }

  std::unique_ptr<Shard[]> shards_;
  size_t room_;  // Of each shard.
};

}  // namespace weir::store
