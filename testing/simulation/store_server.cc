#include "testing/simulation/store_server.h"

#include <algorithm>

namespace weir::testing {

using store::lease::Grant;
using store::lease::GrantStatus;
using store::lease::Holder;
using store::lease::LeaseState;
using store::lease::TakeReply;

Grant StoreServer::Refill(int key, const store::lease::LeaseTerms& terms,
                          const store::lease::RefillRequest& request,
                          const store::lease::Windows& windows, int64_t true_ns) {
  const int64_t before = AllotmentOf(key, request.holder);
  const Grant grant = store::lease::Refill(state(key), terms, request, windows, ClockUs(true_ns));
  if (grant.status == GrantStatus::kGranted) {
    const bool same = grant.since_us == request.since_us;
    CountTaken(key, grant.units +
                        (same ? std::max<int64_t>(grant.allotment - before, 0) : grant.allotment));
  }
  return grant;
}

TakeReply StoreServer::Take(int key, const store::lease::LeaseTerms& terms, int64_t cost,
                            const store::lease::Windows& windows, int64_t true_ns) {
  const TakeReply reply = store::lease::Take(state(key), terms, cost, windows, ClockUs(true_ns));
  if (reply.allowed) CountTaken(key, cost);
  return reply;
}

int64_t StoreServer::AllotmentOf(int key, uint64_t holder) const {
  const auto& holders = states_[static_cast<size_t>(key)].holders;
  const auto found = std::ranges::find(holders, holder, &Holder::id);
  return found == holders.end() ? 0 : found->allotment;
}

void StoreServer::Forget() {
  std::ranges::fill(states_, LeaseState{});
  registry_ = {};
}

int StoreServer::SaveReplica() {
  replicas_.push_back({states_, registry_, std::vector<int64_t>(states_.size())});
  return static_cast<int>(replicas_.size()) - 1;
}

std::vector<int64_t> StoreServer::GoBackTo(int replica) {
  const Replica& saved = replicas_[static_cast<size_t>(replica)];
  states_ = saved.states;
  registry_ = saved.registry;
  return saved.taken;
}

void StoreServer::CountTaken(int key, int64_t units) {
  for (Replica& replica : replicas_) replica.taken[static_cast<size_t>(key)] += units;
}

}  // namespace weir::testing
