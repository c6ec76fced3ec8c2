#include "store/memory/narrow_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace weir::store {

#if defined(__x86_64__)
const bool kAtomicVectorLoad = [] {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx") != 0;
}();
#else
const bool kAtomicVectorLoad = false;
#endif

// What one pass over a key's window saw.
struct NarrowTable::Scan {
  struct Seen {
    Word* slot = nullptr;
    Word word;
  };
  bool verified = false;
  // In order of position; more than so many racing inserters of one key wait for the next pass.
  static constexpr int kMaxUnverified = 8;
  bool more_unverified = false;
  int unverified_count = 0;
  Seen unverified[kMaxUnverified];
  Seen free;     // The first zero slot or tombstone.
  Seen expired;  // The first entry at full quota.
  Seen victim;   // The entry nearest to full quota that is not exhausted.
  double victim_share = 0;
};

NarrowTable::NarrowTable(int64_t max_keys, KeyBudget* budget, const MeterRegistry* meters,
                         RateChanges* changes)
    : budget_(budget), meters_(meters), changes_(changes) {
  // 5 in 12 slots used at most: one key in 43 is not in its home line, and each of those costs a
  // mispredicted branch behind a cache miss. A small table is one window, so that every entry is in
  // everybody's reach.
  const size_t lines = static_cast<size_t>(max_keys) * 3 / 5 + 1;
  home_lines_ = lines <= kWindow ? 1 : lines;
  line_count_ = home_lines_ + kWindow - 1;
  void* memory = mmap(nullptr, MemoryBytes(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  madvise(memory, MemoryBytes(),
          MADV_HUGEPAGE);  // Advice: fewer TLB misses where the kernel grants it.
  lines_ = static_cast<Line*>(memory);
}

NarrowTable::~NarrowTable() { munmap(lines_, MemoryBytes()); }

int64_t NarrowTable::Carry(const Word& seen, const core::Meter& meter, core::Now now) const {
  return CarryPacked(meters_->Get(MeterId(seen.tag)), meter, seen.state, now, SpreadOf(seen.tag));
}

int64_t NarrowTable::CarryOver(const Word& seen, const core::Meter& meter, core::Now now) {
  changes_->Note(meters_->Get(MeterId(seen.tag)), meter, SpreadOf(seen.tag), now.mono_ns);
  return Carry(seen, meter, now);
}

Standing NarrowTable::StandingOf(const Word& word, core::Now now) const {
  return StandingOfPacked(meters_->Get(MeterId(word.tag)), word.state, now, SpreadOf(word.tag));
}

const core::Meter* NarrowTable::MeterOf(base::Key128 key) const {
  for (;;) {
    const Word* slot = Find(key);
    if (slot == nullptr) return nullptr;
    const Word seen = LoadSlot(slot);
    if (IsVerified(seen.tag, key)) return &meters_->Get(MeterId(seen.tag));
  }
}

NarrowTable::Found NarrowTable::Read(const core::Meter& meter, base::Key128 key, core::Now now,
                                     int64_t* state) const {
  for (;;) {
    const Word* slot = Find(key);
    if (slot == nullptr) return Found::kNo;
    const Word seen = LoadSlot(slot);
    if (!IsVerified(seen.tag, key)) continue;
    *state = MeterId(seen.tag) == meter.id() ? seen.state : Carry(seen, meter, now);
    return Found::kYes;
  }
}

void NarrowTable::Judge(Word* slot, const Word& word, core::Now now, Scan* scan) const {
  if (word.tag == 0 || word == kTombstone) {
    if (scan->free.slot == nullptr) scan->free = {slot, word};
    return;
  }
  if ((word.tag & kUnverified) != 0) return;  // In the making: neither state nor victim.
  const Standing standing = StandingOf(word, now);
  if (standing.full) {
    if (scan->expired.slot == nullptr) scan->expired = {slot, word};
  } else if (!standing.exhausted &&
             (scan->victim.slot == nullptr || standing.used_share < scan->victim_share)) {
    scan->victim = {slot, word};
    scan->victim_share = standing.used_share;
  }
}

NarrowTable::Scan NarrowTable::ScanWindow(base::Key128 key, core::Now now) const {
  Scan scan;
  Line* line = HomeLine(key);
  for (int i = 0; i < kWindow; ++i, ++line) {
    bool open = false;
    for (Word& slot : line->slots) {
      // The tag by a sequentially consistent load (invariant 5), then the whole slot: never older
      // than the tag.
      if (LoadTag(&slot) == 0) {
        open = true;
        Judge(&slot, Word{}, now, &scan);
        continue;
      }
      const Word word = LoadSlot(&slot);
      if (((word.tag ^ HashBits(key)) & kHashMask) == 0) {
        if ((word.tag & kUnverified) == 0) {
          scan.verified = true;
        } else if (scan.unverified_count == Scan::kMaxUnverified) {
          scan.more_unverified = true;
        } else {
          scan.unverified[scan.unverified_count++] = {&slot, word};
        }
        continue;
      }
      Judge(&slot, word, now, &scan);
    }
    if (open) break;  // Invariant 2.
  }
  return scan;
}

bool NarrowTable::Bury(Word* slot, const Word& seen) {
  if (!CasSlot(slot, seen, kTombstone)) return false;
  budget_->GiveBack();
  return true;
}

// Puts an unverified entry where the scan found room. kFound here means "look again".
NarrowTable::Inserted NarrowTable::Place(const Scan& scan, const Word& entry, bool* paid,
                                         Word** placed) {
  Scan::Seen target = scan.expired;
  const bool free_first =
      scan.free.slot != nullptr && (target.slot == nullptr || scan.free.slot < target.slot);
  if (free_first && (*paid || budget_->TryTake())) {
    if (CasSlot(scan.free.slot, scan.free.word, entry)) {
      *paid = false;
      *placed = scan.free.slot;
      return Inserted::kYes;
    }
    if (!*paid) budget_->GiveBack();
    return Inserted::kFound;
  }
  if (target.slot == nullptr) target = scan.victim;
  if (target.slot == nullptr) {
    return scan.free.slot != nullptr ? Inserted::kNoBudget : Inserted::kFull;
  }
  if (!CasSlot(target.slot, target.word, entry)) return Inserted::kFound;
  *placed = target.slot;
  return Inserted::kYes;
}

NarrowTable::Inserted NarrowTable::Insert(const core::Meter& meter, base::Key128 key, core::Now now,
                                          int64_t state, bool* paid) {
  const uint64_t verified_tag = VerifiedTag(meter, key);
  // The unverified entry that was in its slot before the scan at hand began, as invariant 5 wants
  // it.
  std::optional<Word> known;
  for (;;) {
    const Scan scan = ScanWindow(key, now);
    if (scan.verified) {
      // Nobody's charge is in an unverified entry, so any may be removed; this thread's own is
      // among them.
      for (int i = 0; i < scan.unverified_count; ++i) {
        Bury(scan.unverified[i].slot, scan.unverified[i].word);
      }
      return Inserted::kFound;
    }
    if (scan.unverified_count > 0) {
      const Scan::Seen& first = scan.unverified[0];
      if (known != first.word) {
        known = first.word;
        continue;
      }
      bool alone = !scan.more_unverified;
      for (int i = 1; i < scan.unverified_count; ++i) {
        alone &= Bury(scan.unverified[i].slot, scan.unverified[i].word);
      }
      if (alone && CasSlot(first.slot, first.word, {verified_tag, state})) return Inserted::kYes;
      continue;
    }
    // Relaxed: only that no number is given out twice matters.
    const Word entry{verified_tag | kUnverified,
                     static_cast<int64_t>(next_insertion_.fetch_add(1, std::memory_order_relaxed))};
    Word* placed = nullptr;
    const Inserted result = Place(scan, entry, paid, &placed);
    if (result == Inserted::kNoBudget || result == Inserted::kFull) return result;
    if (placed != nullptr) known = entry;
  }
}

NarrowTable::Found NarrowTable::Extract(base::Key128 key, const core::Meter** meter,
                                        int64_t* state) {
  for (;;) {
    Word* slot = Find(key);
    if (slot == nullptr) return Found::kNo;
    const Word seen = LoadSlot(slot);
    if (!IsVerified(seen.tag, key)) continue;
    if (!CasSlot(slot, seen, kTombstone)) continue;
    *meter = &meters_->Get(MeterId(seen.tag));
    *state = seen.state;
    return Found::kYes;
  }
}

bool NarrowTable::EvictOne(core::Now now) {
  constexpr size_t kLines = 256;  // 1,024 slots, a few microseconds.
  const size_t start =
      static_cast<size_t>(evict_cursor_.fetch_add(kLines, std::memory_order_relaxed) % line_count_);
  Scan scan;
  for (size_t i = 0; i < std::min(kLines, line_count_) && scan.expired.slot == nullptr; ++i) {
    for (Word& slot : lines_[(start + i) % line_count_].slots) {
      if (LoadTag(&slot) != 0) Judge(&slot, LoadSlot(&slot), now, &scan);
    }
  }
  const Scan::Seen& target = scan.expired.slot != nullptr ? scan.expired : scan.victim;
  return target.slot != nullptr && Bury(target.slot, target.word);
}

int64_t NarrowTable::CountLive(core::Now now) const {
  int64_t live = 0;
  for (size_t i = 0; i < line_count_; ++i) {
    for (const Word& slot : lines_[i].slots) {
      if (LoadTag(&slot) == 0) continue;
      const Word word = LoadSlot(&slot);
      if (word.tag == 0 || (word.tag & kUnverified) != 0) continue;
      live += StandingOf(word, now).full ? 0 : 1;
    }
  }
  return live;
}

}  // namespace weir::store
