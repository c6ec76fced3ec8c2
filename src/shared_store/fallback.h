// Fallback: what becomes of charges that the shared store does not decide in time, by each limit's
// own terms: admitted uncounted, denied, or decided here out of this node's share of the limit.
//
//   Fallback fallback(engine.local_store(), &nodes_seen);
//   bool admitted = fallback.Decide(charges, terms, outcomes, now, Mode::kCharge);
//
// Thread safety: one event loop's thread; the memory store is shared by all of them, so that the
// share is the node's. Nothing here waits.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "store/lease/node_share.h"
#include "store/memory/memory_store.h"
#include "store/shared_store.h"

namespace weir::shared_store {

using store::Charge;
using store::Mode;
using store::SharedCharge;
using store::SharedOutcome;
using store::SharedTerms;

class Fallback {
 public:
  // `nodes` says how many nodes share the limits, at least 1.
  Fallback(store::MemoryStore& memory, const std::atomic<int64_t>& nodes)
      : memory_(memory), nodes_(nodes) {}

  // As SharedStore::Decide; every outcome's source is kFallback.
  bool Decide(std::span<const Charge> charges, std::span<const SharedTerms> terms,
              std::span<SharedOutcome> outcomes, core::Now now, Mode mode);
  // REQUIRES: the charge's source is kFallback.
  void Settle(const SharedCharge& charge, core::Now now);
  bool Renew(const SharedCharge& charge, int64_t ttl_ns, core::Now now);

  // The node's share of a limit.
  struct Share {
    const core::Meter* meter = nullptr;  // Null: it cannot be shared; such charges are denied.
    std::optional<store::lease::NodeShare> split;  // Empty for parallel limits.
  };

 private:
  const Share& ShareOf(const core::Meter& meter);
  static void Deny(const core::Meter& meter, SharedOutcome& outcome);

  store::MemoryStore& memory_;
  const std::atomic<int64_t>& nodes_;
  int64_t shares_for_ = 0;  // How many nodes shares_ is of.
  std::unordered_map<const core::Meter*, Share> shares_;
  // Of one Decide at a time: the charges that count here, and whose they are.
  std::vector<Charge> counted_;
  std::vector<store::Outcome> counted_outcomes_;
  std::vector<size_t> of_;
  std::vector<int64_t> debts_;
};

}  // namespace weir::shared_store
