// Lock-free, bounded hash table for counters whose state is one int64 (packed_state.h).
//
//   NarrowTable table(/*max_keys=*/1'000'000, &budget, &registry, &changes);
//   auto found = table.Update(meter, key, now, [&](int64_t state, int64_t* next) {
//     *next = state;
//     return ChargePacked(meter, next, 1, now, NarrowTable::Spread(key), &receipt).allowed;   //
//     true: write *next
//   });
//   if (found == NarrowTable::Found::kNo) table.Insert(meter, key, now, first_state);
//
// Layout. Lines of 64 bytes, each of four slots {tag, state} of 16 bytes, which are replaced only
// by a 16-byte compare-and-swap. tag = 1 | 46 bits of the key's hash | unverified | 16-bit meter
// id. A key lives in one of kWindow adjacent lines from its home line on. 38 bytes per key of
// max_keys, mapped at construction, touched as keys come.
//
// Invariants.
//  1. A slot changes only as a whole (CasSlot), so whoever reads one (LoadSlot) sees a state with
//  the key and the meter
//     that it was written for. A compare-and-swap on what was read fails when anything changed
//     since; states that come back (a charge that was undone) mean the same again, so such a change
//     is harmless, and unverified entries, where it would not be, never come back (4).
//  2. A slot that was used is never zero again: entries are replaced in place, or become
//  tombstones. An entry goes into
//     a line at or before the first line of its window that has a zero slot. So a line with a zero
//     slot ends a search: had the key been put behind it, the line would have been full before, and
//     would be still.
//  3. Charges and verifications write verified entries only. A key has at most one verified entry
//  (6).
//  4. An entry starts unverified, with a number in place of a state that no other entry of this
//  table ever had. So a
//     compare-and-swap on an unverified entry applies to that very insertion, never to a later one
//     in the same slot.
//  5. Whoever verifies an entry x scanned the whole window after having seen x in it (or put it
//  there), found no
//     verified entry of the key, and had turned every other unverified one into a tombstone before
//     x is verified. Insertions are sequentially consistent, and so are the loads of a scan: of two
//     insertions each followed by a scan, at least one scan sees the other's entry.
//  6. At most one verified entry: let x and y both be verified, y last. Neither verifier removed
//  the other entry, so
//     y's scan (5) did not see x: x was put there after that scan passed its slot, and so after y
//     was put there. Then the scan that verified x came after both insertions and saw y: verified,
//     in which case x is not verified; or unverified, in which case y became a tombstone before x
//     was verified, and by (4) was never verified. Only the lowest unverified entry of a scan is
//     helped and the others are removed, so two inserters never remove each other.
//  7. A charge that creates an entry is part of the compare-and-swap that verifies it, so exactly
//  one thread knows that
//     its charge stands; all others find the entry and charge it. Hence racing first calls never
//     both pass a limit of 1.
//  8. Entries are replaced when they are at full quota, or, when there is no room, when they are
//  the nearest to it in
//     their window; never when exhausted or unverified. The compare-and-swap names the state that
//     this was judged on, so an entry that is charged meanwhile stays.
//  9. The budget is taken before an entry goes into a zero slot or a tombstone, and given back
//  after one becomes a
//     tombstone, so entries never outnumber max_keys. An entry that leaves for the other table, or
//     comes from there, brings its place of the budget with it: no newcomer can take it on the way.
//
// Progress: lock-free. Every retry follows another thread's successful compare-and-swap.
//
// Thread safety: any thread may call any method.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/keyed_hash.h"
#include "core/meter.h"
#include "store/memory/key_budget.h"
#include "store/memory/meter_registry.h"
#include "store/memory/narrow_slot.h"
#include "store/memory/packed_state.h"
#include "store/memory/rate_changes.h"

namespace weir::store {

class NarrowTable {
 public:
  enum class Found : uint8_t { kNo, kYes };
  enum class Inserted : uint8_t {
    kYes,
    kFound,     // The key has an entry by now: update that.
    kNoBudget,  // There is a slot, and neither budget for it nor an entry to replace.
    kFull,      // Every entry that could be replaced is exhausted.
  };

  // Nothing is owned, all outlive the table. Aborts when the memory cannot be mapped.
  NarrowTable(int64_t max_keys, KeyBudget* budget, const MeterRegistry* meters,
              RateChanges* changes);
  ~NarrowTable();
  NarrowTable(const NarrowTable&) = delete;
  NarrowTable& operator=(const NarrowTable&) = delete;

  // Hash bits that are known of every entry too, to shift fixed windows by.
  static uint64_t Spread(base::Key128 key) { return SpreadOf(key.lo); }

  // Starts loading the key's line, for callers with several decisions at hand.
  void Prefetch(base::Key128 key) const { __builtin_prefetch(HomeLine(key), 1); }

  // Calls step(state, &next) on the key's state under `meter` (carried over when another meter
  // wrote it) until its write succeeds, or it returns false: nothing to write. Does not allocate.
  // REQUIRES: step has no effect that must not happen twice.
  template <typename StepFn>
  [[gnu::always_inline]] Found Update(const core::Meter& meter, base::Key128 key, core::Now now,
                                      StepFn&& step) {
    for (;;) {
      Word* slot = Find(key);
      if (slot == nullptr) return Found::kNo;
      const Word seen = LoadSlot(slot);
      if (!IsVerified(seen.tag, key)) continue;  // Replaced since.
      int64_t state = seen.state;
      const bool carried = MeterId(seen.tag) != meter.id();
      if (carried) [[unlikely]]
        state = CarryOver(seen, meter, now);
      int64_t next = state;
      // A state that was carried over is written even when the step has nothing to write: from now
      // on it changes at the new rate, and a wait that was announced by that rate is kept.
      if (!step(state, &next)) next = state;
      const Word desired{VerifiedTag(meter, key), next};
      if (desired == seen || CasSlot(slot, seen, desired)) return Found::kYes;
    }
  }

