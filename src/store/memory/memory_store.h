// Counters in this process: a lock-free table for state of one word, a sharded map for the rest.
//
//   MemoryStore store({.max_keys = 1'000'000});
//   const core::Meter* meter = *store.Intern(spec);                      // Once per limit.
//   Charge charge{.meter = meter, .key = key, .cost = 1};
//   Outcome outcome;
//   bool allowed = store.Decide({&charge, 1}, {&outcome, 1}, now, Mode::kCharge);
//
// Thread safety: every method may be called from any number of threads. Ownership: the store owns its meters and its
// memory (mapped at construction, touched as keys come). Decide takes no lock and allocates nothing when all its meters
// are packed (meter.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/meter.h"
#include "store/store.h"

namespace weir::store {

struct MemoryStoreOptions {
  int64_t max_keys = 1'000'000;  // 1 to 2^32. Tracked keys never exceed it.
  OnFull on_full = OnFull::kClosed;
};

class MemoryStore {
 public:
  explicit MemoryStore(const MemoryStoreOptions& options);
  ~MemoryStore();
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  // The meter of these parameters, compiled on first sight; it lives as long as the store. Equal specs give the same
  // pointer. kInvalidArgument names the field; kResourceExhausted after 65,000 distinct specs.
  Result<const core::Meter*> Intern(const core::MeterSpec& spec);

  // Decides all charges together: true when every enforced one passes, and then each of them is charged (and each
  // shadow one that passes by itself); otherwise none is, and a denial leaves no trace. REQUIRES: outcomes.size() ==
  // charges.size(); costs in [0, kMaxUnits].
  bool Decide(std::span<const Charge> charges, std::span<Outcome> outcomes, core::Now now, Mode mode);

  // What a charge of `cost` would be told; changes nothing. Cost 0 reads the state.
  core::Step Peek(const core::Meter& meter, Key128 key, int64_t cost, core::Now now);

  // Replaces the reserved cost by the actual one. What was not used comes back as far as time has not given it back
  // already; an overrun is charged whatever remains, as debt. False: there was nothing to change (the counter is gone,
  // or its window is over).
  bool Settle(const core::Meter& meter, Key128 key, core::Receipt receipt, int64_t reserved, int64_t actual,
              core::Now now);
  // Settle with nothing used; frees a parallel lease. Releasing a lease twice changes nothing the second time; other
  // receipts must be settled or released once.
  bool Release(const core::Meter& meter, Key128 key, core::Receipt receipt, int64_t reserved, core::Now now);
  // Prolongs a parallel lease to `ttl_ns` from now. False when it has expired or was released.
  bool Renew(const core::Meter& meter, Key128 key, core::Receipt receipt, int64_t ttl_ns, core::Now now);

  // Forgets the counter: the full quota is there again. False when there was none.
  bool Reset(const core::Meter& meter, Key128 key);

  // Keys whose quota is not full. Scans the tables: for metrics, not for the request path.
  int64_t TrackedKeys(core::Now now) const;
  int64_t MemoryBytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::store
