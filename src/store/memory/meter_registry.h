// The meters of a store, one per distinct rate, each under a 16-bit number that a table can keep
// beside its state.
//
//   Result<const core::Meter*> meter = registry.Intern(spec);
//   const core::Meter& same = registry.Get((*meter)->id());
//
// Thread safety: any thread. Ownership: meters live as long as the registry.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/meter.h"

namespace weir::store {

class MeterRegistry {
 public:
  static constexpr int kMaxMeters = 65'000;
  // Of these, callers who bring their own rates can take so many; the rest is the policies', so
  // that no caller can keep a reload from being bound.
  static constexpr int kMaxMetersOfCalls = 50'000;

  MeterRegistry();
  ~MeterRegistry();

  // Equal specs give the same meter. kInvalidArgument, or kResourceExhausted after `meters_max`.
  // May allocate and wait.
  Result<const core::Meter*> Intern(const core::MeterSpec& spec, int meters_max = kMaxMeters);

  // REQUIRES: an id that Intern gave out. Acquire pairs with the release in Intern: whoever read
  // the id from a slot may have learnt of it by another way than the registry's lock.
  const core::Meter& Get(uint16_t id) const { return *by_id_[id].load(std::memory_order_acquire); }

 private:
  struct Index;
  std::unique_ptr<std::atomic<const core::Meter*>[]>
      by_id_;  // 512 KiB, touched as ids are given out.
  std::unique_ptr<Index> index_;
};

}  // namespace weir::store
