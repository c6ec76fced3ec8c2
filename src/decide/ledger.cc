#include "decide/ledger.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace weir::decide {
namespace {

constexpr size_t kShards = 64;

struct Entry {
  uint64_t high = 0;
  int64_t until_ns = 0;  // Forgotten from then on.
  Reservation reservation;
  std::optional<Settled> answer;  // Once ended.
};

using Expiry = std::pair<int64_t, uint64_t>;  // Until when, and the id's low half.

Error Unknown() { return {ErrorCode::kNotFound, "reservation: unknown or expired"}; }

}  // namespace

struct alignas(64) Ledger::Shard {
  std::mutex mutex;
  std::unordered_map<uint64_t, Entry> entries;
  std::set<Expiry> open;      // Of entries without an answer.
  std::set<Expiry> answered;  // Of entries with one.

  void Drop(std::set<Expiry>& among, std::set<Expiry>::iterator which) {
    entries.erase(which->second);
    among.erase(which);
  }
  void DropExpired(int64_t now_ns) {
    for (std::set<Expiry>* among : {&open, &answered}) {
      while (!among->empty() && among->begin()->first <= now_ns) Drop(*among, among->begin());
    }
  }
  Entry* Find(ReservationId id, int64_t now_ns) {
    const auto found = entries.find(id.low);
    if (found == entries.end() || found->second.high != id.high || found->second.until_ns <= now_ns)
      return nullptr;
    return &found->second;
  }
};

Ledger::Ledger(LedgerOptions options)
    : open_per_shard_(std::max<size_t>(options.max_reservations / kShards, 1)),
      answers_per_shard_(std::max<size_t>(options.max_answers / kShards, 1)),
      shards_(std::make_unique<Shard[]>(kShards)) {}

Ledger::~Ledger() = default;

Ledger::Shard& Ledger::ShardOf(ReservationId id) const { return shards_[id.low >> 58]; }

Result<void> Ledger::Open(ReservationId id, Reservation reservation, int64_t now_ns) {
  Shard& shard = ShardOf(id);
  const std::lock_guard lock(shard.mutex);
  shard.DropExpired(now_ns);
  if (shard.open.size() >= open_per_shard_ || shard.entries.contains(id.low)) {
    return MakeError(ErrorCode::kResourceExhausted,
                     "reserve: too many reservations are open; settle or release some");
  }
  const int64_t until_ns = reservation.expires_ns;
  shard.entries.emplace(id.low, Entry{id.high, until_ns, std::move(reservation), std::nullopt});
  shard.open.emplace(until_ns, id.low);
  return {};
}

Result<Settled> Ledger::End(ReservationId id, int64_t now_ns,
                            const std::function<Settled(const Reservation&)>& end) {
  Shard& shard = ShardOf(id);
  const std::lock_guard lock(shard.mutex);
  Entry* const entry = shard.Find(id, now_ns);
  if (entry == nullptr) return std::unexpected(Unknown());
  if (entry->answer) return *entry->answer;
  const Settled settled = end(entry->reservation);
  shard.open.erase({entry->until_ns, id.low});
  if (!entry->reservation.remember) {
    shard.entries.erase(id.low);
    return settled;
  }
  if (shard.answered.size() >= answers_per_shard_)
    shard.Drop(shard.answered, shard.answered.begin());
  entry->answer = settled;
  entry->until_ns = std::max(entry->until_ns, now_ns + kAnswerKeptNs);
  entry->reservation.charges = {};
  shard.answered.emplace(entry->until_ns, id.low);
  return settled;
}

bool Ledger::Prolong(ReservationId id, int64_t now_ns, int64_t expires_ns,
                     const std::function<bool(const Reservation&)>& renew) {
  Shard& shard = ShardOf(id);
  const std::lock_guard lock(shard.mutex);
  Entry* const entry = shard.Find(id, now_ns);
  if (entry == nullptr || entry->answer || !renew(entry->reservation)) return false;
  shard.open.erase({entry->until_ns, id.low});
  entry->until_ns = entry->reservation.expires_ns = expires_ns;
  shard.open.emplace(expires_ns, id.low);
  return true;
}

size_t Ledger::open_count() const {
  size_t count = 0;
  for (size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].mutex);
    count += shards_[i].open.size();
  }
  return count;
}

ReservationId RandomIds::Next() {
  if (next_ + 2 > words_.size()) {
    char* const bytes = reinterpret_cast<char*>(words_.data());
    for (size_t filled = 0; filled < sizeof(words_);) {
      const ssize_t got = getrandom(bytes + filled, sizeof(words_) - filled, 0);
      if (got < 0 && errno != EINTR) std::abort();
      if (got > 0) filled += static_cast<size_t>(got);
    }
    next_ = 0;
  }
  const ReservationId id{words_[next_], words_[next_ + 1]};
  next_ += 2;
  return id.low != 0 ? id : Next();
}

}  // namespace weir::decide
