// Counters in this process: a lock-free table for state of one word, a sharded map for the rest.
//
//   MemoryStore store({.max_keys = 1'000'000});
//   const core::Meter* meter = *store.Intern(spec);                      // Once per limit.
//   Charge charge{.meter = meter, .key = key, .cost = 1};
//   Outcome outcome;
//   bool allowed = store.Decide({&charge, 1}, {&outcome, 1}, now, Mode::kCharge);
//
// Thread safety: every method may be called from any number of threads. Ownership: the store owns
// its meters and its memory (mapped at construction, touched as keys come). Decide takes no lock
// and allocates nothing when all its meters are packed (meter.h), except for a new key in a store
// that also knows rates that are not.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>
#include <span>

#include "core/meter.h"
#include "store/memory/key_budget.h"
#include "store/memory/meter_registry.h"
#include "store/memory/narrow_table.h"
#include "store/memory/rate_changes.h"
#include "store/memory/refund_notes.h"
#include "store/memory/sharded_map.h"
#include "store/store.h"

namespace weir::store {

struct MemoryStoreOptions {
  int64_t max_keys = 1'000'000;  // 1 to 2^32. Tracked keys never exceed it.
  OnFull on_full = OnFull::kClosed;
};

class MemoryStore {
 public:
  // Aborts when the memory cannot be mapped.
  explicit MemoryStore(const MemoryStoreOptions& options = {});
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  // The meter of these parameters, compiled on first sight; it lives as long as the store. Equal
  // specs give the same pointer. kInvalidArgument names the field; kResourceExhausted after 65,000
  // distinct specs.
  Result<const core::Meter*> Intern(const core::MeterSpec& spec) {
    return Intern(spec, MeterRegistry::kMaxMeters);
  }
  // The same for a rate that came with a call: these leave room for the policies'.
  Result<const core::Meter*> InternForCall(const core::MeterSpec& spec) {
    return Intern(spec, MeterRegistry::kMaxMetersOfCalls);
  }

  // Decides all charges together: true when every enforced one passes, and then each of them is
  // charged (and each shadow one that passes by itself); otherwise none is, and a denial leaves no
  // trace. A charge that another thread overtakes is undone, which can deny others for an instant
  // and never admits too many. REQUIRES: outcomes.size() == charges.size(); costs in [0,
  // kMaxUnits]; keys differ among the charges.
  bool Decide(std::span<const Charge> charges, std::span<Outcome> outcomes, core::Now now,
              Mode mode) {
    assert(charges.size() == outcomes.size());
    if (charges.size() == 1 && charges[0].meter->packed() && mode == Mode::kCharge) [[likely]] {
      ChargeOnePacked(charges[0], &outcomes[0], now);
      return outcomes[0].step.allowed || !charges[0].enforced;
    }
    return DecideAll(charges, outcomes, now, mode);
  }

  // Decide for one enforced charge of which only the answer matters: the same answer, without the
  // report that costs divisions. REQUIRES: 0 < cost <= kMaxUnits.
  bool Allow(const core::Meter& meter, Key128 key, int64_t cost, core::Now now) {
    if (meter.form() == core::Form::kTickBucket) [[likely]] {
      const core::TickBucket& bucket = meter.tick_bucket();
      bool allowed = false;
      const auto step = [&](int64_t state, int64_t* next) {
        *next = state;
        return allowed = bucket.Take(next, cost, now.mono_ns);
      };
      if (narrow_.UpdateAtHome(meter, key, step)) [[likely]]
        return allowed;
    }
    return AllowAnywhere(meter, key, cost, now);
  }

  // Starts loading what Decide will read for this charge: with a batch at hand, call it some
  // decisions ahead.
  void Prefetch(const Charge& charge) const { narrow_.Prefetch(charge.key); }

  // What a charge of `cost` would be told; changes nothing. Cost 0 reads the state.
  core::Step Peek(const core::Meter& meter, Key128 key, int64_t cost, core::Now now);

  // Replaces the reserved cost by the actual one. What was not used comes back as far as time has
  // not given it back already, at the fastest rate that may have held since; an overrun is charged
  // whatever remains, as debt. Ends a parallel
  // lease. A token bucket gives back all of it for charges of Mode::kReserve only (refund_total.h).
  // False: there was nothing to change (the counter is gone, or its window is over), or a debt
  // found the store full. Settle each receipt once; only leases can tell a second time.
  // REQUIRES: 0 <= reserved, actual <= kMaxUnits.
  bool Settle(const core::Meter& meter, Key128 key, core::Receipt receipt, int64_t reserved,
              int64_t actual, core::Now now);
  // Settle with nothing used.
  bool Release(const core::Meter& meter, Key128 key, core::Receipt receipt, int64_t reserved,
               core::Now now) {
    return Settle(meter, key, receipt, reserved, 0, now);
  }
  // Prolongs a parallel lease to `ttl_ns` from now. False when it has expired or was released.
  bool Renew(const core::Meter& meter, Key128 key, core::Receipt receipt, int64_t ttl_ns,
             core::Now now);

