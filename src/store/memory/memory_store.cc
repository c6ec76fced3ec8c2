#include "store/memory/memory_store.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace weir::store {
namespace {

using core::Form;
using Found = NarrowTable::Found;
using Inserted = NarrowTable::Inserted;

// Making room and then losing it to others is bounded: after so many times the store counts as
// full.
constexpr int kRoomAttempts = 8;

bool IsCharged(const Charge& charge, const core::Step& step) {
  const bool only_tested = charge.meter->form() == Form::kParallel && charge.lease_id == 0;
  return step.allowed && charge.cost > 0 && !only_tested;
}

// Calls fn with the meter's bucket. REQUIRES: IsBucket(meter).
template <typename Fn>
auto WithBucket(const core::Meter& meter, Fn&& fn) {
  return meter.form() == Form::kTickBucket ? fn(meter.tick_bucket()) : fn(meter.exact_bucket());
}

// How much of a charge under `from` may come back where `fastest` was in force too, since an
// instant unknown: what would be left of it had either rate held all along, whichever is less.
int64_t RefundAcross(const core::Meter& from, const core::Meter& fastest, core::Receipt receipt,
                     int64_t units, int64_t now_ns) {
  const auto left = [&](int64_t at_ns) {
    return WithBucket(from, [&](const auto& bucket) { return bucket.Unreturned(receipt, at_ns); });
  };
  const Rate& rate = fastest.spec().rate;
  const core::Int128 refilled =
      core::CeilDiv(core::Int128{std::max<int64_t>(now_ns - receipt.at_ns, 0)} * rate.units,
                    core::Int128{rate.period.count()});
  return core::Clamp64(
      std::min<core::Int128>({units, left(now_ns), left(receipt.at_ns) - refilled}));
}

// Forms whose algorithm has a packed form too.
bool MayMove(const core::Meter& meter) {
  return meter.form() == Form::kExactBucket || meter.form() == Form::kWindow;
}

}  // namespace

MemoryStore::MemoryStore(const MemoryStoreOptions& options)
    : on_full_(options.on_full),
      budget_(options.max_keys),
      changes_(&registry_),
      refunds_(options.max_keys),
      narrow_(options.max_keys, &budget_, &registry_, &changes_),
      wide_(&budget_) {
  assert(options.max_keys >= 1);
}

Result<const core::Meter*> MemoryStore::Intern(const core::MeterSpec& spec, int meters_max) {
  auto meter = registry_.Intern(spec, meters_max);
  if (meter && MayMove(**meter)) mixed_.store(true, std::memory_order_release);
  return meter;
}

bool MemoryStore::DecideAll(std::span<const Charge> charges, std::span<Outcome> outcomes,
                            core::Now now, Mode mode) {
  if (charges.size() == 1 && mode != Mode::kPeek) {
    ChargeIn(mode, charges[0], &outcomes[0], now);
    return outcomes[0].step.allowed || !charges[0].enforced;
  }
  for (const Charge& charge : charges) {
    if (charge.meter->packed()) Prefetch(charge);
  }
  bool pass = true;
  for (size_t i = 0; i < charges.size(); ++i) {
    const Charge& charge = charges[i];
    outcomes[i] = {.step = Peek(*charge.meter, charge.key, charge.cost, now)};
    pass &= outcomes[i].step.allowed || !charge.enforced;
  }
  if (!pass || mode == Mode::kPeek) return pass;
  for (size_t i = 0; i < charges.size(); ++i) {
    if (!charges[i].enforced) continue;
    ChargeIn(mode, charges[i], &outcomes[i], now);
    if (outcomes[i].step.allowed) continue;
    for (size_t j = 0; j < i; ++j) {
      if (charges[j].enforced) Undo(charges[j], &outcomes[j], now);
    }
    return false;
  }
  for (size_t i = 0; i < charges.size(); ++i) {
    if (!charges[i].enforced && outcomes[i].step.allowed)
      ChargeIn(mode, charges[i], &outcomes[i], now);
  }
  return true;
}

