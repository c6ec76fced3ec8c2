// Sliding window log: at most `limit` units in every window of the length, exactly. It keeps the
// admitted charges of one window, as runs of (time, units): memory up to 16 bytes per unit of the
// limit and key, so the limit is capped.
//
//   SlidingLog log(/*limit=*/100, /*length_ns=*/1'000'000'000);
//   SlidingLog::State state;
//   Step step = log.Charge(&state, /*cost=*/1, now.mono_ns);
//
// Thread safety: immutable; a state is owned by its caller. Charge may allocate.
#pragma once

#include <cstdint>
#include <vector>

#include "core/step.h"
#include "weir/limit.h"

namespace weir::core {

struct SlidingLogState {
  struct Run {
    int64_t at_ns;
    int64_t units;
  };
  std::vector<Run> runs;  // In order of time from `head` on; what lies before has left the window.
  size_t head = 0;
  int64_t total = 0;  // Units from head on.
};

class SlidingLog {
 public:
  using State = SlidingLogState;
  static constexpr int64_t kMaxLimit = 1'000'000;  // 16 MB for one key at the very worst.

  SlidingLog() = default;
  SlidingLog(int64_t limit, int64_t length_ns) : limit_(limit), length_ns_(length_ns) {}

  Step Charge(State* state, int64_t cost, int64_t now_ns, Receipt* receipt = nullptr) const;
  // Drops what has left the window, and changes nothing else.
  Step Test(State* state, int64_t cost, int64_t now_ns) const;
  bool Refund(State* state, Receipt receipt, int64_t units, int64_t now_ns) const;
  void Overrun(State* state, int64_t units, int64_t now_ns) const;

  int64_t Used(const State& state, int64_t now_ns) const;
  // All in one run at `now_ns`: the window they came from is not known.
  State FromUsed(int64_t used, int64_t now_ns) const;
  int64_t limit() const { return limit_; }

 private:
  void Prune(State* state, int64_t now_ns) const;
  void Append(State* state, int64_t units, int64_t now_ns) const;

  int64_t limit_ = 1;
  int64_t length_ns_ = 1;
};

}  // namespace weir::core