  // Forgets the counter: the full quota is there again, and nothing of what was charged before
  // comes back any more. False when there was none.
  bool Reset(const core::Meter& meter, Key128 key, core::Now now);

  // Keys whose quota is not full. Scans the tables: for metrics, not for the request path.
  int64_t TrackedKeys(core::Now now) const;
  // Slots of the bound that are taken, by full-quota entries that nobody has replaced yet too.
  // Cheap.
  int64_t TakenKeys() const { return budget_.taken(); }
  // The table as mapped (touched or not), and the map as it stands.
  int64_t MemoryBytes() const;

 private:
  // What a newcomer that finds no room is told to wait.
  static constexpr int64_t kFullRetryNs = 1'000'000'000;

  void ChargeOnePacked(const Charge& charge, Outcome* outcome, core::Now now) {
    const core::Meter& meter = *charge.meter;
    const auto step = [&](int64_t state, int64_t* next) {
      *next = state;
      outcome->step = ChargePacked(meter, next, charge.cost, now, NarrowTable::Spread(charge.key),
                                   &outcome->receipt);
      return outcome->step.allowed;
    };
    outcome->tracked = true;
    if (narrow_.Update(meter, charge.key, now, step) == NarrowTable::Found::kNo) {
      ChargeAbsentPacked(charge, outcome, now);
      return;
    }
    outcome->charged = outcome->step.allowed && charge.cost > 0;
  }
  Result<const core::Meter*> Intern(const core::MeterSpec& spec, int meters_max);
  [[gnu::cold]] bool AllowAnywhere(const core::Meter& meter, Key128 key, int64_t cost,
                                   core::Now now);
  void ChargeAbsentPacked(const Charge& charge, Outcome* outcome, core::Now now);
  bool MakeRoom(NarrowTable::Inserted why, Key128 key, core::Now now);
  void AnswerFull(const Charge& charge, Outcome* outcome) const;

  bool DecideAll(std::span<const Charge> charges, std::span<Outcome> outcomes, core::Now now,
                 Mode mode);
  void ChargeOne(const Charge& charge, Outcome* outcome, core::Now now);
  // ChargeOne, and in kReserve with a receipt that tells what came back before it.
  void ChargeIn(Mode mode, const Charge& charge, Outcome* outcome, core::Now now);
  void ChargeOneWide(const Charge& charge, Outcome* outcome, core::Now now);
  void Undo(const Charge& charge, Outcome* outcome, core::Now now);

  // The meter that the key's state was last written under.
  const core::Meter* MeterOf(const core::Meter& meter, Key128 key);
  // What came back of a bucket, and until when that is of account.
  struct Returned {
    core::RefundTotal total;
    int64_t until_ns = 0;
  };
  bool SettleBucket(const core::Meter& meter, Key128 key, core::Receipt receipt, int64_t units,
                    core::Now now);
  // How much of a charge under `from` may come back under `to`, by all that is known of the rates
  // since. REQUIRES of a bucket's receipt: MovedDown.
  int64_t Refundable(const core::Meter& from, const core::Meter& to, Key128 key,
                     core::Receipt receipt, int64_t units, core::Now now) const;
  bool SettlePacked(const core::Meter& meter, Key128 key, Returned* returned, core::Receipt receipt,
                    int64_t delta, core::Now now);
  bool SettleWide(const core::Meter& meter, Key128 key, Returned* returned, core::Receipt receipt,
                  int64_t delta, core::Now now);
  // The state of an entry of the map under a rate that packs.
  int64_t PackedFromWide(const ShardedMap::Entry& entry, const core::Meter& meter, core::Now now);
  // The key's entry in a locked shard, its state under `meter`; units used under a packed rate move
  // over. Null: none.
  ShardedMap::Entry* FindWide(ShardedMap::Shard* shard, const core::Meter& meter, Key128 key,
                              core::Now now);

  const OnFull on_full_;
  KeyBudget budget_;
  MeterRegistry registry_;
  RateChanges changes_;
  RefundNotes refunds_;
  NarrowTable narrow_;
  ShardedMap wide_;
  // Some bucket or window of this store is too wide to pack, so a key may have its state in either
  // table.
  std::atomic<bool> mixed_{false};
};

}  // namespace weir::store