void MemoryStore::ChargeIn(Mode mode, const Charge& charge, Outcome* outcome, core::Now now) {
  if (mode != Mode::kReserve || charge.meter->form() == Form::kParallel)
    return ChargeOne(charge, outcome, now);
  const RefundNotes::Note note =
      refunds_.Lock(charge.key, now.mono_ns);  // No refund between charge and mark.
  ChargeOne(charge, outcome, now);
  outcome->receipt.mark = note.total.mark();
}

void MemoryStore::ChargeOne(const Charge& charge, Outcome* outcome, core::Now now) {
  if (charge.meter->packed()) return ChargeOnePacked(charge, outcome, now);
  if (charge.meter->form() == Form::kDenyAll) {
    *outcome = {.step = core::Meter::DenyAll(charge.cost)};
    return;
  }
  ChargeOneWide(charge, outcome, now);
}

void MemoryStore::Undo(const Charge& charge, Outcome* outcome, core::Now now) {
  if (outcome->charged) Release(*charge.meter, charge.key, outcome->receipt, charge.cost, now);
  *outcome = {.step = Peek(*charge.meter, charge.key, charge.cost, now)};
}

void MemoryStore::AnswerFull(const Charge& charge, Outcome* outcome) const {
  outcome->charged = false;
  outcome->tracked = false;
  if (on_full_ == OnFull::kOpen) return;  // The step is what a fresh counter said.
  outcome->step = {false, 0, kFullRetryNs,
                   charge.cost > charge.meter->quota() ? core::kNever : kFullRetryNs};
}

bool MemoryStore::MakeRoom(Inserted why, Key128 key, core::Now now) {
  return why == Inserted::kNoBudget && wide_.EvictOne(key, now);
}

bool MemoryStore::AllowAnywhere(const core::Meter& meter, Key128 key, int64_t cost, core::Now now) {
  const Charge charge{.meter = &meter, .key = key, .cost = cost};
  Outcome outcome;
  return Decide({&charge, 1}, {&outcome, 1}, now, Mode::kCharge);
}

// The key has no entry in the table. Where its state may be in the map, under a rate that does not
// pack, the shard's lock makes the move of the units one step for everybody who looks for the key.
void MemoryStore::ChargeAbsentPacked(const Charge& charge, Outcome* outcome, core::Now now) {
  const core::Meter& meter = *charge.meter;
  const Key128 key = charge.key;
  const uint64_t spread = NarrowTable::Spread(key);
  const auto step = [&](int64_t state, int64_t* next) {
    *next = state;
    outcome->step = ChargePacked(meter, next, charge.cost, now, spread, &outcome->receipt);
    return outcome->step.allowed;
  };
  for (int attempt = 0; attempt < kRoomAttempts;) {
    Inserted inserted;
    {
      std::optional<ShardedMap::Shard> shard;
      const ShardedMap::Entry* entry = nullptr;
      int64_t initial = 0;
      if (mixed_.load(std::memory_order_acquire)) [[unlikely]] {
        shard.emplace(wide_.Lock(key));
        entry = shard->Find(key);
        if (entry != nullptr && entry->meter->algorithm() != meter.algorithm()) entry = nullptr;
        if (entry != nullptr) initial = PackedFromWide(*entry, meter, now);
      }
      int64_t next = initial;
      if (!step(initial, &next)) next = initial;
      outcome->charged = IsCharged(charge, outcome->step);
      if (!outcome->charged && initial == 0) return;  // Nothing to keep.
      // The entry gives its place of the budget to its successor, and goes once that stands.
      bool paid = entry != nullptr;
      inserted = narrow_.Insert(meter, key, now, next, &paid);
      if (inserted == Inserted::kFound && initial != 0) {
        narrow_.Update(meter, key, now, [&](int64_t state, int64_t* sum) {
          *sum = state;
          OverrunPacked(meter, sum, UsedPacked(meter, initial, now, spread), now, spread);
          return true;
        });
      }
      const bool stands = inserted == Inserted::kYes || inserted == Inserted::kFound;
      if (entry != nullptr && stands) {
        shard->Remove(key);
        if (paid) budget_.GiveBack();
      }
    }
    if (inserted == Inserted::kYes) return;
    if (inserted == Inserted::kFound) {
      if (narrow_.Update(meter, key, now, step) == Found::kYes) {
        outcome->charged = IsCharged(charge, outcome->step);
        return;
      }
      continue;
    }
    ++attempt;
    if (!MakeRoom(inserted, key, now)) break;
  }
  AnswerFull(charge, outcome);
}

