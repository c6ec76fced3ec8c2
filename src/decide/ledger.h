// Ledger: reservations by id: what each one charged, until it is settled, released or expires.
//
// A reservation that expires is forgotten: its costs stand as charged, and its parallel slots free
// themselves in the store, which knows their leases. One that has ended keeps its answer for a
// while, so that a repeated settle or release is told the same and changes nothing.
//
//   Ledger ledger({.max_reservations = 1'000'000});
//   ledger.Open(id, {.charges = charges, .costs = costs, .expires_ns = now_ns + ttl_ns}, now_ns);
//   ledger.End(id, now_ns, [&](const Reservation& held) { return GiveBack(held); });
//
// Thread safety: every method may be called from any number of threads; ids are spread over shards
// with a mutex each.
// Bounds: at most max_reservations are open and max_answers ended ones are remembered, to the
// precision of a shard.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/keyed_hash.h"
#include "core/meter.h"
#include "core/step.h"
#include "decide/verdict.h"
#include "weir/result.h"

namespace weir::store::lease {
struct LeasedMeter;
}

namespace weir::decide {

// What stands after a reservation ended.
struct Settled {
  std::array<int64_t, kUnitCount> charged{};  // By unit; usd in micro-dollars.
  uint8_t given = 0;                          // Bit i: charged[i] counts.

  friend bool operator==(const Settled&, const Settled&) = default;
};

// One limit's part in a reservation.
struct HeldCharge {
  const core::Meter* meter = nullptr;
  base::Key128 key;
  core::Receipt receipt;
  int64_t amount = 0;  // 0: the limit was only looked at, and can still be charged by a settle.
  Unit unit = Unit::kRequests;
  uint64_t tag = 0;  // With a shared store: where it keeps the counter, and who decided.
  Source source = Source::kMemory;
  const store::lease::LeasedMeter* leased = nullptr;
};

struct Reservation {
  std::vector<HeldCharge> charges;
  Costs costs;             // As they were reserved.
  int64_t expires_ns = 0;  // On the clock of core::Now::mono_ns.
  bool remember =
      true;  // Whether its answer is kept after its end; false where nobody can ask again.
};

struct LedgerOptions {
  size_t max_reservations = 1'000'000;
  size_t max_answers = 65'536;
};

class Ledger {
 public:
  // An ended reservation's answer is kept at least this long, while max_answers allows.
  static constexpr int64_t kAnswerKeptNs = 60'000'000'000;

  explicit Ledger(LedgerOptions options);
  ~Ledger();

  // kResourceExhausted when as many reservations are open as may be. Allocates.
  Result<void> Open(ReservationId id, Reservation reservation, int64_t now_ns);

  // Ends a reservation: `end` runs once, under the shard's mutex, and what it says is the answer to
  // this and every later call. kNotFound: unknown or expired.
  Result<Settled> End(ReservationId id, int64_t now_ns,
                      const std::function<Settled(const Reservation&)>& end);

  // Moves an open reservation's expiry to `expires_ns` if `renew` agrees. False: unknown, ended or
  // expired.
  bool Prolong(ReservationId id, int64_t now_ns, int64_t expires_ns,
               const std::function<bool(const Reservation&)>& renew);

  size_t open_count() const;

 private:
  struct Shard;
  Shard& ShardOf(ReservationId id) const;

  const size_t open_per_shard_;
  const size_t answers_per_shard_;
  std::unique_ptr<Shard[]> shards_;
};

// 128 random bits each, drawn from the operating system in batches. Belongs to one thread.
class RandomIds {
 public:
  // `low` is never 0. Aborts when the system gives no random bytes.
  ReservationId Next();

 private:
  std::array<uint64_t, 128> words_{};
  size_t next_ = words_.size();
};

}  // namespace weir::decide
