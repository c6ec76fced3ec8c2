// RedisStore: the shared store over Redis or Valkey, as one event loop sees it. It joins the
// client, the scripts, the leases, the breaker, the deny cache and the fallback: a decision is paid
// from leases where they suffice, else it goes to the server with all others of its tick, in one
// script call for each slot, and is answered here when the server does not answer in time.
//
//   auto store = RedisStore::Create({.loop = &loop, .resolver = &resolver, …});
//   bool admitted = co_await store->Decide(charges, terms, outcomes, now, Mode::kCharge);
//
// All or nothing: the charges of one slot are decided by one script. Charges of several slots, and
// those of leased counters, are asked in parallel; when one denies, what the others charged is
// given back, which can deny calls in between and admits none too many. Leases pay first, since a
// payment can be taken back without the store; where the lease has been renewed meanwhile the units
// are lost, never spent twice. A charge whose answer comes after the timeout is given back as well.
//
// Thread safety: one event loop's thread. Ownership: borrows the loop, the resolver and the memory
// store; Disconnect before the loop goes, destroy after it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/event_loop.h"
#include "net/resolver.h"
#include "redis/client.h"
#include "shared_store/batcher.h"
#include "shared_store/fallback.h"
#include "shared_store/leases.h"
#include "shared_store/node_count.h"
#include "shared_store/part.h"
#include "store/lease/breaker.h"
#include "store/lease/deny_cache.h"
#include "store/memory/memory_store.h"
#include "store/shared_store.h"

namespace weir::shared_store {

struct RedisStoreOptions {
  net::EventLoop* loop = nullptr;
  net::Resolver* resolver = nullptr;
  store::MemoryStore* memory = nullptr;  // Local limits and the fallback.
  NodeState* node = nullptr;
  // This loop tells the store that the node lives, and asks it how many do: one loop of a process.
  bool counts_nodes = false;
  metrics::WeirMetrics* metrics = nullptr;
  size_t shard = 0;  // Of the metrics.
  redis::ClientOptions client;
  std::string prefix = "weir:1:";
  int64_t timeout_ns = 20'000'000;
  store::lease::Breaker::Options breaker;
};

class RedisStore final : public store::SharedStore {
 public:
  explicit RedisStore(RedisStoreOptions options);
  ~RedisStore() override;

  Task<bool> Decide(std::span<const Charge> charges, std::span<const SharedTerms> terms,
                    std::span<SharedOutcome> outcomes, core::Now now, Mode mode) override;
  std::optional<bool> DecideNow(std::span<const Charge> charges, std::span<const SharedTerms> terms,
                                std::span<SharedOutcome> outcomes, core::Now now,
                                Mode mode) override;
  Task<bool> Settle(std::span<const SharedCharge> charges, core::Now now) override;
  Task<bool> Renew(std::span<const SharedCharge> charges, int64_t ttl_ns, core::Now now) override;
  Task<bool> Reset(std::span<const SharedCharge> charges, core::Now now) override;

  void OnPolicy() override;
  // The node shuts down: the others need not reckon with it any more.
  void LeaveNodes();
  // Gives back what is held and waits until the store has heard it, or for kGiveBackNs. What is
  // decided afterwards goes to the store.
  static constexpr int64_t kGiveBackNs = 200'000'000;
  Task<void> GiveBackLeases();
  // Lets go of the sockets and of whoever waits for them. Nothing may be asked afterwards.
  void Disconnect();

  store::lease::Breaker::State breaker_state() const { return breaker_.state(); }
  redis::Client::Stats stats() const;

 private:
  // A decision's charges by who decides them.
  struct Split {
    std::vector<size_t> local;
    std::vector<size_t> leased;
    std::vector<size_t> asked;  // Of the store: exact ones, later also leased ones.
  };
  // What a lease has paid of a decision.
  struct Payment {
    size_t of = 0;
    store::lease::LeaseBook::Answer paid;
  };
  static Split SplitOf(std::span<const SharedTerms> terms, std::span<SharedOutcome> outcomes);
  bool DeniedAlready(const Charge& charge, SharedOutcome& outcome) const;
  bool CanPay(const Charge& charge, const SharedTerms& terms) const;
  bool PayLeases(std::span<const Charge> charges, std::span<const SharedTerms> terms,
                 std::span<SharedOutcome> outcomes, Mode mode, Split& split,
                 std::vector<Payment>& payments);
  bool DecideLocal(std::span<const Charge> charges, std::span<const size_t> which,
                   std::span<SharedOutcome> outcomes, core::Now now, Mode mode);
  std::vector<PartPtr> PartsOf(std::span<const Charge> charges, std::span<const SharedTerms> terms,
                               std::span<const size_t> asked, Mode mode);
  bool Submit(const PartPtr& part);
  Task<void> Await(std::vector<PartPtr>& parts, int64_t deadline_ns);
  bool Conclude(std::vector<PartPtr>& parts, std::span<const Charge> charges,
                std::span<const SharedTerms> terms, std::span<SharedOutcome> outcomes,
                core::Now now, Mode mode);
  void GiveBack(std::span<const Charge> charges, std::span<const SharedTerms> terms,
                std::span<SharedOutcome> outcomes, std::span<const Payment> payments,
                core::Now now);
  Task<void> SettleLater(std::vector<SharedCharge> charges, core::Now now);
  void LearnDenials(const Part& part);

  const RedisStoreOptions options_;
  std::unique_ptr<redis::Client> client_;
  store::lease::Breaker breaker_;
  store::lease::DenyCache denials_;
  Fallback fallback_;
  std::unique_ptr<Batcher> batcher_;
  std::unique_ptr<NodeCounter> nodes_;
  std::unique_ptr<Leases> leases_;
};

}  // namespace weir::shared_store
