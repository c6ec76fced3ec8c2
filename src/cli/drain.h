// Drain: how a server ends. Asked once: readiness goes off and answers tell clients to leave, while
// the doors go on accepting for `delay`, so that load balancers notice before anybody is turned
// away. Then the listeners close, and the calls under way finish within `limit`; the rest is cut.
// Last, what is held of a shared store is given back. Asked twice: everything ends at once.
//
// Thread safety: the first shard's loop. The shards outlive it.
//
//   Drain drain(shards, state, [&](bool cut) { StopAllLoops(); });
//   drain.Begin(policy->config().timeouts.drain_delay, policy->config().timeouts.drain);
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/log.h"
#include "cli/door_services.h"
#include "cli/shard.h"
#include "net/event_loop.h"

namespace weir::cli {

class Drain {
 public:
  // `on_end` is told how many calls were cut off.
  using OnEnd = std::move_only_function<void(int calls_cut)>;

  Drain(std::span<const std::unique_ptr<Shard>> shards, ServerState& state, Logger& logger,
        OnEnd on_end);

  void Begin(std::chrono::nanoseconds delay, std::chrono::nanoseconds limit);
  // Ends now. Idempotent.
  void Cut();
  bool begun() const { return phase_ != Phase::kServing; }

 private:
  enum class Phase : uint8_t { kServing, kDelay, kFinishing, kGivingBack, kEnded };
  void OnTimer();
  void CloseDoors();
  void OnFinishing(int64_t now_ns);
  void GiveBackLeases(int calls_cut);
  bool HaveGivenBack() const;
  // Runs `step` on every shard's own loop.
  void Everywhere(std::function<void(Shard&)> step);
  int CallsUnderWay() const;
  void End();
  net::EventLoop& loop() { return shards_.front()->loop(); }

  const std::span<const std::unique_ptr<Shard>> shards_;
  ServerState& state_;
  Logger& logger_;
  OnEnd on_end_;
  net::Timer timer_;
  Phase phase_ = Phase::kServing;
  int64_t limit_ns_ = 0;
  int64_t deadline_ns_ = 0;    // For the calls under way; then for what is told to the store.
  int64_t close_idle_ns_ = 0;  // When connections without a call are closed.
  int quiet_reports_ = 0;      // In a row, without a call under way.
  int calls_cut_ = 0;
};

}  // namespace weir::cli
