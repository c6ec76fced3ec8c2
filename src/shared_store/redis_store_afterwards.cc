// What happens to charges after the decision: given back, settled, renewed, reset.
#include <algorithm>
#include <utility>

#include "shared_store/redis_store.h"

namespace weir::shared_store {

// The call is denied after all: what it was charged comes back.
void RedisStore::GiveBack(std::span<const Charge> charges, std::span<const SharedTerms> terms,
                          std::span<SharedOutcome> outcomes, std::span<const Payment> payments,
                          core::Now now) {
  for (const Payment& payment : payments) {
    SharedOutcome& outcome = outcomes[payment.of];
    leases_->Undo(charges[payment.of], *terms[payment.of].leased, payment.paid);
    if (outcome.charged) outcome.step.remaining += charges[payment.of].cost;
    outcome.charged = false;
  }
  std::vector<SharedCharge> charged;
  for (size_t i = 0; i < charges.size(); ++i) {
    SharedOutcome& outcome = outcomes[i];
    if (!outcome.known || !outcome.charged) continue;
    charged.push_back({.meter = charges[i].meter,
                       .key = charges[i].key,
                       .tag = terms[i].tag,
                       .receipt = outcome.receipt,
                       .source = outcome.source,
                       .reserved = charges[i].cost,
                       .leased = terms[i].leased});
    outcome.charged = false;
    outcome.step.remaining += charges[i].cost;
  }
  if (!charged.empty()) options_.loop->Spawn(SettleLater(std::move(charged), now));
}

Task<void> RedisStore::SettleLater(std::vector<SharedCharge> charges, core::Now now) {
  [[maybe_unused]] const bool told = co_await Settle(charges, now);
}

Task<bool> RedisStore::Settle(std::span<const SharedCharge> charges, core::Now now) {
  std::vector<SharedCharge> shared;
  std::vector<SharedCharge> leased;
  for (const SharedCharge& charge : charges) {
    switch (charge.source) {
      case Source::kMemory:
        options_.memory->Settle(*charge.meter, charge.key, charge.receipt, charge.reserved,
                                charge.actual, now);
        break;
      case Source::kFallback:
        fallback_.Settle(charge, now);
        break;
      default:
        if (charge.actual < charge.reserved) denials_.Drop(charge.key);
        (charge.leased != nullptr ? leased : shared).push_back(charge);
    }
  }
  bool told = true;
  if (!leased.empty()) told = co_await leases_->Settle(std::move(leased));
  if (shared.empty()) co_return told;
  const bool others_told = co_await batcher_->Settle(std::move(shared));
  co_return told&& others_told;
}

Task<bool> RedisStore::Renew(std::span<const SharedCharge> charges, int64_t ttl_ns, core::Now now) {
  bool renewed = true;
  std::vector<SharedCharge> shared;
  for (const SharedCharge& charge : charges) {
    switch (charge.source) {
      case Source::kMemory:
        renewed = options_.memory->Renew(*charge.meter, charge.key, charge.receipt, ttl_ns, now) &&
                  renewed;
        break;
      case Source::kFallback:
        renewed = fallback_.Renew(charge, ttl_ns, now) && renewed;
        break;
      default:
        shared.push_back(charge);
    }
  }
  if (shared.empty()) co_return renewed;
  const bool told = co_await batcher_->Renew(std::move(shared), ttl_ns);
  co_return told&& renewed;
}

Task<bool> RedisStore::Reset(std::span<const SharedCharge> charges, core::Now now) {
  std::vector<SharedCharge> shared;
  std::vector<SharedCharge> leased;
  for (const SharedCharge& charge : charges) {
    options_.memory->Reset(*charge.meter, charge.key, now);
    denials_.Drop(charge.key);
    (charge.leased != nullptr ? leased : shared).push_back(charge);
  }
  bool told = true;
  if (!leased.empty()) told = co_await leases_->Reset(std::move(leased));
  if (shared.empty()) co_return told;
  const bool others_told = co_await batcher_->Reset(std::move(shared));
  co_return told&& others_told;
}

}  // namespace weir::shared_store
