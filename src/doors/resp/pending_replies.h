// PendingReplies: the replies of one read that wait for a shared store. They are begun one by one
// and awaited together; each then stands where its command came.
//
//   PendingReplies pending(worker, checks);
//   pending.Add(std::move(decision), /*throttle=*/true, out.size());
//   co_await pending.Await(now, out);
//
// Thread safety: one connection. Ownership: borrows the worker and the checks.
#pragma once

#include <cstddef>
#include <vector>

#include "base/task.h"
#include "decide/engine.h"
#include "doors/checks.h"
#include "wire/buffer.h"

namespace weir::doors::resp {

class PendingReplies {
 public:
  explicit PendingReplies(decide::Worker& worker)
      : worker_(worker), checks_(worker, metrics::Door::kResp) {}

  bool empty() const { return waiting_.empty(); }
  // Decisions wait together, and ends of reservations do, but not one with the other: what a
  // release frees is there for the command behind it, as on a store that does not wait.
  bool TakesDecision() const { return empty() || (!ends_ && waiting_.size() < kMost); }
  bool TakesEnd() const { return empty() || (ends_ && waiting_.size() < kMost); }

  // `at`: how many bytes of replies stand before this one's, without those of others that wait.
  void Add(decide::DecisionPtr decision, bool throttle, size_t at);
  void Add(ReservationEnd end, size_t at);

  // Waits for all, puts their replies into `out`, and is empty again.
  Task<void> Await(core::Now now, wire::Buffer& out);

 private:
  static constexpr size_t kMost = 1024;

  struct Waiting {
    size_t at = 0;
    bool throttle = false;
    decide::DecisionPtr decision;
    ReservationEnd end;
    Result<const decide::Verdict*> verdict = nullptr;
    Result<decide::Settled> settled;
  };

  // False: it has to wait.
  bool FinishNow(Waiting& waiting, core::Now now);
  Task<void> Finish(Waiting& waiting, core::Now now);
  void Append(const Waiting& waiting, wire::Buffer& out);

  decide::Worker& worker_;
  Checks checks_;
  bool ends_ = false;  // What waits are ends of reservations.
  std::vector<Waiting> waiting_;
  wire::Buffer json_;
};

}  // namespace weir::doors::resp