int64_t MemoryStore::PackedFromWide(const ShardedMap::Entry& entry, const core::Meter& meter,
                                    core::Now now) {
  const uint64_t spread = ShardedMap::Spread(entry.key);
  changes_.Note(*entry.meter, meter, spread, now.mono_ns);
  return PackedFromUsed(meter, UsedWide(*entry.meter, entry.state, now, spread), now, spread);
}

ShardedMap::Entry* MemoryStore::FindWide(ShardedMap::Shard* shard, const core::Meter& meter,
                                         Key128 key, core::Now now) {
  const uint64_t spread = ShardedMap::Spread(key);
  ShardedMap::Entry* entry = shard->Find(key);
  if (entry == nullptr) {
    const core::Meter* from = nullptr;
    int64_t state = 0;
    if (!MayMove(meter) || narrow_.Extract(key, &from, &state) == Found::kNo) return nullptr;
    const bool same = from->algorithm() == meter.algorithm();
    const int64_t used = same ? UsedPacked(*from, state, now, spread) : 0;
    if (used == 0) {
      budget_.GiveBack();
      return nullptr;
    }
    changes_.Note(*from, meter, spread, now.mono_ns);
    entry = shard->InsertPaid(key, meter);
    entry->state = WideFromUsed(meter, used, now, spread);
    return entry;
  }
  if (entry->meter != &meter) {
    changes_.Note(*entry->meter, meter, spread, now.mono_ns);
    entry->state = CarryWide(*entry->meter, meter, std::move(entry->state), now, spread);
    entry->meter = &meter;
  }
  return entry;
}

void MemoryStore::ChargeOneWide(const Charge& charge, Outcome* outcome, core::Now now) {
  const core::Meter& meter = *charge.meter;
  const uint64_t spread = ShardedMap::Spread(charge.key);
  *outcome = {};
  for (int attempt = 0; attempt < kRoomAttempts; ++attempt) {
    {
      ShardedMap::Shard shard = wide_.Lock(charge.key);
      ShardedMap::Entry* entry = FindWide(&shard, meter, charge.key, now);
      WideState fresh;
      WideState* state = entry != nullptr ? &entry->state : &fresh;
      outcome->step = ChargeWide(meter, state, charge, now, spread, &outcome->receipt);
      outcome->charged = IsCharged(charge, outcome->step);
      if (entry != nullptr || !outcome->charged) return;
      entry = shard.Insert(charge.key, meter, now);
      if (entry != nullptr) {
        entry->state = std::move(fresh);
        return;
      }
    }
    if (!wide_.EvictOne(charge.key, now) && !narrow_.EvictOne(now)) break;
  }
  AnswerFull(charge, outcome);
}

core::Step MemoryStore::Peek(const core::Meter& meter, Key128 key, int64_t cost, core::Now now) {
  if (meter.form() == Form::kDenyAll) return core::Meter::DenyAll(cost);
  const uint64_t spread = NarrowTable::Spread(key);
  if (!meter.packed()) {
    ShardedMap::Shard shard = wide_.Lock(key);
    ShardedMap::Entry* entry = FindWide(&shard, meter, key, now);
    WideState fresh;
    return TestWide(meter, entry != nullptr ? &entry->state : &fresh, cost, now, spread);
  }
  int64_t state = 0;
  if (narrow_.Read(meter, key, now, &state) == Found::kNo &&
      mixed_.load(std::memory_order_acquire)) {
    ShardedMap::Shard shard = wide_.Lock(key);
    const ShardedMap::Entry* entry = shard.Find(key);
    if (entry != nullptr && entry->meter->algorithm() == meter.algorithm()) {
      const int64_t used = UsedWide(*entry->meter, entry->state, now, spread);
      state = PackedFromUsed(meter, used, now, spread);
    }
  }
  return TestPacked(meter, state, cost, now, spread);
}

