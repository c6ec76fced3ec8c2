// What one node decides on its own while the store is away: its share of a limit, B/N and r/N over
// the N nodes last seen, as a token bucket, whatever the limit's own algorithm. Never 0: a cost
// above the share but within B passes when the share is full, and leaves debt that time repays at
// r/N. So N nodes admit at most max(B, N*n) + r*t in any interval of length t, n being the largest
// cost.
//
//   Result<NodeShare> share = NodeShare::Of(meter.spec(), nodes);
//   core::Meter* local = store.Intern(share->spec());           // A memory store of its own.
//   NodeShare::Parts parts = share->Split(cost);
//   if (!parts.possible) deny, never admissible;
//   if (store.Decide({local, key, parts.charge}, &outcome, ...) && parts.debt > 0)
//     store.Settle(*local, key, outcome.receipt, parts.charge, parts.charge + parts.debt, now);
//
// A changed N is a changed rate: under the same key the used units are carried over.
//
// Thread safety: plain values; NodesSeen belongs to one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/meter.h"
#include "weir/result.h"

namespace weir::store::lease {

class NodeShare {
 public:
  // What a cost asks of the share.
  struct Parts {
    bool possible = true;  // false: above the limit's own capacity.
    int64_t charge = 0;  // To decide on the share's bucket. The whole burst when the cost is above
                         // it: that passes on a full share only.
    int64_t debt = 0;    // To add after it passed, whatever remains.

    friend bool operator==(const Parts&, const Parts&) = default;
  };

  // A share of one in `nodes` (at least 1). kInvalidArgument: a parallel limit, which has no rate
  // to share; or a rate whose share cannot be computed exactly (more than 146 years to refill).
  static Result<NodeShare> Of(const core::MeterSpec& limit, int64_t nodes);

  // A token bucket, or units 0 where the limit denies all.
  const core::MeterSpec& spec() const { return spec_; }
  Parts Split(int64_t cost) const;

 private:
  core::MeterSpec spec_;
  int64_t capacity_ = 0;  // Of the limit.
};

// The store's list of nodes, as a sorted set of ids by the time of their last heartbeat. The plain
// form of the script in node_heartbeat.lua.
class NodeRegistry {
 public:
  // Notes that `node` was there at `now_us` of the store's clock, forgets whoever was not for
  // `expiry_us`, and says how many remain: at least 1.
  int64_t Beat(uint64_t node, int64_t now_us, int64_t expiry_us);
  // A node that shuts down.
  void Leave(uint64_t node);

 private:
  struct Seen {
    uint64_t node;
    int64_t at_us;
  };
  std::vector<Seen> seen_;
};

// How many nodes a node reckons with: store.nodes if that is set, else the most that the store said
// in its last four answers, else 1. A store that has just lost its list, or whose clock has jumped,
// counts 1, 2, 3 ... while the others come back; with four heartbeats to an expiry, nobody takes
// that for the truth.
class NodesSeen {
 public:
  explicit NodesSeen(int64_t configured = 0) : configured_(configured) {}

  void Answered(int64_t nodes) {
    last_[next_] = nodes;
    next_ = (next_ + 1) % last_.size();
  }
  int64_t count() const {
    return configured_ > 0 ? configured_ : std::max<int64_t>(std::ranges::max(last_), 1);
  }

 private:
  int64_t configured_;
  std::array<int64_t, 4> last_ = {};
  size_t next_ = 0;
};

}  // namespace weir::store::lease
