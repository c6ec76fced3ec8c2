// What a node holds of leased limits: units that the store has debited for it, to spend without a
// round trip.
//
//   LeaseBook book({.holder = random});
//   LeaseBook::Answer answer = book.Spend(key, terms, cost, now_ns);
//   if (answer.ask) Send(book.Ask(key, terms, now_ns));  // Prefetch: nobody waits for it.
//   if (answer.spent) return Admitted();                 // No round trip.
//   ... decide on the store: Take, lease_counter.h ...   // Cold, small, or run dry.
//
//   book.Apply(key, grant, now_ns);          // A reply.
//   book.Failed(key, number, now_ns);        // None came in time.
//   book.Sweep(now_ns, 256, send_back);      // Every few milliseconds.
//   book.GiveBackAll(now_ns, send_back);     // Shutdown, or a policy that changes.
//
// Invariants, on which the bounds of lease_counter.h rest:
//   1. A unit is spent at most once, and only before the send time of the request that last
//      prolonged its lease + the term - margin_ns. After that instant it is gone: neither spent nor
//      given back.
//   2. A message with number k is a promise: no grant before k is taken after it, and what it
//      reports as left is all there is.
//   3. What was given back or what the store no longer knows (since_us) is gone.
//   4. Units spent under one definition of a limit come from leases under that definition.
// margin_ns pays for the drift between the node's clock and the store's over a term, and for a
// clock that stands still. A node whose clock may stop for longer (a suspended machine:
// CLOCK_MONOTONIC does not count it, CLOCK_BOOTTIME does) can spend after the store's expiry, at
// most what it held.
//
// Memory: a fixed table, eight entries to a set; a newcomer replaces the entry of its set that was
// used longest ago and holds nothing; if there is none, its key is decided exactly. Nothing
// allocates after construction; Spend is O(1).
// Thread safety: one thread: a book per event loop, each a holder of its own.
// Times: the node's monotonic clock, ns; messages carry the store's µs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/keyed_hash.h"
#include "store/lease/lease_messages.h"
#include "store/lease/lease_terms.h"

namespace weir::store::lease {

class LeaseBook {
 public:
  struct Options {
    uint64_t holder = 0;  // REQUIRED: random, in [1, 2^53), drawn anew at every start.
    size_t keys = 16384;  // Rounded up to a power of two, at least 8. About 170 bytes each.
    int64_t term_ns = 2'000'000'000;
    int64_t margin_ns = 100'000'000;     // Below the term.
    int64_t horizon_ns = 1'000'000'000;  // Units are asked for so long ahead: q = rate * horizon.
    int64_t patience_ns = 200'000'000;   // A request unanswered for so long may be followed by
                                         // another.
  };
  struct Answer {
    bool spent = false;  // The cost is paid from the lease.
    bool ask = false;    // Call Ask now.
    // For Undo: the lease that paid.
    int64_t number = 0;
    int64_t since_us = 0;
    int64_t until_ns = 0;
  };
  // What is known of the limit as a whole, for the headers of an answer.
  struct Standing {
    int64_t left = 0;       // Units held here.
    int64_t available = 0;  // In the shared capacity when the store spoke last.
    int64_t reset_ns = 0;   // Until that is full, as far as is known.
  };

  explicit LeaseBook(const Options& options);

  // Pays `cost` (0: nothing to pay, always true where a lease is held) from what is held, if that
  // is enough. Counts the call towards the rate of use either way. Terms of another fence than
  // before void what was held: give it back first (GiveBackAll) when a policy changes.
  Answer Spend(Key128 key, const LeaseTerms& terms, int64_t cost, int64_t now_ns);

  // Whether Spend would pay, changing nothing.
  bool CanPay(Key128 key, const LeaseTerms& terms, int64_t cost, int64_t now_ns) const;

  // Takes a Spend back, for a decision that another limit denied in the same instant or a little
  // later; `paid` is what Spend answered. Once another message has been sent, or the lease has run
  // out, the units are lost instead: the store has been told that they are spent.
  void Undo(Key128 key, const LeaseTerms& terms, int64_t cost, const Answer& paid, int64_t now_ns);