bool MemoryStore::Settle(const core::Meter& meter, Key128 key, core::Receipt receipt,
                         int64_t reserved, int64_t actual, core::Now now) {
  int64_t delta = reserved - actual;
  if (meter.form() == Form::kDenyAll) return false;
  if (delta == 0 && meter.form() != Form::kParallel) return true;
  if (delta > 0 && IsBucket(meter)) return SettleBucket(meter, key, receipt, delta, now);
  // Where the rate has changed since the charge, the state stays under the new one.
  const core::Meter* to = MeterOf(meter, key);
  if (to == nullptr || to->algorithm() != meter.algorithm()) to = &meter;
  if (delta > 0 && meter.form() != Form::kParallel) {
    if (refunds_.Lock(key, now.mono_ns).total.HasForgotten(receipt.mark)) return false;
    delta = Refundable(meter, *to, key, receipt, delta, now);
    if (delta <= 0) return false;
  }
  Returned none;
  return to->packed() ? SettlePacked(*to, key, &none, receipt, delta, now)
                      : SettleWide(*to, key, &none, receipt, delta, now);
}

bool MemoryStore::SettleBucket(const core::Meter& meter, Key128 key, core::Receipt receipt,
                               int64_t units, core::Now now) {
  const core::Meter* to = MeterOf(meter, key);
  if (to == nullptr || to->algorithm() != meter.algorithm()) to = &meter;
  RefundNotes::Note note = refunds_.Lock(key, now.mono_ns);
  if (!note.has_room() || note.total.HasForgotten(receipt.mark)) return false;
  note.Use(to);
  const core::Receipt moved = WithBucket(meter, [&](const auto& bucket) {
    const core::RefundTotal::Place place{to == &meter ? receipt.mark : -1, bucket.EndOf(receipt)};
    return bucket.MovedDown(receipt, note.total.Since(place));
  });
  const int64_t back = Refundable(meter, *to, key, moved, units, now);
  if (back <= 0) return false;
  if (to != &meter || back < units) {
    // As of a charge whose place is not known, which is moved down by all that came back.
    const int64_t above = back + note.total.Since({});
    receipt =
        WithBucket(*to, [&](const auto& bucket) { return bucket.ReceiptFor(above, now.mono_ns); });
  }
  Returned returned{note.total};
  const bool done = to->packed() ? SettlePacked(*to, key, &returned, receipt, back, now)
                                 : SettleWide(*to, key, &returned, receipt, back, now);
  if (returned.total.mark() == note.total.mark()) return done;  // It was the last charge, or none.
  note.total = returned.total;
  note.Keep(returned.until_ns, now.mono_ns);
  return done;
}

int64_t MemoryStore::Refundable(const core::Meter& from, const core::Meter& to, Key128 key,
                                core::Receipt receipt, int64_t units, core::Now now) const {
  if (from.form() == Form::kLog) return units;
  const core::Meter* between = changes_.Since(from, NarrowTable::Spread(key), receipt.at_ns);
  if (!IsBucket(from)) return between == nullptr && KeepsTime(from, to) ? units : 0;
  const core::Meter& fastest = between != nullptr && RefillsFaster(*between, to) ? *between : to;
  if (&to == &from && &fastest == &from) return units;
  return RefundAcross(from, fastest, receipt, units, now.mono_ns);
}

const core::Meter* MemoryStore::MeterOf(const core::Meter& meter, Key128 key) {
  if (meter.form() == Form::kLog || meter.form() == Form::kParallel) return &meter;
  const core::Meter* const narrow = narrow_.MeterOf(key);
  if (narrow != nullptr || (meter.packed() && !mixed_.load(std::memory_order_acquire)))
    return narrow;
  ShardedMap::Shard shard = wide_.Lock(key);
  const ShardedMap::Entry* entry = shard.Find(key);
  return entry != nullptr ? entry->meter : nullptr;
}

