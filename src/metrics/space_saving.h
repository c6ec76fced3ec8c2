// The most frequent keys of a stream in fixed memory: the Space-Saving sketch (Metwally, Agrawal,
// El Abbadi, "Efficient computation of frequent and top-k elements in data streams", ICDT 2005).
//
// With capacity k and a total weight of W: a tracked key's true weight lies in [count - error,
// count], no error exceeds W / k, and every key whose true weight exceeds W / k is tracked.
//
// Keys are 128-bit keyed hashes; two keys with one hash would be counted as one, which nobody can
// arrange. Thread safety: none. Allocates once, when made. A touch costs one hash probe and a few
// heap steps.
//
//   SpaceSaving<std::string> sketch(256);
//   sketch.Touch(key, 1, [&](std::string& name) { name = client; });  // Named when new.
//   for (const auto& entry : sketch.entries()) Show(entry.payload, entry.count, entry.error);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/keyed_hash.h"

namespace weir::metrics {

template <typename Payload>
class SpaceSaving {
 public:
  struct Entry {
    base::Key128 key;
    uint64_t count = 0;  // At least the true weight.
    uint64_t error = 0;  // count - error is at most the true weight.
    Payload payload{};
  };

  // REQUIRES: 1 <= capacity <= 30000
  explicit SpaceSaving(size_t capacity) : capacity_(capacity) {
    size_t buckets = 4;
    while (buckets < capacity * 2) buckets *= 2;
    index_.assign(buckets, kNone);
    entries_.reserve(capacity);
    heap_.reserve(capacity);
    place_.reserve(capacity);
  }

  // Adds `weight` to the key. `name(payload)` fills the payload when the key is new or takes over
  // an entry. Returns the key's payload, valid until the next call.
  template <typename Name>
  Payload& Touch(base::Key128 key, uint64_t weight, Name&& name) {
    total_ += weight;
    uint16_t entry = Find(key);
    if (entry == kNone) entry = Admit(key, std::forward<Name>(name));
    entries_[entry].count += weight;
    SiftDown(place_[entry]);
    return entries_[entry].payload;
  }

  // In no order. Valid until the next Touch.
  std::span<const Entry> entries() const { return entries_; }
  // The most that a key which is not tracked can have: 0 while there is room.
  uint64_t untracked_max() const {
    return entries_.size() < capacity_ ? 0 : entries_[heap_[0]].count;
  }
  uint64_t total() const { return total_; }
  size_t capacity() const { return capacity_; }

 private:
  static constexpr uint16_t kNone = 0xffff;

  size_t Home(base::Key128 key) const { return key.lo & (index_.size() - 1); }

  uint16_t Find(base::Key128 key) const {
    for (size_t at = Home(key);; at = (at + 1) & (index_.size() - 1)) {
      if (index_[at] == kNone || entries_[index_[at]].key == key) return index_[at];
    }
  }

  template <typename Name>
  uint16_t Admit(base::Key128 key, Name&& name) {
    uint16_t entry;
    if (entries_.size() < capacity_) {
      entry = static_cast<uint16_t>(entries_.size());
      entries_.push_back(Entry{.key = key});
      heap_.push_back(entry);
      place_.push_back(static_cast<uint16_t>(heap_.size() - 1));
      SiftUp(heap_.size() - 1);
    } else {
      entry = heap_[0];  // The least count: the newcomer inherits it as its error.
      Erase(entries_[entry].key);
      entries_[entry].key = key;
      entries_[entry].error = entries_[entry].count;
    }
    Insert(key, entry);
    name(entries_[entry].payload);
    return entry;
  }

  void Insert(base::Key128 key, uint16_t entry) {
    size_t at = Home(key);
    while (index_[at] != kNone) at = (at + 1) & (index_.size() - 1);
    index_[at] = entry;
  }

  // Removes by moving later entries of the probe run back, so that no tombstones gather.
  void Erase(base::Key128 key) {
    const size_t mask = index_.size() - 1;
    size_t hole = Home(key);
    while (entries_[index_[hole]].key != key) hole = (hole + 1) & mask;
    for (size_t at = (hole + 1) & mask; index_[at] != kNone; at = (at + 1) & mask) {
      const size_t home = Home(entries_[index_[at]].key);
      if (((at - home) & mask) >= ((at - hole) & mask)) {
        index_[hole] = index_[at];
        hole = at;
      }
    }
    index_[hole] = kNone;
  }

  uint64_t CountAt(size_t place) const { return entries_[heap_[place]].count; }

  void Swap(size_t a, size_t b) {
    std::swap(heap_[a], heap_[b]);
    place_[heap_[a]] = static_cast<uint16_t>(a);
    place_[heap_[b]] = static_cast<uint16_t>(b);
  }

  void SiftUp(size_t place) {
    while (place > 0 && CountAt(place) < CountAt((place - 1) / 2)) {
      Swap(place, (place - 1) / 2);
      place = (place - 1) / 2;
    }
  }

  void SiftDown(size_t place) {
    for (size_t child = 2 * place + 1; child < heap_.size(); child = 2 * place + 1) {
      if (child + 1 < heap_.size() && CountAt(child + 1) < CountAt(child)) ++child;
      if (CountAt(place) <= CountAt(child)) return;
      Swap(place, child);
      place = child;
    }
  }

  const size_t capacity_;
  uint64_t total_ = 0;
  std::vector<Entry> entries_;
  std::vector<uint16_t> heap_;   // Entries, least count first.
  std::vector<uint16_t> place_;  // Of each entry in the heap.
  std::vector<uint16_t> index_;  // Open addressing from hash to entry; at most half full.
};

}  // namespace weir::metrics
