#include "cli/drain.h"

#include <algorithm>
#include <utility>

namespace weir::cli {
namespace {

constexpr int64_t kPollNs = 10'000'000;
// A loop that does not answer does not keep the others from ending.
constexpr int64_t kGiveBackNs = shared_store::RedisStore::kGiveBackNs + 50'000'000;
constexpr int64_t kGiveBackPollNs = 1'000'000;
// A client whose connection was accepted just before the doors closed has this long to send its
// call.
constexpr int64_t kIdleGraceNs = 300'000'000;
// Reports are asked for and read one poll later, so the first quiet one may be from before the
// doors closed.
constexpr int kQuietReports = 3;

}  // namespace

Drain::Drain(std::span<const std::unique_ptr<Shard>> shards, ServerState& state, Logger& logger,
             OnEnd on_end)
    : shards_(shards),
      state_(state),
      logger_(logger),
      on_end_(std::move(on_end)),
      timer_(shards.front()->loop(), [this] { OnTimer(); }) {}

void Drain::Begin(std::chrono::nanoseconds delay, std::chrono::nanoseconds limit) {
  if (begun()) return;
  phase_ = Phase::kDelay;
  limit_ns_ = limit.count();
  state_.ready.store(false, std::memory_order_relaxed);
  Everywhere([](Shard& shard) { shard.BeginDrain(); });
  logger_.Log(LogLevel::kInfo, "draining",
              {{"accepting_for_ms", delay.count() / 1'000'000},
               {"then_at_most_ms", limit.count() / 1'000'000}});
  timer_.ArmAt(loop().now_ns() + delay.count());
}

void Drain::CloseDoors() {
  phase_ = Phase::kFinishing;
  const int64_t now_ns = loop().now_ns();
  deadline_ns_ = now_ns + limit_ns_;
  close_idle_ns_ = now_ns + std::min(kIdleGraceNs, limit_ns_ / 2);
  Everywhere([](Shard& shard) { shard.CloseListeners(); });
}

void Drain::OnTimer() {
  const int64_t now_ns = loop().now_ns();
  if (phase_ == Phase::kDelay) CloseDoors();
  if (phase_ == Phase::kFinishing) return OnFinishing(now_ns);
  if (phase_ != Phase::kGivingBack) return;
  if (HaveGivenBack() || now_ns >= deadline_ns_) return End();
  timer_.ArmAt(now_ns + kGiveBackPollNs);
}

void Drain::OnFinishing(int64_t now_ns) {
  const bool close_idle = now_ns >= close_idle_ns_;
  if (close_idle) quiet_reports_ = CallsUnderWay() == 0 ? quiet_reports_ + 1 : 0;
  if (quiet_reports_ >= kQuietReports) return GiveBackLeases(0);
  if (now_ns >= deadline_ns_) return GiveBackLeases(CallsUnderWay());
  Everywhere([close_idle](Shard& shard) {
    if (close_idle) shard.CloseIdle();
    shard.ReportCalls();
  });
  timer_.ArmAt(std::min(now_ns + kPollNs, deadline_ns_));
}

void Drain::GiveBackLeases(int calls_cut) {
  phase_ = Phase::kGivingBack;
  calls_cut_ = calls_cut;
  const int64_t now_ns = loop().now_ns();
  deadline_ns_ = now_ns + kGiveBackNs;
  Everywhere([](Shard& shard) { shard.GiveBackLeases(); });
  timer_.ArmAt(now_ns + kGiveBackPollNs);
}

bool Drain::HaveGivenBack() const {
  return std::ranges::all_of(shards_, [](const auto& shard) { return shard->has_given_back(); });
}

void Drain::Cut() {
  if (phase_ == Phase::kEnded) return;
  if (phase_ != Phase::kGivingBack) calls_cut_ = CallsUnderWay();
  End();
}

void Drain::End() {
  phase_ = Phase::kEnded;
  timer_.Cancel();
  on_end_(calls_cut_);
}

int Drain::CallsUnderWay() const {
  int calls = 0;
  for (const auto& shard : shards_) calls += shard->reported_calls();
  return calls;
}

void Drain::Everywhere(std::function<void(Shard&)> step) {
  for (const auto& shard : shards_) {
    shard->loop().Post([step, target = shard.get()] { step(*target); });
  }
}

}  // namespace weir::cli
