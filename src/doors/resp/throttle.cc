#include "doors/resp/throttle.h"

#include <optional>
#include <string>

#include "core/int128.h"
#include "core/step.h"
#include "wire/decimal.h"

namespace weir::doors::resp {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kPeriodMax = (int64_t{1} << 62) / kSecondNs;  // In seconds; 146 years.

struct Bounds {
  std::string_view argument;
  int64_t min, max;
};
constexpr Bounds kMaxBurst = {"max_burst", 0, kMaxUnits - 1};
constexpr Bounds kCount = {"count", 1, kMaxUnits};
constexpr Bounds kPeriod = {"period", 1, kPeriodMax};
constexpr Bounds kQuantity = {"quantity", 0, kMaxUnits};

bool ReadNumber(std::string_view text, const Bounds& bounds, int64_t& out) {
  const std::optional<int64_t> number = wire::ParseDecimal(text);
  if (!number || *number < bounds.min || *number > bounds.max) return false;
  out = *number;
  return true;
}

std::unexpected<Error> Wrong(const Bounds& bounds) {
  return InvalidArgument(std::string(bounds.argument) + ": must be a whole number from " +
                         std::to_string(bounds.min) + " to " + std::to_string(bounds.max));
}

int64_t SecondsUp(int64_t ns) { return core::CeilDiv64(ns, kSecondNs); }

}  // namespace

Result<Throttle> ReadThrottle(std::span<const std::string_view> words) {
  int64_t max_burst = 0, count = 0, period_s = 0;
  Throttle throttle;
  if (!ReadNumber(words[2], kMaxBurst, max_burst)) return Wrong(kMaxBurst);
  if (!ReadNumber(words[3], kCount, count)) return Wrong(kCount);
  if (!ReadNumber(words[4], kPeriod, period_s)) return Wrong(kPeriod);
  if (words.size() > 5 && !ReadNumber(words[5], kQuantity, throttle.quantity))
    return Wrong(kQuantity);
  throttle.rule.key = words[1];
  throttle.rule.spec.algorithm = Algorithm::kTokenBucket;
  throttle.rule.spec.rate = {
      .units = count, .period = std::chrono::seconds(period_s), .burst = max_burst + 1};
  return throttle;
}

Error ThrottleError(const Error& error) {
  if (error.code != ErrorCode::kInvalidArgument) return error;
  // All else that a bucket can be refused for, ReadThrottle has tested.
  return {error.code,
          "max_burst: filling the bucket from empty must take less than 146 years; raise count or "
          "lower max_burst"};
}

void AppendThrottle(const decide::Verdict& verdict, weir::resp::ReplyWriter& reply) {
  const decide::LimitVerdict& limit = verdict.limits[0];
  const bool waits = !verdict.allowed && limit.retry_after_ns != core::kNever;
  reply.Array(5);
  reply.Integer(verdict.allowed ? 0 : 1);
  reply.Integer(limit.quota);
  reply.Integer(limit.remaining);
  reply.Integer(waits ? SecondsUp(limit.retry_after_ns) : -1);
  reply.Integer(SecondsUp(limit.reset_after_ns));
}

}  // namespace weir::doors::resp
