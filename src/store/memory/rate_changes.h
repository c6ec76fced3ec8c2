// Which counters went from one rate to another, and when: a settle must know of a rate that came
// and went while its call was open, and a counter has no room to remember it.
//
//   changes.Note(from, to, spread, now_ns);                 // With every state that is carried
//   over. const core::Meter* other = changes.Since(meter, spread, receipt.at_ns);
//
// Counters share a fixed number of cells by their hash. Where two meet in one, a settle takes the
// other's change for its own and gives back too little, never too much.
//
// Thread safety: any thread, lock-free. A change is noted before the state that it led to is
// written, so whoever sees that state sees the note.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/meter.h"
#include "store/memory/meter_registry.h"

namespace weir::store {

inline bool IsBucket(const core::Meter& meter) {
  return meter.form() == core::Form::kTickBucket || meter.form() == core::Form::kExactBucket;
}

// Whether time gives units back faster under `a`. REQUIRES: both are buckets.
inline bool RefillsFaster(const core::Meter& a, const core::Meter& b) {
  const Rate& x = a.spec().rate;
  const Rate& y = b.spec().rate;
  return core::Int128{x.units} * y.period.count() > core::Int128{y.units} * x.period.count();
}

// Whether a charge stands as long under the one as under the other: buckets refill as fast, windows
// begin and end together. Logs and leases keep their own times under any limit.
inline bool KeepsTime(const core::Meter& a, const core::Meter& b) {
  if (a.algorithm() != b.algorithm()) return false;
  if (IsBucket(a) && IsBucket(b)) return !RefillsFaster(a, b) && !RefillsFaster(b, a);
  if (a.form() == core::Form::kLog || a.form() == core::Form::kParallel) return true;
  const core::MeterSpec& x = a.spec();
  const core::MeterSpec& y = b.spec();
  if (x.alignment != y.alignment) return false;
  if (x.alignment != core::Alignment::kNone) return x.timezone == y.timezone;
  return x.rate.period == y.rate.period && x.strict == y.strict && x.buckets == y.buckets;
}

class RateChanges {
 public:
  // `meters` is not owned and outlives this.
  explicit RateChanges(const MeterRegistry* meters)
      : meters_(meters), cells_(new std::atomic<uint64_t>[2 * kCells]{}) {}

  // The state of a key with these hash bits (NarrowTable::Spread) goes over.
  void Note(const core::Meter& from, const core::Meter& to, uint64_t spread, int64_t now_ns) {
    if (KeepsTime(from, to)) return;
    std::atomic<uint64_t>& cell = CellOf(from, spread);
    uint64_t seen = cell.load(std::memory_order_relaxed);
    for (;;) {
      const uint64_t at =
          std::max(seen >> kIdBits, (static_cast<uint64_t>(now_ns) >> kTickBits) + 1);
      uint64_t id = seen & kIdMask;
      if (id == 0 || (IsBucket(from) && RefillsFaster(from, MeterOf(id)))) id = from.id();
      const uint64_t next = at << kIdBits | id;
      if (next == seen) return;
      // Release: the state that is written next carries the note to whoever reads it.
      if (cell.compare_exchange_weak(seen, next, std::memory_order_release,
                                     std::memory_order_relaxed))
        return;
    }
  }

  // Null: no such counter has changed its rate since `at_ns`. Else, among buckets, the fastest that
  // one of them ever came from; among windows and counters, any.
  const core::Meter* Since(const core::Meter& meter, uint64_t spread, int64_t at_ns) const {
    const uint64_t seen = CellOf(meter, spread).load(std::memory_order_acquire);
    if (seen == 0) return nullptr;
    const auto noted_ns = static_cast<int64_t>(seen >> kIdBits << kTickBits);
    return noted_ns + kSlackNs < at_ns ? nullptr : &MeterOf(seen & kIdMask);
  }

  static constexpr int64_t MemoryBytes() { return 2 * kCells * sizeof(std::atomic<uint64_t>); }

  // Loops read their clocks once per tick: a change that came after a charge may bear an earlier
  // time.
  static constexpr int64_t kSlackNs = 1'000'000'000;

 private:
  static constexpr int kCellBits = 13;
  static constexpr size_t kCells = size_t{1} << kCellBits;
  // A cell: the time in ticks of about a millisecond, rounded up, above a meter's id.
  static constexpr int kTickBits = 20;
  static constexpr int kIdBits = 16;
  static constexpr uint64_t kIdMask = (uint64_t{1} << kIdBits) - 1;

  const core::Meter& MeterOf(uint64_t id) const { return meters_->Get(static_cast<uint16_t>(id)); }
  // Buckets apart from all else, so that the meter of a cell compares with its like.
  std::atomic<uint64_t>& CellOf(const core::Meter& meter, uint64_t spread) const {
    return cells_[(IsBucket(meter) ? 0 : kCells) + (spread >> (64 - kCellBits))];
  }

  const MeterRegistry* meters_;
  std::unique_ptr<std::atomic<uint64_t>[]> cells_;
};

}  // namespace weir::store
