#include "store/lease/deny_cache.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/step.h"

namespace weir::store::lease {

DenyCache::DenyCache(const Options& options) : options_(options) {
  const size_t sets = std::bit_ceil(std::max(options.slots, kWays)) / kWays;
  set_mask_ = sets - 1;
  slots_.resize(sets * kWays);
}

void DenyCache::Put(Key128 key, int64_t cost, int64_t sent_ns, int64_t retry_after_ns,
                    bool reservations, const Standing& standing) {
  const int64_t longest_ns =
      reservations ? std::min(options_.max_ns, options_.reserved_max_ns) : options_.max_ns;
  const int64_t lasts_ns =
      retry_after_ns == core::kNever ? longest_ns : std::min(retry_after_ns, longest_ns);
  if (lasts_ns <= 0 || cost <= 0) return;
  const int64_t until_ns = sent_ns + lasts_ns;
  const int64_t ends_ns =
      retry_after_ns == core::kNever || retry_after_ns > kForeverNs - std::max<int64_t>(sent_ns, 0)
          ? kForeverNs
          : sent_ns + retry_after_ns;
  const Slot entry{
      .key = key,
      .cost = cost,
      .until_ns = until_ns,
      .ends_ns = ends_ns,
      .generation = generation_,
      .rate = standing.rate,
      .remaining = standing.remaining,
      .full_ns = sent_ns + std::clamp<int64_t>(standing.reset_after_ns, 0, kForeverNs / 2)};
  Slot* victim = nullptr;
  for (Slot *slot = &slots_[SetOf(key)], *end = slot + kWays; slot != end; ++slot) {
    if (Holds(*slot, key)) {
      // Two true sentences, room for one: the one that ends later, or else denies more. One that
      // has run out is true of nothing, and one under another rate is of no use to the next call.
      const bool holds = slot->until_ns > sent_ns && slot->rate == entry.rate;
      if (holds && slot->cost <= cost && slot->until_ns >= until_ns) return;
      if (holds && slot->cost < cost) return;
      *slot = entry;
      return;
    }
    const auto ends = [&](const Slot& it) {
      return it.generation == generation_ ? it.until_ns : std::numeric_limits<int64_t>::min();
    };
    if (victim == nullptr || ends(*slot) < ends(*victim)) victim = slot;
  }
  *victim = entry;
}

std::optional<DenyCache::Denial> DenyCache::Find(Key128 key, int64_t cost, int64_t now_ns,
                                                 uint32_t rate) const {
  for (const Slot *slot = &slots_[SetOf(key)], *end = slot + kWays; slot != end; ++slot) {
    if (!Holds(*slot, key)) continue;
    if (cost < slot->cost || cost <= 0 || slot->until_ns <= now_ns) return std::nullopt;
    if (slot->rate != rate) return std::nullopt;
    return Denial{
        .cost = slot->cost,
        .wait_ns = slot->ends_ns == kForeverNs ? core::kNever : slot->ends_ns - now_ns,
        .standing = {slot->remaining, std::max<int64_t>(slot->full_ns - now_ns, 0), slot->rate}};
  }
  return std::nullopt;
}

void DenyCache::Drop(Key128 key) {
  for (Slot *slot = &slots_[SetOf(key)], *end = slot + kWays; slot != end; ++slot) {
    if (Holds(*slot, key)) *slot = {};
  }
}

}  // namespace weir::store::lease
