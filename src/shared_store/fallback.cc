#include "shared_store/fallback.h"

#include <algorithm>

namespace weir::shared_store {
namespace {

// While the store is away nobody knows when it will be back.
constexpr int64_t kClosedRetryNs = 1'000'000'000;

core::MeterSpec ParallelShare(core::MeterSpec spec, int64_t nodes) {
  if (spec.rate.units > 0) spec.rate.units = std::max<int64_t>(spec.rate.units / nodes, 1);
  return spec;
}

}  // namespace

const Fallback::Share& Fallback::ShareOf(const core::Meter& meter) {
  const int64_t nodes = nodes_.load(std::memory_order_relaxed);
  if (nodes != shares_for_) {
    shares_.clear();
    shares_for_ = nodes;
  }
  const auto [found, is_new] = shares_.try_emplace(&meter);
  Share& share = found->second;
  if (!is_new) return share;
  core::MeterSpec spec = meter.spec();
  if (spec.algorithm == Algorithm::kParallel) {
    spec = ParallelShare(spec, nodes);
  } else if (auto split = store::lease::NodeShare::Of(spec, nodes)) {
    share.split = *split;
    spec = split->spec();
  } else {
    return share;
  }
  if (auto interned = memory_.InternForCall(spec)) share.meter = *interned;
  return share;
}

void Fallback::Deny(const core::Meter& meter, SharedOutcome& outcome) {
  const bool never = meter.quota() == 0;
  outcome.step = {.allowed = false, .retry_after_ns = never ? core::kNever : kClosedRetryNs};
}

bool Fallback::Decide(std::span<const Charge> charges, std::span<const SharedTerms> terms,
                      std::span<SharedOutcome> outcomes, core::Now now, Mode mode) {
  counted_.clear();
  of_.clear();
  debts_.clear();
  bool admitted = true;
  for (size_t i = 0; i < charges.size(); ++i) {
    const Charge& charge = charges[i];
    SharedOutcome& outcome = outcomes[i];
    outcome = {};
    outcome.source = Source::kFallback;
    if (terms[i].on_failure == store::OnFailure::kOpen && charge.meter->quota() > 0) {
      outcome.step = {.allowed = true, .remaining = charge.meter->quota()};
      outcome.tracked = false;
      continue;
    }
    const Share* share = nullptr;
    if (terms[i].on_failure == store::OnFailure::kLocalShare) share = &ShareOf(*charge.meter);
    if (share == nullptr || share->meter == nullptr) {
      Deny(*charge.meter, outcome);
      admitted = admitted && !charge.enforced;
      continue;
    }
    store::lease::NodeShare::Parts parts{.charge = charge.cost};
    if (share->split) parts = share->split->Split(charge.cost);
    Charge counted = charge;
    counted.meter = share->meter;
    // What is beyond the limit itself is beyond the share's bucket too, and stays so by itself.
    counted.cost = parts.possible ? parts.charge : charge.cost;
    counted_.push_back(counted);
    of_.push_back(i);
    debts_.push_back(parts.possible ? parts.debt : 0);
  }
  if (counted_.empty()) return admitted;
  counted_outcomes_.assign(counted_.size(), {});
  const bool passed =
      memory_.Decide(counted_, counted_outcomes_, now, admitted ? mode : Mode::kPeek);
  for (size_t n = 0; n < of_.size(); ++n) {
    static_cast<store::Outcome&>(outcomes[of_[n]]) = counted_outcomes_[n];
    if (!counted_outcomes_[n].charged || debts_[n] == 0) continue;
    memory_.Settle(*counted_[n].meter, counted_[n].key, counted_outcomes_[n].receipt,
                   counted_[n].cost, counted_[n].cost + debts_[n], now);
  }
  return admitted && passed;
}

void Fallback::Settle(const SharedCharge& charge, core::Now now) {
  const Share& share = ShareOf(*charge.meter);
  if (share.meter == nullptr) return;
  memory_.Settle(*share.meter, charge.key, charge.receipt, charge.reserved, charge.actual, now);
}

bool Fallback::Renew(const SharedCharge& charge, int64_t ttl_ns, core::Now now) {
  const Share& share = ShareOf(*charge.meter);
  return share.meter != nullptr &&
         memory_.Renew(*share.meter, charge.key, charge.receipt, ttl_ns, now);
}

}  // namespace weir::shared_store
