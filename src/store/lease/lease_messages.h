// What a node and the store say to each other about a lease: plain values, as a script call and its
// reply carry them.
//
// A node asks (RefillRequest), the store answers (Grant) or does not; later the node gives back
// what it did not spend (GiveBackRequest). Three numbers make every message safe to lose, to delay
// and to reorder:
//   number    rises with every message of a holder; the store acts on a rising number only.
//   applied   the last grant that the node took. Sending a message is a promise never to take an
//             earlier grant, so the store takes back a grant that was not applied.
//   since_us  when the store registered the holder. It differs after an expiry, a loss of the
//             store's data or a change of window, and then what the node held before is void on
//             both sides.
//
// Thread safety: plain values. Times on the store's clock, in microseconds.
#pragma once

#include <cstdint>

namespace weir::store::lease {

struct RefillRequest {
  uint64_t holder = 0;   // Random, one per book and process start; never 0. Below 2^53.
  int64_t number = 0;    // At least 1.
  int64_t since_us = 0;  // As of the last grant applied; 0: none.
  int64_t applied = 0;   // Number of the last grant applied; 0: none.
  int64_t left = 0;      // Units unspent when this was sent.
  int64_t want = 0;      // Units the node would like to hold at most.
  int64_t term_us = 0;   // How long the lease is to last from when the store sees this.

  friend bool operator==(const RefillRequest&, const RefillRequest&) = default;
};

enum class GrantStatus : uint8_t {
  kGranted = 0,      // Written: `units` (perhaps 0) are debited, the lease is prolonged.
  kStale = 1,        // A later number was there already. Nothing changed.
  kNoRoom = 2,       // As many holders as are kept. Nothing changed.
  kDraining = 3,     // Leases are running out to let a large cost pass. Nothing changed.
  kOtherWindow = 4,  // Neither of the windows sent holds the store's clock. Nothing changed.
};

struct Grant {
  GrantStatus status = GrantStatus::kGranted;
  int64_t number = 0;     // Of the request.
  int64_t since_us = 0;   // Differs from the request's: what the node held before is void.
  int64_t units = 0;      // Newly debited for this holder.
  int64_t allotment = 0;  // The most this holder may hold; left + units is never above it.
  int64_t lasts_us = 0;   // From when the store saw the request. The node counts from when it
                          // sent it, which is earlier.
  int64_t holders = 0;    // Registered, this one included.
  int64_t available = 0;  // Units still in the shared capacity.
  int64_t reset_us = 0;   // Until the shared capacity is full again.
  int64_t retry_us = 0;   // When more was wanted than there was: after this it is worth asking.

  friend bool operator==(const Grant&, const Grant&) = default;
};

struct GiveBackRequest {
  uint64_t holder = 0;
  int64_t number = 0;
  int64_t since_us = 0;
  int64_t applied = 0;
  int64_t left = 0;  // Units unspent, never to be spent again.

  friend bool operator==(const GiveBackRequest&, const GiveBackRequest&) = default;
};

}  // namespace weir::store::lease
