// Holds a log of admissions to a bound: in every interval [s, t] at most
//
//   capacity + rate * (t - s) + what the faults in [s - grace, t] allow on top
//
// The check is exact (128-bit integers), and every interval that begins at one admission and ends
// at another is looked at, in one pass: what is admitted up to t, less rate * t, is compared with
// its lowest value so far.
//
//   BoundCheck check({.capacity = 100, .units = 50, .period_ns = 1'000'000'000});
//   check.Allow(fault_ns, /*extra=*/100);
//   for (const Admission& it : log) if (auto fault = check.Admit(it.at_ns, it.units)) ...
//
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/int128.h"

namespace weir::testing {

class BoundCheck {
 public:
  struct Bound {
    int64_t capacity = 0;
    int64_t units = 0;  // The rate: so many per period.
    int64_t period_ns = 1;
    int64_t grace_ns = 0;     // How long before an interval a fault still matters to it.
    int64_t slack_ns = 0;     // The clocks' grain: counted as time that passed.
    bool from_start = false;  // Only the intervals that begin at 0.
  };
  struct Fault {
    int64_t from_ns;
    int64_t to_ns;
    int64_t admitted;
    double allowed;
  };

  explicit BoundCheck(const Bound& bound) : bound_(bound) {}

  // A fault at `at_ns` that may let `units` more through. In the order of time.
  void Allow(int64_t at_ns, int64_t units) { faults_.push_back({at_ns, units}); }

  // REQUIRES: at_ns does not go back.
  std::optional<Fault> Admit(int64_t at_ns, int64_t units) {
    const core::Int128 refilled = core::Int128{at_ns} * bound_.units;
    if (!started_ || !bound_.from_start) {
      const core::Int128 start = bound_.from_start
                                     ? 0
                                     : core::Int128{admitted_} * bound_.period_ns - refilled -
                                           AllowedBy(at_ns - bound_.grace_ns - 1);
      if (!started_ || start < lowest_) {
        lowest_ = start;
        lowest_at_ns_ = bound_.from_start ? 0 : at_ns;
        admitted_before_ = admitted_;
      }
      started_ = true;
    }
    admitted_ += units;
    const core::Int128 level =
        core::Int128{admitted_} * bound_.period_ns - refilled - AllowedBy(at_ns) - lowest_;
    const core::Int128 capacity = core::Int128{bound_.capacity} * bound_.period_ns +
                                  core::Int128{bound_.slack_ns} * bound_.units;
    if (level <= capacity) return std::nullopt;
    const double over =
        static_cast<double>(level - capacity) / static_cast<double>(bound_.period_ns);
    const int64_t count = admitted_ - admitted_before_;
    return Fault{lowest_at_ns_, at_ns, count, static_cast<double>(count) - over};
  }

  int64_t admitted() const { return admitted_; }

 private:
  struct Allowance {
    int64_t at_ns;
    int64_t units;
  };

  core::Int128 AllowedBy(int64_t at_ns) const {
    core::Int128 sum = 0;
    for (const Allowance& fault : faults_) {
      if (fault.at_ns <= at_ns) sum += core::Int128{fault.units} * bound_.period_ns;
    }
    return sum;
  }

  Bound bound_;
  std::vector<Allowance> faults_;
  bool started_ = false;
  core::Int128 lowest_ = 0;
  int64_t lowest_at_ns_ = 0;
  int64_t admitted_ = 0;
  int64_t admitted_before_ = 0;
};

}  // namespace weir::testing