  // The request to send after Spend said `ask`, at once or with others at the end of the tick; its
  // number matches the reply. Nothing: the key has been asked for meanwhile, or its entry is gone.
  std::optional<RefillRequest> Ask(Key128 key, const LeaseTerms& terms, int64_t now_ns);
  // The reply, however late. One that was overtaken by a later message is ignored.
  void Apply(Key128 key, const Grant& grant, int64_t now_ns);
  // The request will not be answered, or its answer was unreadable. A reply may come all the same.
  void Failed(Key128 key, int64_t number, int64_t now_ns);

  // What the store said of the shared capacity in an answer to something else.
  void Hear(Key128 key, const LeaseTerms& terms, int64_t available, int64_t reset_ns,
            int64_t now_ns);

  // Forgets what is held of a key, for a counter that was reset: neither spent nor given back.
  void Drop(Key128 key);

  // Visits the next `entries` of the table and gives back leases that nobody has used for half a
  // horizon, or that run out soon unused: call visit(Key128, const GiveBackRequest&) and send it.
  // Over a whole term every entry should be visited several times.
  template <typename Visit>
  void Sweep(int64_t now_ns, size_t entries, Visit visit) {
    for (size_t i = std::min(entries, entries_.size()); i > 0; --i) {
      Entry& entry = entries_[sweep_at_++ & (entries_.size() - 1)];
      if (Idle(entry, now_ns)) visit(entry.key, TakeBack(&entry, now_ns));
    }
  }
  // All of it; grants on their way are void from here on. A second call finds nothing.
  template <typename Visit>
  void GiveBackAll(int64_t now_ns, Visit visit) {
    for (Entry& entry : entries_) {
      if (entry.fence != 0 && Registered(entry)) visit(entry.key, TakeBack(&entry, now_ns));
    }
  }

  // Whether a lease of the key runs or is asked for.
  bool Holds(Key128 key, int64_t now_ns) const;

  Standing StandingOf(Key128 key, const LeaseTerms& terms, int64_t now_ns) const;

 private:
  static constexpr size_t kWays = 8;

  struct Entry {
    Key128 key;
    uint64_t fence = 0;  // 0: free.
    int64_t left = 0;
    int64_t until_ns = 0;  // From here on `left` is void.
    int64_t number = 0;    // Of the last message sent.
    int64_t applied = 0;   // No grant up to this one is taken any more.
    int64_t since_us = 0;
    int64_t allotment = 0;
    int64_t asked_ns = 0;
    bool in_flight = false;
    bool awaited = false;  // The reply to `number` may still be taken.
    int64_t next_ask_ns = 0;
    int64_t next_raise_ns = 0;
    // Use, counted by spans of one horizon: this one and the one before.
    int64_t span_from_ns = 0;
    int64_t units = 0, units_before = 0;
    int64_t calls = 0, calls_before = 0;
    int64_t used_ns = 0;
    int64_t holders = 1;
    int64_t available = 0, full_ns = 0;
  };

  size_t SetOf(Key128 key) const { return (key.lo & set_mask_) * kWays; }
  // What is compared before an entry is looked at: a set's eight are one cache line. 0: free.
  static uint64_t TagOf(Key128 key) { return key.hi | 1; }
  Entry* Find(Key128 key);
  const Entry* Find(Key128 key) const { return const_cast<LeaseBook*>(this)->Find(key); }
  Entry* FindOrAdd(Key128 key, const LeaseTerms& terms, int64_t now_ns);
  void Void(Entry* entry, uint64_t fence);
  void Count(Entry* entry, int64_t cost, int64_t now_ns) const;
  bool WantsMore(const Entry& entry, const LeaseTerms& terms, int64_t now_ns) const;
  // The store may know this holder: there is something to end.
  static bool Registered(const Entry& entry) { return entry.since_us != 0 || entry.awaited; }
  bool Idle(const Entry& entry, int64_t now_ns) const;
  GiveBackRequest TakeBack(Entry* entry, int64_t now_ns);

  Options options_;
  size_t set_mask_ = 0;
  size_t sweep_at_ = 0;
  int64_t last_number_ = 0;  // Of the whole book, so that it rises for a key that left and came
                             // back.
  std::vector<uint64_t> tags_;
  std::vector<Entry> entries_;
};

}  // namespace weir::store::lease
