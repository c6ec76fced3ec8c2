#include "testing/simulation/fleet_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace weir::testing {

using store::lease::Breaker;
using store::lease::GiveBackRequest;
using store::lease::Grant;
using store::lease::Key128;
using store::lease::LeaseKind;
using store::lease::LeaseTerms;
using store::lease::NodeShare;
using store::lease::RefillRequest;
using store::lease::TakeReply;
using store::lease::Windows;

namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kHeartbeatNs = 500 * kMs;
constexpr int64_t kNodeExpiryUs = 2'000'000;

LeaseTerms TermsOf(const Scenario& scenario, bool other) {
  const LeaseKind kind =
      scenario.mode == FleetMode::kLeasedFast ? LeaseKind::kFast : LeaseKind::kReserved;
  const Result<LeaseTerms> terms =
      LeaseTerms::Compile({.spec = other ? scenario.other : scenario.spec, .per = "client"}, kind);
  if (!terms) std::abort();  // Scenarios are made of limits that can be leased.
  return *terms;
}

store::lease::LeaseBook::Options BookOf(const Scenario& scenario, uint64_t holder) {
  store::lease::LeaseBook::Options options = scenario.book;
  options.holder = holder;
  return options;
}

}  // namespace

FleetNode::FleetNode(Fleet* fleet, int place, uint64_t holder)
    : fleet_(fleet),
      place_(place),
      holder_(holder),
      clock_zero_ns_(fleet->random()->Between(0, int64_t{1} << 40)),
      clock_ppm_(fleet->random()->Between(-500, 500)),
      terms_(TermsOf(fleet->scenario(), false)),
      book_(BookOf(fleet->scenario(), holder)),
      denials_({.slots = 8}),
      breaker_({.failures = 3, .open_for_ns = 300 * kMs}),
      seen_(fleet->scenario().nodes_configured ? fleet->scenario().nodes : 0) {
  if (fleet->scenario().mode == FleetMode::kLocalShare) {
    shares_ = std::make_unique<store::MemoryStore>(store::MemoryStoreOptions{.max_keys = 1000});
  }
}

int64_t FleetNode::ClockNs() const {
  const int64_t run_ns = fleet_->now_ns() - clock_stopped_ns;
  return clock_zero_ns_ + run_ns + run_ns / 1'000'000 * clock_ppm_;
}

int64_t FleetNode::HeldUnits(int key) const {
  return book_.StandingOf(KeyOf(key), terms_, ClockNs()).left;
}

bool FleetNode::leased() const {
  return fleet_->scenario().mode == FleetMode::kLeased ||
         fleet_->scenario().mode == FleetMode::kLeasedFast;
}

Key128 FleetNode::KeyOf(int key) const {
  const uint64_t number = static_cast<uint64_t>(key) + 1;
  return {.hi = number << 8, .lo = number * 0x9e3779b97f4a7c15u};
}

Windows FleetNode::WindowsOf(int key) const {
  return {.offset_us = store::lease::OffsetOf(terms_, KeyOf(key))};
}

std::optional<store::lease::WindowBounds> FleetNode::WindowAt(int key, int64_t true_ns) const {
  return store::lease::WindowAt(terms_, WindowsOf(key), fleet_->store()->ClockUs(true_ns));
}

void FleetNode::Call(int key, int64_t cost) {
  ++fleet_->report()->calls;
  const int64_t now_ns = ClockNs();
  if (leased()) {
    const LeaseBook::Answer answer = book_.Spend(KeyOf(key), terms_, cost, now_ns);
    if (answer.spent) SpendUnlessUndone(key, cost, answer);
    if (answer.ask) AskForMore(key);
    if (answer.spent) return;
  }
  if (denials_.Find(KeyOf(key), cost, now_ns)) return;
  if (breaker_.Ask(now_ns) == Breaker::Pass::kNo) {
    DecideByShare(key, cost);
  } else {
    DecideOnStore(key, cost);
  }
}

void FleetNode::SpendUnlessUndone(int key, int64_t cost, const LeaseBook::Answer& answer) {
  if (!fleet_->random()->Chance(fleet_->scenario().undone)) {
    ++fleet_->report()->leased_calls;
    fleet_->Admit(this, Decider::kLease, key, cost, fleet_->now_ns());
    return;
  }
  const int64_t after_ns = fleet_->random()->Between(0, 1) * fleet_->random()->Between(0, 30 * kMs);
  fleet_->Later(this, after_ns, [this, key, cost, answer, terms = terms_] {
    book_.Undo(KeyOf(key), terms, cost, answer, ClockNs());
  });
}

void FleetNode::AskForMore(int key) {
  const std::optional<RefillRequest> asked = book_.Ask(KeyOf(key), terms_, ClockNs());
  if (!asked) return;
  const RefillRequest& request = *asked;
  ++fleet_->report()->trips;
  if (fleet_->tracing()) {
    fleet_->Trace(this, fmt::format("key {} asks #{}: left {}, want {}, applied {}", key,
                                    request.number, request.left, request.want, request.applied));
  }
  fleet_->Send(this, [this, key, request = *asked, terms = terms_, windows = WindowsOf(key)] {
    const Grant grant = fleet_->store()->Refill(key, terms, request, windows, fleet_->now_ns());
    largest_allotment = std::max(largest_allotment, grant.allotment);
    if (fleet_->tracing()) {
      fleet_->Trace(this,
                    fmt::format("key {} store answers #{}: status {}, {} units, allotment {}, "
                                "available {}",
                                key, grant.number, static_cast<int>(grant.status), grant.units,
                                grant.allotment, grant.available));
    }
    return [this, key, grant] { book_.Apply(KeyOf(key), grant, ClockNs()); };
  });
  fleet_->Later(this, fleet_->scenario().book.patience_ns,
                [this, key, request] { book_.Failed(KeyOf(key), request.number, ClockNs()); });
}

