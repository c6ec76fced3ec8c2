// What a store of counters offers: charges decided all or nothing, settled, released, reset.
//
// A store is a class with the operations below. MemoryStore (store/memory) answers inline and is
// called directly, with no virtual call between the door and the counter; a store over the network
// takes the same values and answers later. testing/store_contract.h holds every implementation to
// the same behaviour.
//
//   Result<const core::Meter*> Intern(const core::MeterSpec& spec);
//   bool Decide(std::span<const Charge> charges, std::span<Outcome> outcomes, core::Now now, Mode
//   mode); core::Step Peek(const core::Meter& meter, Key128 key, int64_t cost, core::Now now); bool
//   Settle(const core::Meter& meter, Key128 key, core::Receipt receipt, int64_t reserved, int64_t
//   actual,
//               core::Now now);
//   bool Release(const core::Meter& meter, Key128 key, core::Receipt receipt, int64_t reserved,
//   core::Now now); bool Renew(const core::Meter& meter, Key128 key, core::Receipt receipt, int64_t
//   ttl_ns, core::Now now); bool Reset(const core::Meter& meter, Key128 key, core::Now now);
//   int64_t TrackedKeys(core::Now now);
//
// Thread safety: plain values here; each store says its own.
#pragma once

#include <cstdint>

#include "base/keyed_hash.h"
#include "core/meter.h"
#include "core/step.h"

namespace weir::store {

using base::Key128;

// One limit's part in one call. `meter` comes from this store's Intern. The key names the counter
// under every rate the limit ever has: a charge whose meter differs from the one that wrote the
// state carries the used units over. What must start afresh when it changes (algorithm, unit,
// attributes) belongs into the key.
struct Charge {
  const core::Meter* meter = nullptr;
  Key128 key;
  int64_t cost = 1;  // 0 to kMaxUnits; 0 peeks.
  bool enforced =
      true;  // false: shadow; charged when it and the whole decision pass, and never denying.
  // Parallel meters only: the lease to open, unique per key, and how long it lasts unless released
  // or renewed. Without an id (0) a parallel limit is tested, not charged.
  uint64_t lease_id = 0;
  int64_t lease_ttl_ns = 0;
};

struct Outcome {
  core::Step step;        // `allowed` is this limit's own answer, whatever the others say.
  core::Receipt receipt;  // For Settle, Release and Renew; meaningful when `charged`.
  bool charged = false;   // The cost stands in the counter.
  bool tracked = true;    // false: the store was full (on_full decided).
};

enum class Mode : uint8_t {
  kCharge,
  kReserve,  // The same, for charges that may be settled later for less.
  kPeek,     // Says whether the cost would pass; changes nothing.
};

// What a newcomer gets that finds no room: every entry it could replace is exhausted.
enum class OnFull : uint8_t {
  kClosed,  // Denied; asking again after the announced wait may find room.
  kOpen,    // Admitted untracked.
};

}  // namespace weir::store
