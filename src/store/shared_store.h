// SharedStore: counters that many nodes share, over the network. It takes what MemoryStore takes
// and answers later, and it always answers: what the network does not say in time is decided by
// each limit's own terms.
//
//   bool admitted = co_await store.Decide(charges, terms, outcomes, now, Mode::kCharge);
//   if (outcomes[0].source == Source::kFallback) …            // The store was away.
//
// Thread safety: one event loop's thread. Ownership: callers keep the spans alive until the task
// has finished.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/task.h"
#include "store/store.h"
#include "weir/decision.h"

namespace weir::store {

namespace lease {
struct LeasedMeter;  // lease/leased_meter.h
}

// How far a limit's counter is shared.
enum class Consistency : uint8_t {
  kShared,  // Counted by the store: every decision is the store's own, or paid from a lease.
  kLocal,   // Counted on this node alone.
};

// What becomes of a charge that the store does not decide in time.
enum class OnFailure : uint8_t {
  kOpen,        // Admitted, uncounted.
  kClosed,      // Denied.
  kLocalShare,  // Decided here, out of this node's share of the limit.
};

struct SharedTerms {
  uint64_t tag = 0;  // Counters with one tag are kept on one server of a cluster.
  Consistency consistency = Consistency::kShared;
  OnFailure on_failure = OnFailure::kLocalShare;
  // Not null: nodes lease units of this counter and decide out of them. It outlives the store.
  const lease::LeasedMeter* leased = nullptr;
  // The charge may be settled later, so it must come with a receipt: it is never paid from a lease.
  bool settles = false;
};

struct SharedOutcome : Outcome {
  Source source = Source::kRedis;  // Who decided. Hand it back with a settle.
  // false: nobody was asked, since another limit had denied the call already; nothing else counts.
  bool known = true;
};

// A charge that is to be settled, or a counter that is to be forgotten.
struct SharedCharge {
  const core::Meter* meter = nullptr;
  Key128 key;
  uint64_t tag = 0;
  core::Receipt receipt;
  Source source = Source::kRedis;
  int64_t reserved = 0;
  int64_t actual = 0;
  const lease::LeasedMeter* leased = nullptr;  // As in SharedTerms.
};

class SharedStore {
 public:
  virtual ~SharedStore() = default;

  // As MemoryStore::Decide, with `terms` beside the charges. Done within the configured timeout.
  virtual Task<bool> Decide(std::span<const Charge> charges, std::span<const SharedTerms> terms,
                            std::span<SharedOutcome> outcomes, core::Now now, Mode mode) = 0;

  // Decides without waiting where that is possible: out of what this node holds, or by what it
  // knows to be denied. Nothing: ask Decide, as if this had not been called.
  virtual std::optional<bool> DecideNow(std::span<const Charge> charges,
                                        std::span<const SharedTerms> terms,
                                        std::span<SharedOutcome> outcomes, core::Now now,
                                        Mode mode) = 0;

  // As MemoryStore::Settle for each; parallel leases end. False: the store could not be told in
  // time, and goes on being told for as long as its queue has room.
  virtual Task<bool> Settle(std::span<const SharedCharge> charges, core::Now now) = 0;

  // Prolongs parallel leases to `ttl_ns` from now. False when one of them is gone or the store is
  // away.
  virtual Task<bool> Renew(std::span<const SharedCharge> charges, int64_t ttl_ns,
                           core::Now now) = 0;

  // A new policy runs: what was learnt of denials under the one before no longer holds, and what
  // this node holds under it is given back.
  virtual void OnPolicy() = 0;

  // Forgets the counters, here and on the store. False: the store is away.
  virtual Task<bool> Reset(std::span<const SharedCharge> charges, core::Now now) = 0;
};

}  // namespace weir::store
