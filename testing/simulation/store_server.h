// The shared store of a simulation: one lease counter per key and the list of nodes, in memory, on
// its own clock. It can forget everything, or go back to what a replica had.
//
// Thread safety: one thread. Times are true time, ns; its clock is microseconds since 1970.
#pragma once

#include <cstdint>
#include <vector>

#include "store/lease/lease_counter.h"
#include "store/lease/node_share.h"

namespace weir::testing {

class StoreServer {
 public:
  explicit StoreServer(int keys) : states_(static_cast<size_t>(keys)) {}

  int64_t ClockUs(int64_t true_ns) const { return kEpochUs + true_ns / 1000 + ahead_us_; }
  // The true instant at which the clock turned to what it shows at `true_ns`.
  static int64_t GrainNs(int64_t true_ns) { return true_ns / 1000 * 1000; }

  store::lease::LeaseState* state(int key) { return &states_[static_cast<size_t>(key)]; }
  store::lease::NodeRegistry* registry() { return &registry_; }

  store::lease::Grant Refill(int key, const store::lease::LeaseTerms& terms,
                             const store::lease::RefillRequest& request,
                             const store::lease::Windows& windows, int64_t true_ns);
  store::lease::TakeReply Take(int key, const store::lease::LeaseTerms& terms, int64_t cost,
                               const store::lease::Windows& windows, int64_t true_ns);

  // The most that the holder may hold, 0 when the store does not know it.
  int64_t AllotmentOf(int key, uint64_t holder) const;

  // Another machine answers from here on, whose clock is so much ahead of the first one's, or
  // behind it when below 0.
  int64_t ahead_us() const { return ahead_us_; }
  void SetAheadUs(int64_t ahead_us) { ahead_us_ = ahead_us; }
  // Everything that was written is gone.
  void Forget();
  // A copy that a failover goes back to; from here on what is taken is counted as lost with it.
  int SaveReplica();
  // Units per key that the lost writes had taken from the shared capacity: debited to leases and
  // decisions, or set apart for holders.
  std::vector<int64_t> GoBackTo(int replica);

 private:
  static constexpr int64_t kEpochUs = 1'796'068'800'000'000;
  struct Replica {
    std::vector<store::lease::LeaseState> states;
    store::lease::NodeRegistry registry;
    std::vector<int64_t> taken;
  };

  void CountTaken(int key, int64_t units);

  int64_t ahead_us_ = 0;
  std::vector<store::lease::LeaseState> states_;
  store::lease::NodeRegistry registry_;
  std::vector<Replica> replicas_;
};

}  // namespace weir::testing