void FleetNode::DecideOnStore(int key, int64_t cost) {
  ++fleet_->report()->trips;
  const int64_t sent_ns = ClockNs();
  const auto decided = std::make_shared<bool>(false);
  fleet_->Send(this, [this, key, cost, sent_ns, decided, terms = terms_, windows = WindowsOf(key)] {
    const int64_t at_ns = StoreServer::GrainNs(fleet_->now_ns());
    const TakeReply reply = fleet_->store()->Take(key, terms, cost, windows, fleet_->now_ns());
    return [this, key, cost, sent_ns, decided, reply, at_ns] {
      if (*decided) {  // Too late: it was answered otherwise.
        if (reply.allowed) PutBack(key, reply.receipt, cost);
        return;
      }
      *decided = true;
      breaker_.Succeeded(sent_ns);
      if (reply.allowed) {
        fleet_->Admit(this, Decider::kStore, key, cost, at_ns);
      } else if (!reply.other_window) {
        const int64_t retry_ns =
            reply.retry_us == core::kNever ? core::kNever : reply.retry_us * 1000;
        denials_.Put(KeyOf(key), cost, sent_ns, retry_ns, /*reservations=*/leased());
      }
    };
  });
  fleet_->Later(this, fleet_->scenario().timeout_ns, [this, key, cost, sent_ns, decided] {
    if (*decided) return;
    *decided = true;
    breaker_.Failed(sent_ns, ClockNs());
    DecideByShare(key, cost);
  });
}

void FleetNode::PutBack(int key, core::Receipt receipt, int64_t cost) {
  fleet_->Send(this, [this, key, receipt, cost, terms = terms_, windows = WindowsOf(key)] {
    store::lease::PutBack(fleet_->store()->state(key), terms, receipt, cost, windows,
                          fleet_->store()->ClockUs(fleet_->now_ns()));
    return [] {};
  });
}

// With this limit's own failure policy: local_share, or closed.
void FleetNode::DecideByShare(int key, int64_t cost) {
  if (shares_ == nullptr) return;
  const int64_t nodes = seen_.count();
  // A denial too brings the counter under the rate of the hour.
  fewest_nodes_ = fewest_nodes_ == 0 ? nodes : std::min(fewest_nodes_, nodes);
  const Result<NodeShare> share = NodeShare::Of(fleet_->scenario().spec, nodes);
  const NodeShare::Parts parts = share->Split(cost);
  if (!parts.possible) return;
  const core::Meter* meter = *shares_->Intern(share->spec());
  const core::Now now{.mono_ns = ClockNs()};
  const store::Charge charge{.meter = meter, .key = KeyOf(key), .cost = parts.charge};
  store::Outcome outcome;
  if (!shares_->Decide({&charge, 1}, {&outcome, 1}, now, store::Mode::kCharge)) return;
  if (parts.debt > 0) {
    shares_->Settle(*meter, charge.key, outcome.receipt, parts.charge, parts.charge + parts.debt,
                    now);
  }
  ++fleet_->report()->local_calls;
  fleet_->Admit(this, Decider::kShare, key, cost, fleet_->now_ns());
}

void FleetNode::SendBack(int key, GiveBackRequest back, int tries) {
  if (tries == 0) return;
  if (fleet_->tracing()) {
    fleet_->Trace(this,
                  fmt::format("key {} gives back #{}: {} units", key, back.number, back.left));
  }
  const auto answered = std::make_shared<bool>(false);
  fleet_->Send(this, [this, key, back, answered, terms = terms_, windows = WindowsOf(key)] {
    store::lease::GiveBack(fleet_->store()->state(key), terms, back, windows,
                           fleet_->store()->ClockUs(fleet_->now_ns()));
    return [answered] { *answered = true; };
  });
  fleet_->Later(this, fleet_->scenario().book.patience_ns, [this, key, back, answered, tries] {
    if (!*answered) SendBack(key, back, tries - 1);
  });
}

void FleetNode::GiveBackAll() {
  book_.GiveBackAll(ClockNs(), [this](Key128 key, const GiveBackRequest& back) {
    SendBack(static_cast<int>(key.hi >> 8) - 1, back, 3);
  });
}

void FleetNode::Rollout() {
  if (fleet_->random()->Chance(0.5)) GiveBackAll();
  other_ = !other_;
  terms_ = TermsOf(fleet_->scenario(), other_);
  denials_.DropAll();
}

void FleetNode::StartTicking() {
  if (leased() || fleet_->scenario().mode == FleetMode::kLocalShare) Tick();
}

void FleetNode::Tick() {
  if (leased()) {
    book_.Sweep(ClockNs(), 256, [this](Key128 key, const GiveBackRequest& back) {
      SendBack(static_cast<int>(key.hi >> 8) - 1, back, 3);
    });
    fleet_->Later(this, fleet_->scenario().book.horizon_ns / 8, [this] { Tick(); });
    return;
  }
  fleet_->Send(this, [this] {
    const int64_t nodes = fleet_->store()->registry()->Beat(
        holder_, fleet_->store()->ClockUs(fleet_->now_ns()), kNodeExpiryUs);
    return [this, nodes] { seen_.Answered(nodes); };
  });
  fleet_->Later(this, kHeartbeatNs, [this] { Tick(); });
}

}  // namespace weir::testing
