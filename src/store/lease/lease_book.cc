#include "store/lease/lease_book.h"

#include <bit>
#include <cassert>

namespace weir::store::lease {
namespace {

constexpr int64_t kNsPerUs = 1000;

int64_t LeftAt(int64_t left, int64_t until_ns, int64_t now_ns) {
  return now_ns < until_ns ? left : 0;
}

}  // namespace

LeaseBook::LeaseBook(const Options& options) : options_(options) {
  assert(options.holder != 0 && options.margin_ns < options.term_ns);
  const size_t sets = std::bit_ceil(std::max(options.keys, kWays)) / kWays;
  set_mask_ = sets - 1;
  tags_.resize(sets * kWays);
  entries_.resize(sets * kWays);
}

LeaseBook::Entry* LeaseBook::Find(Key128 key) {
  const uint64_t tag = TagOf(key);
  for (size_t i = SetOf(key), end = i + kWays; i != end; ++i) {
    if (tags_[i] == tag && entries_[i].key == key) return &entries_[i];
  }
  return nullptr;
}

LeaseBook::Entry* LeaseBook::FindOrAdd(Key128 key, const LeaseTerms& terms, int64_t now_ns) {
  Entry* entry = Find(key);
  if (entry == nullptr) {
    for (Entry *other = &entries_[SetOf(key)], *end = other + kWays; other != end; ++other) {
      if (other->fence == 0) {
        entry = other;
        break;
      }
      const bool holds = other->in_flight || LeftAt(other->left, other->until_ns, now_ns) > 0;
      if (!holds && (entry == nullptr || other->used_ns < entry->used_ns)) entry = other;
    }
    if (entry == nullptr) return nullptr;
    *entry = {.key = key};
    tags_[static_cast<size_t>(entry - entries_.data())] = TagOf(key);
  }
  if (entry->fence != terms.fence) Void(entry, terms.fence);
  return entry;
}

// Forgets the lease. No grant that was ever asked for is taken after this, and none of them may be
// reported as not taken: it may have been, and been spent.
void LeaseBook::Void(Entry* entry, uint64_t fence) {
  entry->fence = fence;
  entry->left = 0;
  entry->until_ns = 0;
  entry->since_us = 0;
  entry->allotment = 0;
  entry->in_flight = false;
  entry->awaited = false;
  entry->number = last_number_;
  entry->applied = last_number_;
}

void LeaseBook::Count(Entry* entry, int64_t cost, int64_t now_ns) const {
  const int64_t span_ns = now_ns - entry->span_from_ns;
  if (span_ns >= options_.horizon_ns) {
    const bool adjacent = span_ns < 2 * options_.horizon_ns;
    entry->units_before = adjacent ? entry->units : 0;
    entry->calls_before = adjacent ? entry->calls : 0;
    entry->units = entry->calls = 0;
    entry->span_from_ns = now_ns;
  }
  entry->units = std::min(entry->units + cost, kMaxUnits);
  ++entry->calls;
  entry->used_ns = now_ns;
}

bool LeaseBook::WantsMore(const Entry& entry, const LeaseTerms& terms, int64_t now_ns) const {
  if (now_ns < entry.next_ask_ns) return false;
  if (entry.in_flight && now_ns - entry.asked_ns < options_.patience_ns) return false;
  const int64_t left = LeftAt(entry.left, entry.until_ns, now_ns);
  if (left == 0 || entry.allotment == 0) {
    const int64_t calls = std::max(entry.calls, entry.calls_before);
    const int64_t calls_per_term =
        static_cast<int64_t>(static_cast<double>(calls) * static_cast<double>(options_.term_ns) /
                             static_cast<double>(options_.horizon_ns));
    return LeasePays(terms.burst, entry.holders, calls_per_term);
  }
  if (2 * left < entry.allotment) return true;  // Low water.
  if (now_ns < entry.next_raise_ns) return false;
  const int64_t want = std::max(entry.units, entry.units_before);
  return want >= 2 * entry.allotment || entry.until_ns - now_ns < options_.term_ns / 3;
}

LeaseBook::Answer LeaseBook::Spend(Key128 key, const LeaseTerms& terms, int64_t cost,
                                   int64_t now_ns) {
  Entry* entry = FindOrAdd(key, terms, now_ns);
  if (entry == nullptr) return {};
  Count(entry, cost, now_ns);
  Answer answer;
  if (now_ns < entry->until_ns && cost <= entry->left) {
    entry->left -= cost;
    answer.spent = true;
  }
  answer.number = entry->number;
  answer.since_us = entry->since_us;
  answer.until_ns = entry->until_ns;
  answer.ask = WantsMore(*entry, terms, now_ns);
  return answer;
}

bool LeaseBook::CanPay(Key128 key, const LeaseTerms& terms, int64_t cost, int64_t now_ns) const {
  const Entry* entry = Find(key);
  return entry != nullptr && entry->fence == terms.fence && now_ns < entry->until_ns &&
         cost <= entry->left;
}

void LeaseBook::Undo(Key128 key, const LeaseTerms& terms, int64_t cost, const Answer& paid,
                     int64_t now_ns) {
  Entry* entry = Find(key);
  if (!paid.spent || now_ns >= paid.until_ns || entry == nullptr) return;
  if (entry->fence == terms.fence && entry->number == paid.number &&
      entry->since_us == paid.since_us) {
    entry->left += cost;
  }
}

std::optional<RefillRequest> LeaseBook::Ask(Key128 key, const LeaseTerms& terms, int64_t now_ns) {
  Entry* entry = Find(key);
  if (entry == nullptr || entry->fence != terms.fence) return std::nullopt;
  if (entry->in_flight && now_ns - entry->asked_ns < options_.patience_ns) return std::nullopt;
  entry->left = LeftAt(entry->left, entry->until_ns, now_ns);
  entry->number = ++last_number_;
  entry->asked_ns = now_ns;
  entry->in_flight = true;
  entry->awaited = true;
  const int64_t want = std::max({entry->units, entry->units_before, kMinShareUnits});
  return RefillRequest{.holder = options_.holder,
                       .number = entry->number,
                       .since_us = entry->since_us,
                       .applied = entry->applied,
                       .left = entry->left,
                       .want = std::min(want, terms.burst),
                       .term_us = options_.term_ns / kNsPerUs};
}

void LeaseBook::Apply(Key128 key, const Grant& grant, int64_t now_ns) {
  Entry* entry = Find(key);
  if (entry == nullptr || !entry->awaited || grant.number != entry->number) return;
  entry->in_flight = false;
  entry->awaited = false;
  entry->next_raise_ns = now_ns + options_.horizon_ns / 4;
  if (grant.status != GrantStatus::kGranted) {
    entry->next_ask_ns = now_ns + std::max(grant.retry_us * kNsPerUs, options_.horizon_ns / 16);
    return;
  }
  const int64_t until_ns = entry->asked_ns + grant.lasts_us * kNsPerUs - options_.margin_ns;
  // Too late to be of use, and not applied, so that the store takes it back.
  if (now_ns >= until_ns) return;
  const bool same = entry->since_us == grant.since_us;
  entry->left = (same ? LeftAt(entry->left, entry->until_ns, now_ns) : 0) + grant.units;
  entry->until_ns = until_ns;
  entry->since_us = grant.since_us;
  entry->applied = grant.number;
  entry->allotment = grant.allotment;
  entry->holders = std::max<int64_t>(grant.holders, 1);
  entry->available = grant.available;
  entry->full_ns = now_ns + grant.reset_us * kNsPerUs;
  // Where the store was short of units, asking for each single one would cost more than it brings.
  if (2 * entry->left < entry->allotment || entry->allotment == 0) {
    entry->next_ask_ns =
        now_ns + std::max(std::min(grant.retry_us * kNsPerUs, options_.term_ns / 4),
                          options_.horizon_ns / 16);
  }
}

void LeaseBook::Failed(Key128 key, int64_t number, int64_t now_ns) {
  Entry* entry = Find(key);
  if (entry == nullptr || number != entry->number || !entry->in_flight) return;
  entry->in_flight = false;
  entry->next_ask_ns = now_ns + options_.horizon_ns / 16;
}

void LeaseBook::Hear(Key128 key, const LeaseTerms& terms, int64_t available, int64_t reset_ns,
                     int64_t now_ns) {
  Entry* entry = Find(key);
  if (entry == nullptr || entry->fence != terms.fence) return;
  entry->available = available;
  entry->full_ns = now_ns + reset_ns;
}

void LeaseBook::Drop(Key128 key) {
  if (Entry* entry = Find(key); entry != nullptr) Void(entry, entry->fence);
}

bool LeaseBook::Holds(Key128 key, int64_t now_ns) const {
  const Entry* entry = Find(key);
  return entry != nullptr && (entry->in_flight || now_ns < entry->until_ns);
}

bool LeaseBook::Idle(const Entry& entry, int64_t now_ns) const {
  if (entry.fence == 0 || entry.since_us == 0 || now_ns >= entry.until_ns) return false;
  if (entry.in_flight && now_ns - entry.asked_ns < options_.patience_ns) return false;
  return now_ns - entry.used_ns >= options_.horizon_ns / 2;
}

GiveBackRequest LeaseBook::TakeBack(Entry* entry, int64_t now_ns) {
  const GiveBackRequest back{.holder = options_.holder,
                             .number = ++last_number_,
                             .since_us = entry->since_us,
                             .applied = entry->applied,
                             .left = LeftAt(entry->left, entry->until_ns, now_ns)};
  Void(entry, entry->fence);
  return back;
}

LeaseBook::Standing LeaseBook::StandingOf(Key128 key, const LeaseTerms& terms,
                                          int64_t now_ns) const {
  const Entry* entry = Find(key);
  if (entry == nullptr || entry->fence != terms.fence) return {};
  return {LeftAt(entry->left, entry->until_ns, now_ns), entry->available,
          std::max<int64_t>(entry->full_ns - now_ns, 0)};
}

}  // namespace weir::store::lease
