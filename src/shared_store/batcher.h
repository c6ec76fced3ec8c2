// Batcher: carries the parts of decisions to the store and back: all of one tick and one slot in
// one script call.
//
//   if (!batcher.Submit(part)) part->state = Part::State::kFailed;     // The queue is full.
//   co_await part->done.WaitUntil(deadline_ns);
//
// Settles, renewals and resets go the same way, each as one call for each slot. A settle is said
// until it is heard; the store carries out a repeat once.
//
// Thread safety: one event loop's thread. Ownership: borrows the loop, the client and the breaker;
// parts are shared with those that wait for them. Bounds: as SlotQueue.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "metrics/weir_metrics.h"
#include "net/event_loop.h"
#include "redis/client.h"
#include "shared_store/part.h"
#include "shared_store/slot_queue.h"
#include "store/lease/breaker.h"
#include "store/redis/script_calls.h"

namespace weir::shared_store {

class Batcher {
 public:
  static constexpr size_t kRetriesMax = 1024;  // Settles that are told again.

  struct Options {
    net::EventLoop* loop = nullptr;
    redis::Client* client = nullptr;
    store::lease::Breaker* breaker = nullptr;
    metrics::WeirMetrics* metrics = nullptr;
    size_t shard = 0;
    std::string prefix;
    int64_t timeout_ns = 0;
  };

  explicit Batcher(Options options);

  // Which parts may share a call: the slot of the tag's keys.
  uint16_t GroupOf(uint64_t tag) const;

  // Sends the part with the others of the tick. False: too many wait already.
  bool Submit(PartPtr part);

  // True when the store has done all of them within the timeout. What a settle could not say goes
  // on being said in the background for kRetryNs.
  Task<bool> Settle(std::vector<store::SharedCharge> charges);
  // True when every lease was still there and is prolonged.
  Task<bool> Renew(std::vector<store::SharedCharge> charges, int64_t ttl_ns);
  Task<bool> Reset(std::vector<store::SharedCharge> charges);

  // One script call, whose end the metrics and the breaker are told.
  Task<Result<resp::Value>> Run(const store::redis::ScriptCall& call, metrics::StoreOp op,
                                redis::CallOptions options);

 private:
  using Parts = std::vector<PartPtr>;
  using Charges = std::vector<store::SharedCharge>;
  Task<void> Send(Parts parts);
  // What became of an answer.
  enum class Delivered : uint8_t { kYes, kStale };
  Delivered Deliver(const Parts& parts, const resp::Value& reply);
  void Undo(const Part& part);
  static void Fail(const Parts& parts);
  // Settles, renewals or resets of one slot, as one call that may be repeated.
  struct Errand {
    enum class Kind : uint8_t { kSettle, kRenew, kReset } kind = Kind::kSettle;
    Charges charges;
    int64_t ttl_ns = 0;
    uint64_t id = 0;
    bool told = false;      // The store has done it.
    bool all_done = false;  // And there was something to do for each charge.
  };
  Task<void> RunErrand(Errand& errand);
  Task<void> RunUntilTold(Errand errand);
  std::vector<Errand> ErrandsOf(Errand::Kind kind, Charges charges, int64_t ttl_ns);
  Task<void> RunAll(std::vector<Errand>& errands);

  const Options options_;
  SlotQueue<PartPtr> queue_;
  size_t retries_ = 0;
  std::mt19937_64 ids_;
};

}  // namespace weir::shared_store
