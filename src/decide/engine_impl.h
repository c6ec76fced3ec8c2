// What an Engine holds; seen by the engine and its workers alone.
//
// Thread safety: members are thread-safe themselves or guarded as said.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "base/hmac_key.h"
#include "decide/bound_policy.h"
#include "decide/engine.h"

namespace weir::decide {

struct Engine::Impl {
  Impl(EngineOptions given, IdHasher ids);

  // Counters of rules that come with calls are named by (algorithm, key) alone.
  base::KeyHasher::State AdHocFront(Algorithm algorithm) const {
    return base::KeyHasher::State(ad_hoc_front).Add(static_cast<uint64_t>(algorithm));
  }

  EngineOptions options;
  const int64_t start_mono_ns;
  const base::KeyHasher hasher;
  const base::KeyHasher::State
      ad_hoc_front;  // A number first, so that no limit's identity can spell it.
  const base::KeyHasher::State client_front;
  const base::KeyHasher::State descriptor_front;  // Of rates that come with descriptors.
  const IdHasher ids;
  std::optional<base::HmacKeys> shared_keys;  // With a shared store.
  store::lease::LeasedMeters leased;
  store::MemoryStore store;
  metrics::WeirMetrics metrics;
  Ledger ledger;

  // Workers compare `generation` per decision and take `bound` under the mutex only when it has
  // moved.
  std::atomic<uint64_t> generation{1};
  mutable std::mutex bound_mutex;
  std::shared_ptr<const BoundPolicy> bound;  // Guarded by bound_mutex.
  std::mutex reload_mutex;                   // One reload at a time.
};

}  // namespace weir::decide