  // Update where the common case is all that matters: the entry is in its home line and was written
  // under this very meter. True: done, by one compare-and-swap or, where the step had nothing to
  // write, by none. False: nothing was done; Update does it. With fewer instructions than Update's
  // a processor loads more of the table's lines ahead at once.
  template <typename StepFn>
  [[gnu::always_inline]] bool UpdateAtHome(const core::Meter& meter, base::Key128 key,
                                           StepFn&& step) {
    const uint64_t tag = VerifiedTag(meter, key);
    Line* const line = HomeLine(key);
    const unsigned match = MatchTags<0>(line->slots, tag);
    if (match == 0) [[unlikely]]
      return false;
    Word* const slot = &line->slots[std::countr_zero(match)];
    const int64_t state = PeekState(slot);
    int64_t next = state;
    if (step(state, &next)) [[likely]]
      return CasSlot(slot, {tag, state}, {tag, next});
    const Word seen = LoadSlot(slot);  // Of one entry for certain, as an answer needs it.
    return seen.tag == tag && !step(seen.state, &next);
  }

  // The key's state under `meter`. Writes nothing.
  Found Read(const core::Meter& meter, base::Key128 key, core::Now now, int64_t* state) const;

  // The meter that the key's state was written under, or nullptr.
  const core::Meter* MeterOf(base::Key128 key) const;

  // Makes an entry with this state, unless the key has one or there is no room. `*paid`: the caller
  // hands over a place of the budget that it holds; still true afterwards: it was not needed and is
  // the caller's again.
  Inserted Insert(const core::Meter& meter, base::Key128 key, core::Now now, int64_t state,
                  bool* paid);
  Inserted Insert(const core::Meter& meter, base::Key128 key, core::Now now, int64_t state) {
    bool paid = false;
    return Insert(meter, key, now, state, &paid);
  }

  // Removes the key's entry and says what it held. Its place of the budget is the caller's.
  Found Extract(base::Key128 key, const core::Meter** meter, int64_t* state);

  // Removes one entry somewhere that is at full quota or near it, for another table that shares the
  // budget. Looks at a bounded number of lines.
  bool EvictOne(core::Now now);

  // Entries that are not at full quota. Scans the table.
  int64_t CountLive(core::Now now) const;
  size_t MemoryBytes() const { return line_count_ * sizeof(Line); }

 private:
  static constexpr int kSlots = 4;
  // At the largest load nobody finds them full: of ten million keys that were put at random into
  // this layout, the farthest was 8 lines from home.
  static constexpr int kWindow = 16;
  static constexpr uint64_t kUnverified = uint64_t{1} << 16;
  static constexpr uint64_t kHashMask = ~((uint64_t{1} << 17) - 1);
  static constexpr uint64_t kEntry =
      uint64_t{1} << 63;  // Tells an entry from a zero slot and from a tombstone.
  static constexpr Word kTombstone{kUnverified, 0};  // Meter id 0, which no entry has.

  struct alignas(64) Line {
    Word slots[kSlots];
  };
  struct Scan;

  static uint16_t MeterId(uint64_t tag) { return static_cast<uint16_t>(tag); }
  static uint64_t HashBits(base::Key128 key) { return (key.lo & kHashMask) | kEntry; }
  static uint64_t SpreadOf(uint64_t tag) { return (tag & kHashMask) << 1; }
  static uint64_t VerifiedTag(const core::Meter& meter, base::Key128 key) {
    return HashBits(key) | meter.id();
  }
  static bool IsVerified(uint64_t tag, base::Key128 key) {
    return (tag ^ HashBits(key)) >> 16 == 0;
  }

  Line* HomeLine(base::Key128 key) const {
    return lines_ + static_cast<size_t>((core::Uint128{key.hi} * home_lines_) >> 64);
  }
  // The key's verified entry.
  Word* Find(base::Key128 key) const {
    const uint64_t tag = HashBits(key);
    Line* line = HomeLine(key);
    for (int i = 0; i < kWindow; ++i, ++line) {
      const unsigned match = MatchTags<16>(line->slots, tag);
      if (match != 0) [[likely]]
        return &line->slots[std::countr_zero(match)];
      // Every used slot has bits above the low 16 (a tombstone's is kUnverified), so this finds
      // zero slots only.
      if (MatchTags<16>(line->slots, 0) != 0) return nullptr;  // Invariant 2.
    }
    return nullptr;
  }
  int64_t Carry(const Word& seen, const core::Meter& meter, core::Now now) const;
  // For a state that is written then: settles will know of it.
  int64_t CarryOver(const Word& seen, const core::Meter& meter, core::Now now);
  Standing StandingOf(const Word& word, core::Now now) const;
  Scan ScanWindow(base::Key128 key, core::Now now) const;
  void Judge(Word* slot, const Word& word, core::Now now, Scan* scan) const;
  bool Bury(Word* slot, const Word& seen);
  Inserted Place(const Scan& scan, const Word& entry, bool* paid, Word** placed);

  Line* lines_ = nullptr;
  size_t home_lines_ = 0;
  size_t line_count_ = 0;
  KeyBudget* budget_;
  const MeterRegistry* meters_;
  RateChanges* changes_;
  alignas(64) std::atomic<uint64_t> next_insertion_{1};
  std::atomic<uint64_t> evict_cursor_{0};
};

}  // namespace weir::store
