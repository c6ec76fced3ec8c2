#include "testing/simulation/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "testing/simulation/bound_check.h"
#include "testing/simulation/fleet_node.h"

namespace weir::testing {
namespace {

constexpr int64_t kMs = 1'000'000;
// The store counts whole microseconds.
constexpr int64_t kGrainNs = 2'000;

}  // namespace

Fleet::Fleet(const Scenario& scenario, bool trace)
    : scenario_(scenario),
      trace_(trace),
      random_(scenario.seed ^ 0x5157'4d1f'7a2b'9e03u),
      store_(scenario.keys) {
  for (int place = 0; place < scenario.nodes; ++place) nodes_.push_back(NewNode(place));
}

Fleet::~Fleet() = default;

std::unique_ptr<FleetNode> Fleet::NewNode(int place) {
  auto node = std::make_unique<FleetNode>(this, place, ++holders_);
  schedule_.After(random_.Between(0, 50 * kMs), [it = node.get()] { it->StartTicking(); });
  return node;
}

Report Fleet::Run() {
  for (const Phase& phase : scenario_.phases) {
    schedule_.At(phase.at_ns, [this, &phase] { StartPhase(phase); });
  }
  for (const Fault& fault : scenario_.faults) {
    if (fault.kind == FaultKind::kFailover) {
      schedule_.At(fault.at_ns - fault.lag_ns, [this, &fault] {
        const int replica = store_.SaveReplica();
        schedule_.At(fault.at_ns, [this, &fault, replica] {
          const std::vector<int64_t> lost = store_.GoBackTo(replica);
          // Where the clock jumps forward, so much more has refilled.
          const int64_t jump_us = std::max<int64_t>(fault.ahead_us - store_.ahead_us(), 0);
          store_.SetAheadUs(fault.ahead_us);
          for (int key = 0; key < scenario_.keys; ++key) {
            allowances_.push_back(
                {now_ns(), key, lost[static_cast<size_t>(key)] + UnitsIn(jump_us)});
          }
          StoreAway(fault);
        });
      });
    } else {
      schedule_.At(fault.at_ns, [this, &fault] { StartFault(fault); });
    }
  }
  schedule_.RunUntil(scenario_.length_ns);
  report_.violation = Verdict();
  return report_;
}

int64_t Fleet::UnitsIn(int64_t span_us) const {
  const int64_t units = std::max(scenario_.spec.rate.units, scenario_.other.rate.units);
  return core::Clamp64(
      core::CeilDiv(core::Int128{span_us} * 1000 * units, scenario_.spec.rate.period.count()));
}

void Fleet::StartPhase(const Phase& phase) {
  const int64_t end_ns = phase.at_ns + phase.lasts_ns;
  for (int place = 0; place < scenario_.nodes; ++place) {
    const auto call = [this, place] {
      FleetNode* node = nodes_[static_cast<size_t>(place)].get();
      const int key = static_cast<int>(random_.Between(0, scenario_.keys - 1));
      const int64_t cost = random_.Between(1, scenario_.cost_max);
      Later(node, 0, [node, key, cost] { node->Call(key, cost); });
    };
    for (int i = 0; i < phase.burst; ++i) call();
    if (phase.gap_ns > 0) NextCall(place, phase.gap_ns, end_ns);
  }
}

void Fleet::NextCall(int place, int64_t gap_ns, int64_t end_ns) {
  schedule_.After(random_.Between(gap_ns / 2, gap_ns * 3 / 2), [this, place, gap_ns, end_ns] {
    if (now_ns() >= end_ns) return;
    FleetNode* node = nodes_[static_cast<size_t>(place)].get();
    const int key = static_cast<int>(random_.Between(0, scenario_.keys - 1));
    const int64_t cost = random_.Between(1, scenario_.cost_max);
    Later(node, 0, [node, key, cost] { node->Call(key, cost); });
    NextCall(place, gap_ns, end_ns);
  });
}

void Fleet::StartFault(const Fault& fault) {
  FleetNode* node = nodes_[static_cast<size_t>(fault.node)].get();
  if (trace_) Trace(node, std::string(FaultName(fault.kind)));
  const int64_t end_ns = now_ns() + fault.lasts_ns;
  switch (fault.kind) {
    case FaultKind::kPartition:
      node->cut_off_until_ns = std::max(node->cut_off_until_ns, end_ns);
      break;
    case FaultKind::kStoreLoss:
      store_.Forget();
      for (int key = 0; key < scenario_.keys; ++key) {
        const int64_t capacity =
            std::max({scenario_.spec.rate.burst, scenario_.other.rate.burst,
                      scenario_.spec.algorithm == Algorithm::kFixedWindow
                          ? std::max(scenario_.spec.rate.units, scenario_.other.rate.units)
                          : int64_t{0}});
        allowances_.push_back({now_ns(), key, capacity});
      }
      StoreAway(fault);
      break;
    case FaultKind::kStoreAway:
    case FaultKind::kFailover:
      StoreAway(fault);
      break;
    case FaultKind::kPause:
      node->still_until_ns = std::max(node->still_until_ns, end_ns);
      break;
    case FaultKind::kSuspend:
    case FaultKind::kLongSuspend:
      Suspend(fault);
      break;
    case FaultKind::kKill:
      Replace(fault.node, /*give_back=*/false);
      break;
    case FaultKind::kShutdown:
      Replace(fault.node, /*give_back=*/true);
      break;
    case FaultKind::kRollout:
      Later(node, 0, [node] { node->Rollout(); });
      break;
  }
}

void Fleet::StoreAway(const Fault& fault) {
  store_away_until_ns_ = std::max(store_away_until_ns_, now_ns() + fault.lasts_ns);
}

// The clock stands still until the node moves again, and so is behind by that much from then on.
void Fleet::Suspend(const Fault& fault) {
  FleetNode* node = nodes_[static_cast<size_t>(fault.node)].get();
  if (node->still_until_ns > now_ns()) return;  // Still already: one at a time.
  std::vector<int64_t> held;
  for (int key = 0; key < scenario_.keys; ++key) held.push_back(node->HeldUnits(key));
  node->still_until_ns = now_ns() + fault.lasts_ns;
  node->clock_stopped_ns += fault.lasts_ns;
  if (fault.kind == FaultKind::kSuspend) return;
  // The store may have forgotten it, or hear of it only now.
  node->largest_allotment = 0;
  for (int key = 0; key < scenario_.keys; ++key) {
    node->largest_allotment =
        std::max({node->largest_allotment, store_.AllotmentOf(key, node->holder()),
                  held[static_cast<size_t>(key)]});
  }
  // Registered before whatever else the node does when it moves again.
  schedule_.At(node->still_until_ns - 1, [this, node] {
    for (int key = 0; key < scenario_.keys; ++key) {
      allowances_.push_back({now_ns(), key, node->largest_allotment});
    }
  });
}

void Fleet::Replace(int place, bool give_back) {
  auto& node = nodes_[static_cast<size_t>(place)];
  FleetNode* old = node.get();
  if (give_back) {
    Later(old, 0, [old] { old->GiveBackAll(); });
    schedule_.After(1000 * kMs, [old] { old->alive = false; });
  } else {
    old->alive = false;
  }
  gone_.push_back(std::exchange(node, NewNode(place)));
}

void Fleet::Later(FleetNode* node, int64_t delay_ns, std::function<void()> what) {
  if (delay_ns == 0 && node->alive && node->still_until_ns <= now_ns()) return what();
  schedule_.After(delay_ns, [this, node, what = std::move(what)]() mutable {
    if (!node->alive) return;
    if (node->still_until_ns > now_ns()) {
      schedule_.At(node->still_until_ns,
                   [this, node, what = std::move(what)] { Later(node, 0, what); });
      return;
    }
    what();
  });
}

bool Fleet::Lost() { return random_.Chance(scenario_.loss); }

int64_t Fleet::Delay() {
  if (random_.Chance(scenario_.slow_share)) return random_.Between(0, scenario_.slow_ns);
  return random_.Between(scenario_.delay_ns / 2, scenario_.delay_ns);
}

void Fleet::Send(FleetNode* node, std::function<AtNode()> at_store) {
  if (Lost() || node->cut_off_until_ns > now_ns()) return;
  schedule_.After(Delay(), [this, node, at_store = std::move(at_store)] {
    if (store_away_until_ns_ > now_ns()) return;
    AtNode at_node = at_store();
    if (Lost() || node->cut_off_until_ns > now_ns()) return;
    Later(node, Delay(), std::move(at_node));
  });
}

void Fleet::Admit(FleetNode* node, Decider decider, int key, int64_t units, int64_t at_ns) {
  report_.admitted_units += units;
  log_.push_back({at_ns, log_.size(), units, key, decider, node});
  if (!trace_) return;
  constexpr std::string_view kBy[] = {"store", "lease", "share"};
  Trace(node, fmt::format("key {} admits {} by its {}, as of {:.6f}", key, units,
                          kBy[static_cast<int>(decider)], static_cast<double>(at_ns) / 1e9));
}

void Fleet::Trace(const FleetNode* node, const std::string& text) const {
  fmt::print("{:10.6f} node {} (#{}) {}\n", static_cast<double>(now_ns()) / 1e9, node->place(),
             node->holder(), text);
}

std::optional<std::string> Fleet::Verdict() {
  std::ranges::sort(log_, {}, [](const Admission& it) { return std::pair(it.at_ns, it.order); });
  std::ranges::sort(allowances_, {}, &Allowance::at_ns);
  for (int key = 0; key < scenario_.keys; ++key) {
    if (scenario_.spec.algorithm == Algorithm::kFixedWindow) {
      if (auto fault = CheckWindows(key)) return fault;
      continue;
    }
    if (auto fault = CheckBucket(key, /*from_start=*/false)) return fault;
    if (auto fault = CheckBucket(key, /*from_start=*/true)) return fault;
    for (const auto* nodes : {&nodes_, &gone_}) {
      for (const auto& node : *nodes) {
        if (auto fault = CheckShare(node.get(), key)) return fault;
      }
    }
  }
  return std::nullopt;
}

// What the store and the leases admitted, against the limit; leased_fast may exceed it in an
// interval by what nodes held when it began, at most half of the burst.
std::optional<std::string> Fleet::CheckBucket(int key, bool from_start) {
  const bool rollout = std::ranges::count(scenario_.faults, FaultKind::kRollout, &Fault::kind) > 0;
  const Rate& one = scenario_.spec.rate;
  const Rate& two = rollout ? scenario_.other.rate : one;
  const int64_t burst = std::max(one.burst, two.burst);
  const bool fast = scenario_.mode == FleetMode::kLeasedFast && !from_start;
  BoundCheck check({.capacity = burst + (fast ? burst / 2 : 0),
                    .units = std::max(one.units, two.units),
                    .period_ns = one.period.count(),
                    .grace_ns = scenario_.book.term_ns,
                    .slack_ns = kGrainNs,
                    .from_start = from_start});
  for (const Allowance& it : allowances_) {
    if (it.key == key) check.Allow(it.at_ns, it.units);
  }
  for (const Admission& it : log_) {
    if (it.key != key || it.decider == Decider::kShare) continue;
    if (const auto fault = check.Admit(it.at_ns, it.units)) {
      return fmt::format(
          "key {}: {} units admitted from {:.6f} to {:.6f} s, where {:.3f} are allowed", key,
          fault->admitted, static_cast<double>(fault->from_ns) / 1e9,
          static_cast<double>(fault->to_ns) / 1e9, fault->allowed);
    }
  }
  return std::nullopt;
}

std::optional<std::string> Fleet::CheckWindows(int key) {
  const bool rollout = std::ranges::count(scenario_.faults, FaultKind::kRollout, &Fault::kind) > 0;
  const int64_t limit = rollout ? std::max(scenario_.spec.rate.units, scenario_.other.rate.units)
                                : scenario_.spec.rate.units;
  const FleetNode& any = *nodes_[0];
  int64_t count = 0;
  std::optional<store::lease::WindowBounds> window;
  for (const Admission& it : log_) {
    if (it.key != key) continue;
    const auto now = any.WindowAt(key, it.at_ns);
    if (now != window) count = 0;
    window = now;
    count += it.units;
    int64_t allowed = limit;
    for (const Allowance& extra : allowances_) {
      const bool before_end = store_.ClockUs(extra.at_ns) < now->end_us;
      const bool after_start =
          store_.ClockUs(extra.at_ns + scenario_.book.term_ns) >= now->start_us;
      if (extra.key == key && before_end && after_start) allowed += extra.units;
    }
    if (count > allowed) {
      return fmt::format(
          "key {}: {} units admitted in the window that holds {:.6f} s, where {} are allowed", key,
          count, static_cast<double>(it.at_ns) / 1e9, allowed);
    }
  }
  return std::nullopt;
}

// What one node admitted by its share, against the largest share it ever reckoned with.
std::optional<std::string> Fleet::CheckShare(FleetNode* node, int key) {
  if (node->fewest_nodes() == 0) return std::nullopt;
  const Rate& rate = scenario_.spec.rate;
  const int64_t nodes = node->fewest_nodes();
  BoundCheck check(
      {.capacity = std::max(rate.burst / nodes, std::min(scenario_.cost_max, rate.burst)),
       .units = rate.units,
       .period_ns = rate.period.count() * nodes,
       // Its clock is a little fast, and what it used under one number of nodes is
       // carried over to the next.
       .slack_ns = scenario_.length_ns / 1000});
  for (const Admission& it : log_) {
    if (it.key != key || it.decider != Decider::kShare || it.node != node) continue;
    if (const auto fault = check.Admit(it.at_ns, it.units)) {
      return fmt::format(
          "key {}: node {} admitted {} units by its share from {:.6f} to {:.6f} s, "
          "where {:.3f} are allowed",
          key, node->place(), fault->admitted, static_cast<double>(fault->from_ns) / 1e9,
          static_cast<double>(fault->to_ns) / 1e9, fault->allowed);
    }
  }
  return std::nullopt;
}

}  // namespace weir::testing