bool MemoryStore::SettlePacked(const core::Meter& meter, Key128 key, Returned* returned,
                               core::Receipt receipt, int64_t delta, core::Now now) {
  const uint64_t spread = NarrowTable::Spread(key);
  bool changed = false;
  Returned last;
  const auto step = [&](int64_t state, int64_t* next) {
    *next = state;
    changed = true;
    last = *returned;
    if (delta < 0) {
      OverrunPacked(meter, next, -delta, now, spread);
    } else {
      last.until_ns = now.mono_ns + TestPacked(meter, state, 0, now, spread).reset_after_ns;
      changed = RefundPacked(meter, next, &last.total, receipt, delta, now, spread);
    }
    return changed;
  };
  const auto update = [&] {
    if (narrow_.Update(meter, key, now, step) == Found::kNo) return false;
    *returned = last;
    return true;
  };
  for (int attempt = 0; attempt < kRoomAttempts;) {
    if (update()) return changed;
    if (mixed_.load(std::memory_order_acquire)) {  // A charge of nothing brings it over.
      Outcome moved;
      ChargeAbsentPacked({.meter = &meter, .key = key, .cost = 0}, &moved, now);
      if (update()) return changed;
    }
    if (delta > 0) return false;
    const Inserted inserted =
        narrow_.Insert(meter, key, now, PackedFromUsed(meter, -delta, now, spread));
    if (inserted == Inserted::kYes) return true;
    if (inserted == Inserted::kFound) continue;
    ++attempt;
    if (!MakeRoom(inserted, key, now)) return false;
  }
  return false;
}

bool MemoryStore::SettleWide(const core::Meter& meter, Key128 key, Returned* returned,
                             core::Receipt receipt, int64_t delta, core::Now now) {
  const uint64_t spread = ShardedMap::Spread(key);
  for (int attempt = 0; attempt < kRoomAttempts; ++attempt) {
    {
      ShardedMap::Shard shard = wide_.Lock(key);
      ShardedMap::Entry* entry = FindWide(&shard, meter, key, now);
      if (delta > 0 || meter.form() == Form::kParallel) {
        if (entry == nullptr) return false;
        if (IsBucket(meter)) {
          const core::Step step = TestWide(meter, &entry->state, 0, now, spread);
          returned->until_ns = now.mono_ns + step.reset_after_ns;
        }
        return RefundWide(meter, &entry->state, &returned->total, receipt, delta, now, spread);
      }
      if (entry == nullptr) entry = shard.Insert(key, meter, now);
      if (entry != nullptr) {
        OverrunWide(meter, &entry->state, -delta, now, spread);
        return true;
      }
    }
    if (!wide_.EvictOne(key, now) && !narrow_.EvictOne(now)) return false;
  }
  return false;
}

bool MemoryStore::Renew(const core::Meter& meter, Key128 key, core::Receipt receipt, int64_t ttl_ns,
                        core::Now now) {
  if (meter.form() != Form::kParallel) return false;
  ShardedMap::Shard shard = wide_.Lock(key);
  ShardedMap::Entry* entry = FindWide(&shard, meter, key, now);
  if (entry == nullptr) return false;
  auto* leases = std::get_if<core::ParallelState>(&entry->state);
  return leases != nullptr && meter.parallel().Renew(leases, static_cast<uint64_t>(receipt.a),
                                                     now.mono_ns + ttl_ns, now.mono_ns);
}

bool MemoryStore::Reset(const core::Meter& meter, Key128 key, core::Now now) {
  if (meter.form() == Form::kDenyAll) return false;
  RefundNotes::Note note = refunds_.Lock(key, now.mono_ns);
  const core::Step standing = Peek(meter, key, 0, now);
  if (meter.form() != Form::kParallel) {
    note.total.ForgetCharges();
    note.Keep(now.mono_ns + std::max<int64_t>(standing.reset_after_ns, 0), now.mono_ns);
  }
  // The key may have its state in either table, under any of its rates.
  ShardedMap::Shard shard = wide_.Lock(key);
  const core::Meter* from = nullptr;
  int64_t state = 0;
  const bool narrow = narrow_.Extract(key, &from, &state) == Found::kYes;
  if (narrow) budget_.GiveBack();
  const bool wide = shard.Find(key) != nullptr;
  shard.Erase(key);
  return narrow || wide;
}

int64_t MemoryStore::TrackedKeys(core::Now now) const {
  return narrow_.CountLive(now) + wide_.CountLive(now);
}

int64_t MemoryStore::MemoryBytes() const {
  return static_cast<int64_t>(narrow_.MemoryBytes()) + wide_.MemoryBytes() +
         RateChanges::MemoryBytes() + refunds_.MemoryBytes();
}

}  // namespace weir::store
