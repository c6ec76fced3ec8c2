// LeaseSender: carries what is asked of leased counters to the store and back: all of one tick and
// one slot in one call of the leases' script.
//
//   class Refill final : public LeaseRequest { … };
//   if (!sender.Send(std::make_shared<Refill>(…), Lane::kBackground)) …   // Too many wait already.
//
// Thread safety: one event loop's thread. Ownership: borrows the batcher; requests are shared with
// whoever waits for them. Bounds: as SlotQueue.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/keyed_hash.h"
#include "shared_store/batcher.h"
#include "shared_store/slot_queue.h"
#include "store/lease/lease_script.h"

namespace weir::shared_store {

// One item for the script, with what becomes of its answer.
class LeaseRequest {
 public:
  enum class Report : uint8_t {
    kAnswered,
    kNotCarriedOut,  // For certain: never sent, or refused.
    kUnknown,        // No answer came in time.
    kLate,           // After kUnknown, the answer came all the same.
  };

  LeaseRequest(uint64_t tag, base::Key128 key) : tag_(tag), key_(key) {}
  virtual ~LeaseRequest() = default;
  LeaseRequest(const LeaseRequest&) = delete;
  LeaseRequest& operator=(const LeaseRequest&) = delete;

  // The item, as it leaves. Nothing: there is no more to ask; no report will follow.
  virtual std::optional<store::lease::LeaseItem> Encode() = 0;
  // `reply`: the item's own, with kAnswered and kLate; of any size.
  virtual void OnReport(Report report, std::string_view reply) = 0;

  uint64_t tag() const { return tag_; }
  base::Key128 key() const { return key_; }

 private:
  const uint64_t tag_;
  const base::Key128 key_;
};
using LeaseRequestPtr = std::shared_ptr<LeaseRequest>;

// The name of a leased counter on the store: that of the exact one, with a suffix of its own.
std::string LeaseKey(std::string_view prefix, uint64_t tag, base::Key128 key);

class LeaseSender {
 public:
  struct Options {
    net::EventLoop* loop = nullptr;
    Batcher* batcher = nullptr;
    std::string prefix;
    int64_t timeout_ns = 0;
  };

  explicit LeaseSender(Options options);

  // Sends the request with the others of the tick. False: too many wait already.
  bool Send(LeaseRequestPtr request, Lane lane);

 private:
  using Requests = std::vector<LeaseRequestPtr>;
  Task<void> Call(Requests requests);

  const Options options_;
  SlotQueue<LeaseRequestPtr> queue_;
};

}  // namespace weir::shared_store
