// LeasedMeter: a rate together with the terms under which nodes lease its counters, each
// definition of a limit once.
//
//   LeasedMeters leased;
//   Result<const LeasedMeter*> terms = leased.Intern(meter, Unit::kRequests, "client",
//                                                    LeaseKind::kReserved);
//
// Thread safety: any thread. Ownership: they live as long as the LeasedMeters that made them, and
// borrow their meters. As many are kept as there were definitions in the policies, like the meters.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/keyed_hash.h"
#include "core/meter.h"
#include "store/lease/lease_terms.h"
#include "weir/result.h"

namespace weir::store::lease {

struct LeasedMeter {
  const core::Meter* meter = nullptr;
  LeaseTerms terms;
};

class LeasedMeters {
 public:
  // Errors as LeaseTerms::Compile. REQUIRES: the meter outlives this.
  Result<const LeasedMeter*> Intern(const core::Meter& meter, Unit unit, std::string_view per,
                                    LeaseKind kind);

 private:
  using Definition = std::pair<const core::Meter*, uint64_t>;  // And the fence of its terms.
  std::mutex mutex_;
  std::map<Definition, std::unique_ptr<const LeasedMeter>> meters_;  // Guarded by mutex_.
};

// What a call must say of a key's windows. By a calendar: the window of this node's wall clock and
// the one after it, or, with `earlier`, the one before it.
Windows WindowsOf(const LeasedMeter& leased, Key128 key, int64_t wall_ns, bool earlier);

}  // namespace weir::store::lease
