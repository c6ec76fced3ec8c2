// A fleet of nodes on one store over a faulty network, in virtual time, as a scenario says; and the
// verdict: whether what was admitted kept to the bound that its mode promises.
//
//   Report report = Fleet(Scenario::FromSeed(42)).Run();
//   if (report.violation) fmt::print("{}\n", *report.violation);
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "testing/simulation/random.h"
#include "testing/simulation/scenario.h"
#include "testing/simulation/schedule.h"
#include "testing/simulation/store_server.h"

namespace weir::testing {

class FleetNode;

struct Report {
  std::optional<std::string> violation;
  int64_t calls = 0;
  int64_t admitted_units = 0;  // By lease, store and share together.
  int64_t leased_calls = 0;    // Admitted without a round trip.
  int64_t local_calls = 0;     // Admitted by a node's share.
  int64_t trips = 0;           // Messages to the store about limits.
};

// Where an admission came from.
enum class Decider : uint8_t { kStore, kLease, kShare };

class Fleet {
 public:
  // `trace`: one line per thing that happens, on standard output.
  explicit Fleet(const Scenario& scenario, bool trace = false);
  ~Fleet();

  Report Run();

  // What nodes use.
  const Scenario& scenario() const { return scenario_; }
  Random* random() { return &random_; }
  int64_t now_ns() const { return schedule_.now_ns(); }
  StoreServer* store() { return &store_; }
  Report* report() { return &report_; }
  // Runs `what` on the node after `delay_ns`, or when it moves again; never if it is gone by then.
  void Later(FleetNode* node, int64_t delay_ns, std::function<void()> what);
  // Carries a message to the store, which answers with what the node does when the answer comes.
  // Either may be lost.
  using AtNode = std::function<void()>;
  void Send(FleetNode* node, std::function<AtNode()> at_store);
  void Admit(FleetNode* node, Decider decider, int key, int64_t units, int64_t at_ns);
  void Trace(const FleetNode* node, const std::string& text) const;
  bool tracing() const { return trace_; }

 private:
  struct Admission {
    int64_t at_ns;
    size_t order;  // In which they were logged.
    int64_t units;
    int key;
    Decider decider;
    FleetNode* node;
  };
  struct Allowance {  // What a fault may let through on top.
    int64_t at_ns;
    int key;
    int64_t units;
  };

  std::unique_ptr<FleetNode> NewNode(int place);
  // What the faster of the two definitions refills, rounded up.
  int64_t UnitsIn(int64_t span_us) const;
  void StartPhase(const Phase& phase);
  void NextCall(int place, int64_t gap_ns, int64_t end_ns);
  void StartFault(const Fault& fault);
  void StoreAway(const Fault& fault);
  void Suspend(const Fault& fault);
  void Replace(int place, bool give_back);
  bool Lost();
  int64_t Delay();
  std::optional<std::string> Verdict();
  std::optional<std::string> CheckBucket(int key, bool from_start);
  std::optional<std::string> CheckWindows(int key);
  std::optional<std::string> CheckShare(FleetNode* node, int key);

  Scenario scenario_;
  const bool trace_;
  Random random_;
  Schedule schedule_;
  StoreServer store_;
  Report report_;
  int64_t store_away_until_ns_ = 0;
  uint64_t holders_ = 0;
  std::vector<std::unique_ptr<FleetNode>> nodes_;  // By place.
  std::vector<std::unique_ptr<FleetNode>> gone_;
  std::vector<Admission> log_;
  std::vector<Allowance> allowances_;
};

}  // namespace weir::testing
