// Leases: what one event loop holds of leased limits and how it comes by it: payments out of the
// book, and everything that is asked of leased counters on the store.
//
//   if (leases.CanPay(charge, *terms.leased)) paid = leases.Pay(charge, terms, outcome);
//   else leases.Take(part);                                    // Decided by the store.
//
// A leased counter has one truth, the state that the leases' script keeps: whatever is not paid
// from a lease is a Take there, settled by a refund (PutBack) or a debt (Post).
//
// A refund goes at most once: one whose fate is not known is lost, since a second would admit too
// much. A debt goes until it is heard; where only the answer was lost it counts twice, which denies
// too much.
//
// Thread safety: one event loop's thread. Ownership: borrows the loop, the batcher and the breaker.
// Bounds: the book's keys (LeaseBook), the sender's queue, kOpenMax messages that are to be heard.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/event.h"
#include "shared_store/lease_sender.h"
#include "shared_store/part.h"
#include "store/lease/breaker.h"
#include "store/lease/lease_book.h"
#include "store/lease/leased_meter.h"
#include "store/shared_store.h"

namespace weir::shared_store {

class Leases {
 public:
  struct Options {
    net::EventLoop* loop = nullptr;
    Batcher* batcher = nullptr;
    store::lease::Breaker* breaker = nullptr;
    std::string prefix;
    int64_t timeout_ns = 0;
  };
  static constexpr size_t kOpenMax = 65'536;

  explicit Leases(Options options);
  ~Leases();

  // Whether Pay would pay.
  bool CanPay(const store::Charge& charge, const store::lease::LeasedMeter& leased) const;
  // Pays from what is held here, if that is enough, and fills in the outcome, which is as made but
  // not known. Counts the call
  // towards the rate of use either way, and asks the store for more where that pays; nobody waits
  // for the answer.
  store::lease::LeaseBook::Answer Pay(const store::Charge& charge, const store::SharedTerms& terms,
                                      store::SharedOutcome& outcome);
  // Takes a payment back, as LeaseBook::Undo.
  void Undo(const store::Charge& charge, const store::lease::LeasedMeter& leased,
            const store::lease::LeaseBook::Answer& paid);

  // Asks the store for a decision, out of what no node holds. False: too many wait already.
  // REQUIRES: the part is one leased charge.
  bool Take(PartPtr part);

  // Replaces what Takes have reserved. True when the store has been told all of it in time.
  Task<bool> Settle(std::vector<store::SharedCharge> charges);
  // Forgets the counters, there and here. False: the store is away.
  Task<bool> Reset(std::vector<store::SharedCharge> charges);

  // Gives back all that is held.
  void GiveBackAll();
  // The same for good: nothing is paid or asked for afterwards. Done when the store has been told
  // of this and of every settle, or at the deadline.
  Task<void> Leave(int64_t deadline_ns);

 private:
  class Refill;
  class Return;
  class Decision;
  class Correction;
  class Forget;

  // Of a key that is asked for, so that its lease can be given back.
  struct Name {
    uint64_t tag = 0;
    const store::lease::LeasedMeter* leased = nullptr;
    bool asking = false;  // A request waits to be sent.
  };
  struct HashKey {
    size_t operator()(const base::Key128& key) const { return key.lo; }
  };

  store::lease::LeaseBook& Book();
  void AskForMore(base::Key128 key, const store::SharedTerms& terms);
  void SendBack(base::Key128 key, const store::lease::GiveBackRequest& back);
  Task<void> SweepWhileHeld();
  Task<void> SettleLater(store::SharedCharge charge);
  Task<void> TellAgain(std::shared_ptr<Correction> correction);
  store::lease::Windows WindowsOf(const store::lease::LeasedMeter& leased, base::Key128 key) const;
  void Hear(base::Key128 key, const store::lease::LeasedMeter& leased,
            const store::lease::TakeReply& reply);
  core::Step StepOf(const store::Charge& charge, const store::lease::LeasedMeter& leased,
                    const store::lease::TakeReply& reply) const;
  // The store's clock is in none of the calendar windows that were sent.
  void OnOtherWindow() { earlier_windows_ = !earlier_windows_; }
  void Ended();  // A message that Leave waits for.

  const Options options_;
  LeaseSender sender_;
  std::unique_ptr<store::lease::LeaseBook> book_;  // Made for the first leased charge.
  std::unordered_map<base::Key128, Name, HashKey> names_;
  // The store's clock was last seen behind the calendar window of this node's.
  bool earlier_windows_ = false;
  bool sweeping_ = false;
  bool leaving_ = false;
  size_t open_ = 0;             // Messages that Leave waits for.
  net::Event* told_ = nullptr;  // Of the Leave that waits.
};

}  // namespace weir::shared_store
