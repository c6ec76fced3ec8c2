// BoundPolicy: a policy joined to what decides and counts: the store's meters, the metrics' series,
// the hashed front of each counter's key, and the identity rules.
//
//   auto bound = BoundPolicy::Bind(policy, store, metrics, hasher);
//   if (!bound) return std::unexpected(bound.error());
//   for (const BoundLimit& limit : (*bound)->limits)
//     base::Key128 key = limit.KeyOf(variant, call);
//
// Thread safety: immutable. Ownership: it keeps the policy alive; meters and series belong to the
// store and the metrics, which must outlive it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/hmac_key.h"
#include "base/keyed_hash.h"
#include "core/meter.h"
#include "identity/client_identity.h"
#include "metrics/weir_metrics.h"
#include "policy/policy.h"
#include "store/lease/leased_meter.h"
#include "store/memory/memory_store.h"
#include "weir/result.h"

namespace weir::decide {

// The figures of a rate that answers show; computed once.
struct RateFigures {
  int64_t quota = 0;        // B; 0 when the rate denies everything.
  int64_t window_s = 0;     // ceil(B * P / N) in seconds; 0 for parallel.
  int64_t interval_ns = 0;  // P / N, when that is whole; else 0.

  static RateFigures Of(const core::MeterSpec& spec);
};

struct BoundVariant {
  const core::Meter* meter = nullptr;  // Null: unlimited.
  // Not null: nodes lease units of these counters.
  const store::lease::LeasedMeter* leased = nullptr;
  base::KeyHasher::State key_front;
  RateFigures figures;
};

struct BoundLimit {
  const policy::Limit* limit = nullptr;
  metrics::LimitSeries series;
  std::vector<BoundVariant> variants;  // By the index of policy::Limit::variants.
  std::vector<int> distinct;           // One variant for each identity, unlimited ones left out.
  bool per_client = false;

  // The counter's key for the call's values of `per`; a missing one counts as empty.
  base::Key128 KeyOf(int variant, const policy::Attributes& call) const {
    base::KeyHasher::State state = variants[static_cast<size_t>(variant)].key_front;
    for (const int attribute : limit->per) state.Add(call.Get(attribute));
    return state.Finish();
  }

  // The counter's name on a shared store: the same on every node. About 1 µs.
  base::Key128 SharedKeyOf(int variant, const policy::Attributes& call,
                           const base::HmacKeys& keys) const;

  // The same of a limit that binds to descriptors; `period_ns` as in DescriptorCounter.
  base::Key128 KeyOf(std::span<const policy::DescriptorEntry> entries, int64_t period_ns) const {
    base::KeyHasher::State state = variants[0].key_front;
    for (const policy::DescriptorEntry& entry : entries) state.Add(entry.value);
    if (period_ns > 0) state.Add(static_cast<uint64_t>(period_ns));
    return state.Finish();
  }

  // Which variant governs these attributes if `match` holds. A scan: for the admin door, not for
  // calls.
  int VariantByOverrides(const policy::Attributes& call) const;
};

struct BoundPolicy {
  std::shared_ptr<const policy::Policy> policy;
  std::vector<BoundLimit> limits;                // By policy::Limit::index.
  std::vector<const BoundLimit*> by_attributes;  // Those that apply to calls by attributes.
  std::unique_ptr<identity::IdentityResolver> identity;

  // Errors: a rate that does not compile, unusable identity keys. Reads the key file; blocks on it.
  // `leased` is there with a shared store, and must outlive this too.
  static Result<std::shared_ptr<const BoundPolicy>> Bind(
      std::shared_ptr<const policy::Policy> policy, store::MemoryStore& store,
      store::lease::LeasedMeters* leased, metrics::WeirMetrics& metrics,
      const base::KeyHasher& hasher);
};

}  // namespace weir::decide
