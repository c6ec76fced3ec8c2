#include "store/lease/node_share.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/int128.h"

namespace weir::store::lease {
namespace {

// The longest that a calendar period can be, so that the share's rate is never above the limit's.
std::chrono::nanoseconds LongestPeriod(const core::MeterSpec& limit) {
  using std::chrono::hours;
  switch (limit.alignment) {
    case core::Alignment::kNone:
      return limit.rate.period;
    case core::Alignment::kMinute:
      return std::chrono::minutes(1);
    case core::Alignment::kHour:
      return hours(1);
    case core::Alignment::kDay:
      return hours(25);
    case core::Alignment::kWeek:
      return hours(7 * 24 + 1);
    case core::Alignment::kMonth:
      return hours(31 * 24 + 1);
    case core::Alignment::kYear:
      return hours(366 * 24);
  }
  return limit.rate.period;
}

}  // namespace

Result<NodeShare> NodeShare::Of(const core::MeterSpec& limit, int64_t nodes) {
  if (limit.algorithm == Algorithm::kParallel) {
    return InvalidArgument("a parallel limit has no rate that nodes could share");
  }
  NodeShare share;
  share.capacity_ =
      limit.algorithm == Algorithm::kTokenBucket ? limit.rate.burst : limit.rate.units;
  share.spec_.algorithm = Algorithm::kTokenBucket;
  share.spec_.rate = {.units = limit.rate.units};
  if (limit.rate.units == 0) {
    share.capacity_ = 0;
    share.spec_.rate.burst = 1;
    return share;
  }
  const core::Int128 period_ns = core::Int128{LongestPeriod(limit).count()} * nodes;
  if (period_ns > std::numeric_limits<int64_t>::max()) {
    return InvalidArgument("too many nodes for a period of this length");
  }
  share.spec_.rate.period = std::chrono::nanoseconds(static_cast<int64_t>(period_ns));
  share.spec_.rate.burst = std::max<int64_t>(share.capacity_ / nodes, 1);
  // Fails where refilling the share takes longer than a meter can count.
  if (auto meter = core::Meter::Compile(share.spec_); !meter) {
    return std::unexpected(meter.error());
  }
  return share;
}

NodeShare::Parts NodeShare::Split(int64_t cost) const {
  if (cost > capacity_) return {.possible = false};
  const int64_t charge = std::min(cost, spec_.rate.burst);
  return {.charge = charge, .debt = cost - charge};
}

int64_t NodeRegistry::Beat(uint64_t node, int64_t now_us, int64_t expiry_us) {
  std::erase_if(seen_, [&](const Seen& seen) {
    return seen.node == node || seen.at_us <= now_us - expiry_us;
  });
  seen_.push_back({node, now_us});
  return static_cast<int64_t>(seen_.size());
}

void NodeRegistry::Leave(uint64_t node) {
  std::erase_if(seen_, [&](const Seen& seen) { return seen.node == node; });
}

}  // namespace weir::store::lease
