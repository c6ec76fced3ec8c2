// DescriptorCounter: which counter a descriptor is charged to.
//
//   const DescriptorCounter counter{&limit, call.domain, descriptor.entries};
//
// Thread safety: plain values; views into the call.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/hmac_key.h"
#include "base/keyed_hash.h"
#include "decide/bound_policy.h"
#include "policy/descriptor_pattern.h"

namespace weir::decide {

struct DescriptorCounter {
  const BoundLimit* limit = nullptr;  // Null: of a rate that came with the call and met no limit.
  std::string_view domain;
  std::span<const policy::DescriptorEntry> entries;
  // Above 0: a rate that came with the call counts in windows of another length than the limit's,
  // or apart from its leases, and so in a counter of its own.
  int64_t period_ns = 0;

  // Its name on a shared store, the same on every node; and where all counters of this descriptor
  // are kept, so that they are decided in one place. About 1 µs each.
  base::Key128 SharedKey(const base::HmacKeys& keys) const;
  uint64_t Tag(const base::HmacKeys& keys) const;
};

}  // namespace weir::decide
