#include "store/memory/meter_registry.h"

#include <fmt/format.h>

#include <boost/container_hash/hash.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace weir::store {
namespace {

struct SpecHash {
  size_t operator()(const core::MeterSpec& spec) const {
    size_t seed = static_cast<size_t>(spec.algorithm);
    boost::hash_combine(seed, spec.rate.units);
    boost::hash_combine(seed, spec.rate.period.count());
    boost::hash_combine(seed, spec.rate.burst);
    boost::hash_combine(seed, spec.strict);
    boost::hash_combine(seed, spec.buckets);
    boost::hash_combine(seed, static_cast<int>(spec.alignment));
    boost::hash_combine(seed, spec.timezone);
    return seed;
  }
};

// What has no meaning for the algorithm does not make a different meter.
core::MeterSpec Canonical(core::MeterSpec spec) {
  if (spec.algorithm != Algorithm::kTokenBucket && spec.rate.burst == 0) {
    spec.rate.burst = spec.rate.units;
  }
  if (!spec.strict) spec.buckets = core::MeterSpec{}.buckets;
  if (spec.alignment == core::Alignment::kNone) spec.timezone = core::MeterSpec{}.timezone;
  return spec;
}

}  // namespace

struct MeterRegistry::Index {
  std::shared_mutex mutex;
  boost::unordered_flat_map<core::MeterSpec, const core::Meter*, SpecHash> by_spec;
  std::vector<std::unique_ptr<const core::Meter>> meters;
};

MeterRegistry::MeterRegistry()
    : by_id_(new std::atomic<const core::Meter*>[kMaxMeters + 1]),
      index_(std::make_unique<Index>()) {}
MeterRegistry::~MeterRegistry() = default;

Result<const core::Meter*> MeterRegistry::Intern(const core::MeterSpec& raw, int meters_max) {
  const core::MeterSpec spec = Canonical(raw);
  {
    const std::shared_lock lock(index_->mutex);
    if (const auto it = index_->by_spec.find(spec); it != index_->by_spec.end()) return it->second;
  }
  const std::unique_lock lock(index_->mutex);
  if (const auto it = index_->by_spec.find(spec); it != index_->by_spec.end()) return it->second;
  if (index_->meters.size() >= static_cast<size_t>(meters_max)) {
    return MakeError(ErrorCode::kResourceExhausted,
                     fmt::format("this store already holds {} different rates", meters_max));
  }
  const auto id = static_cast<uint16_t>(index_->meters.size() + 1);  // 0 marks a slot without one.
  auto meter = core::Meter::Compile(spec, id);
  if (!meter) return std::unexpected(std::move(meter.error()));
  const core::Meter* result = meter->get();
  index_->meters.push_back(*std::move(meter));
  by_id_[id].store(result, std::memory_order_release);
  index_->by_spec.emplace(spec, result);
  return result;
}

}  // namespace weir::store
