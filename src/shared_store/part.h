// Part: what one decision asks of one server: charges that share a slot, decided together there.
//
// Thread safety: one event loop's thread. Ownership: shared by the decision that waits for it and
// the batch that carries it, since either may be done first.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "net/event.h"
#include "store/shared_store.h"

namespace weir::shared_store {

struct Part {
  explicit Part(net::EventLoop& loop) : done(loop) {}

  enum class State : uint8_t { kWaiting, kAnswered, kFailed };

  uint16_t group = 0;  // Of slots; parts of one group share a script call.
  // Not null: one charge on a counter that nodes lease, decided by the leases' script.
  const store::lease::LeasedMeter* leased = nullptr;
  std::vector<store::Charge> charges;
  std::vector<uint64_t> tags;  // Of each charge.
  std::vector<size_t> of;      // Where each stands in the decision.
  std::vector<store::Outcome> outcomes;
  store::Mode mode = store::Mode::kCharge;
  State state = State::kWaiting;
  bool admitted = false;
  bool abandoned = false;  // Nobody waits any more: what it charges is given back.
  int64_t sent_ns = 0;     // When the question left, on the loop's monotonic clock.
  net::Event done;
};

using PartPtr = std::shared_ptr<Part>;

}  // namespace weir::shared_store
