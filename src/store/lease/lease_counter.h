// The store's side of a lease, for one key: what a script does to the state it finds there. This is
// the plain form that the script is held to, and what the simulation runs.
//
// The state is a bucket of capacity B (or the count of one window) beside the registered holders.
// Each holder has an allotment q, the most it may hold; the reserve R is the sum over the holders
// of reserved leases. Units are debited when they are granted, before anybody spends them:
//
//   used + n <= B - R     for every debit, to a lease or to a decision on the store itself
//
// so that in any interval of length t at most R + (B - R) + r*t = B + r*t are spent. What keeps
// this true when R changes: available = B - R - used never rises by it. A reserve that is let go
// arrives as used units and comes back at the rate r, like everything else.
//
//   LeaseState state;
//   Grant grant = Refill(&state, terms, request, windows, now_us);
//   TakeReply reply = Take(&state, terms, /*cost=*/1, windows, now_us);
//
// The steps never read a clock: `now_us` is the store's. It may go back a little; a state more than
// a second ahead of it is healed without forgiving a unit. A denial changes nothing, save that a
// cost which only the reserve keeps out sends the holders home (see Take).
//
// Two definitions of one limit (a rollout) share the state and keep what is used: while both are in
// use at most the larger capacity + the faster rate * t are spent in any interval.
//
// Bounds when the store itself fails: a failover gives back at most what the writes it lost had
// taken from `available`; the loss of everything at most B. A store's clock that jumps forward by j
// gives back r*j, and at most B/2 more when j exceeds the margin that nodes keep.
//
// Thread safety: a state belongs to its caller.
#pragma once

#include <cstdint>
#include <vector>

#include "core/step.h"
#include "store/lease/lease_messages.h"
#include "store/lease/lease_terms.h"

namespace weir::store::lease {

// Holders of one key; who comes later is decided exactly until one leaves.
inline constexpr size_t kMaxHolders = 128;
// A state further ahead of the clock than this comes from a fault of the clock.
inline constexpr int64_t kHealSlackUs = 1'000'000;

struct Holder {
  uint64_t id = 0;
  bool reserved = false;
  int64_t number = 0;
  int64_t since_us = 0;
  int64_t allotment = 0;
  int64_t granted = 0;  // By the request `number`; taken back if the holder never applied it.
  int64_t until_us = 0;

  friend bool operator==(const Holder&, const Holder&) = default;
};

struct LeaseState {
  uint64_t fence = 0;  // Of the terms that wrote it. 0: nothing was ever written.
  int64_t ticks_per_unit = 1;
  int64_t ticks_per_us = 0;
  int64_t born_us = 0;  // Takes before this are none of this state's: it was lost or reset since.
  int64_t base_us = 0;  // When `level` held.
  int64_t level = 0;    // Ticks used; of a window, units.
  WindowBounds window;
  int64_t drain_until_us = 0;
  std::vector<Holder> holders;  // In the order of their registration; at most kMaxHolders.

  friend bool operator==(const LeaseState&, const LeaseState&) = default;
};

// A decision made on the store, for a limit whose leases others may hold. Times in microseconds.
struct TakeReply {
  bool other_window = false;  // Nothing was decided: as GrantStatus::kOtherWindow.
  bool allowed = false;
  int64_t remaining = 0;  // Of the shared capacity: what nodes hold is not in it.
  int64_t reset_us = 0;
  int64_t retry_us = 0;   // core::kNever: waiting never helps.
  core::Receipt receipt;  // For PutBack; at_ns is the store's clock in nanoseconds.

  friend bool operator==(const TakeReply&, const TakeReply&) = default;
};

// Asks for units, prolongs the lease and reports what is left, all in one. A holder asks for
// `want` at most; it gets an allotment of at most floor(B/2) / holders, raised by at most 1/(2N) of
// what is available at a time, and units up to it, again at most 1/(2N) of what is available, but
// one at least if there is one.
Grant Refill(LeaseState* state, const LeaseTerms& terms, const RefillRequest& request,
             const Windows& windows, int64_t now_us);

// Ends a lease: what was unspent goes back to the shared capacity, once. False: nothing was there
// to end (expired, ended already, another registration), and nothing changed.
bool GiveBack(LeaseState* state, const LeaseTerms& terms, const GiveBackRequest& request,
              const Windows& windows, int64_t now_us);

// Decides `cost` (0 peeks) out of the shared capacity. A cost of at most B that only the reserve
// keeps out is denied, and no lease is granted or prolonged until the last one has run out and as
// long again: then the whole of B is there. retry_us says when.
TakeReply Take(LeaseState* state, const LeaseTerms& terms, int64_t cost, const Windows& windows,
               int64_t now_us);

// What Take would say, changing nothing at all.
TakeReply Peek(LeaseState state, const LeaseTerms& terms, int64_t cost, const Windows& windows,
               int64_t now_us);

// Gives back `units` of a Take of cost n: at most n less what has refilled since, so that however
// many are put back in whatever order, no unit comes back twice. For a late reply, a denial by
// another limit, or a settle; once per Take. False: nothing was left to give back, the state was
// lost or reset since, or the limit's definition has changed.
bool PutBack(LeaseState* state, const LeaseTerms& terms, core::Receipt receipt, int64_t units,
             const Windows& windows, int64_t now_us);

// Counts `units` whatever remains: debt, repaid by waiting.
void Post(LeaseState* state, const LeaseTerms& terms, int64_t units, const Windows& windows,
          int64_t now_us);

// How long the state must be kept: after so many microseconds it says what an empty one says.
int64_t KeepUs(const LeaseState& state, int64_t now_us);

// The units set apart for holders.
int64_t ReserveUnits(const LeaseState& state);

}  // namespace weir::store::lease
