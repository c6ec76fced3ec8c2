// One node of a simulated fleet: the pieces of src/store/lease put together as a server does.
//
// Thread safety: one thread. The node's clock is its own: another zero, a little fast or slow, and
// it can stand still.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "store/lease/breaker.h"
#include "store/lease/deny_cache.h"
#include "store/lease/lease_book.h"
#include "store/lease/node_share.h"
#include "store/memory/memory_store.h"
#include "testing/simulation/fleet.h"

namespace weir::testing {

class FleetNode {
 public:
  FleetNode(Fleet* fleet, int place, uint64_t holder);

  // A call of a client.
  void Call(int key, int64_t cost);
  // Some upkeep now and then: idle leases go back, the heartbeat goes out.
  void StartTicking();
  void GiveBackAll();
  // The other definition of the limit, from now on.
  void Rollout();

  int place() const { return place_; }
  uint64_t holder() const { return holder_; }
  // Units of its lease, as it sees it.
  int64_t HeldUnits(int key) const;
  // The fewest nodes that it ever reckoned with when it decided by its share; 0: it never did.
  int64_t fewest_nodes() const { return fewest_nodes_; }
  int64_t ClockNs() const;
  // The window of a key, on the store's clock, at a true instant.
  std::optional<store::lease::WindowBounds> WindowAt(int key, int64_t true_ns) const;

  // What the fleet does to it.
  bool alive = true;
  int64_t still_until_ns = 0;     // Paused or suspended.
  int64_t clock_stopped_ns = 0;   // In all.
  int64_t cut_off_until_ns = 0;   // From the store.
  int64_t largest_allotment = 0;  // Since it was last reset.

 private:
  using LeaseBook = store::lease::LeaseBook;

  bool leased() const;
  store::lease::Key128 KeyOf(int key) const;
  store::lease::Windows WindowsOf(int key) const;
  void SpendUnlessUndone(int key, int64_t cost, const LeaseBook::Answer& answer);
  void AskForMore(int key);
  void DecideOnStore(int key, int64_t cost);
  void PutBack(int key, core::Receipt receipt, int64_t cost);
  void SendBack(int key, store::lease::GiveBackRequest back, int tries);
  void DecideByShare(int key, int64_t cost);
  void Tick();

  Fleet* fleet_;
  const int place_;
  const uint64_t holder_;
  const int64_t clock_zero_ns_;
  const int64_t clock_ppm_;
  bool other_ = false;
  store::lease::LeaseTerms terms_;
  LeaseBook book_;
  store::lease::DenyCache denials_;
  store::lease::Breaker breaker_;
  store::lease::NodesSeen seen_;
  std::unique_ptr<store::MemoryStore> shares_;
  int64_t fewest_nodes_ = 0;
};

}  // namespace weir::testing
