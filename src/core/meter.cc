#include "core/meter.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace weir::core {
namespace {

constexpr Int128 kMaxSpanNs = Int128{1} << 62;

std::optional<Error> CheckRate(const MeterSpec& spec) {
  const auto invalid = [](std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message)};
  };
  const Rate& rate = spec.rate;
  if (rate.units < 0 || rate.units > kMaxUnits) {
    return invalid(fmt::format("rate.units: must be between 0 and 2^53, is {}", rate.units));
  }
  if (spec.algorithm == Algorithm::kParallel) return std::nullopt;
  if (rate.period.count() <= 0) {
    return invalid(
        fmt::format("rate.period: must be longer than 0, is {} ns", rate.period.count()));
  }
  if (spec.algorithm != Algorithm::kTokenBucket) {
    if (rate.burst != 0 && rate.burst != rate.units) {
      return invalid(fmt::format(
          "rate.burst: {} has no burst of its own; leave it out, or set it to {}, is {}",
          AlgorithmName(spec.algorithm), rate.units, rate.burst));
    }
    // Two windows of the sliding counter, and the end of a window, must fit beside the clock.
    if (Int128{rate.period.count()} * 4 > kMaxSpanNs) {
      return invalid("rate.period: must be at most 36 years");
    }
    return std::nullopt;
  }
  if (rate.units == 0) return std::nullopt;
  if (rate.burst < 1 || rate.burst > kMaxUnits) {
    return invalid(fmt::format("rate.burst: must be between 1 and 2^53, is {}", rate.burst));
  }
  // A full refill, and one unit, must fit an int64 of nanoseconds.
  const Int128 capacity = Int128{rate.burst} * rate.period.count();
  if (rate.period.count() >= kMaxSpanNs || capacity >= kMaxSpanNs * rate.units) {
    return invalid(
        "rate.burst: refilling it from empty must take less than 146 years; raise the rate or "
        "lower the burst");
  }
  return std::nullopt;
}

std::optional<Error> CheckOptions(const MeterSpec& spec) {
  const auto invalid = [](std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message)};
  };
  if (spec.alignment != Alignment::kNone && spec.algorithm != Algorithm::kFixedWindow) {
    return invalid("alignment: only fixed_window follows the calendar");
  }
  if (spec.strict && spec.algorithm != Algorithm::kSlidingCounter) {
    return invalid("strict: only sliding_counter has a strict variant");
  }
  if (spec.strict &&
      (spec.buckets < StrictCounter::kMinBuckets || spec.buckets > StrictCounter::kMaxBuckets)) {
    return invalid(fmt::format("buckets: must be between {} and {}, is {}",
                               StrictCounter::kMinBuckets, StrictCounter::kMaxBuckets,
                               spec.buckets));
  }
  if (spec.algorithm == Algorithm::kSlidingWindow && spec.rate.units > SlidingLog::kMaxLimit) {
    return invalid(fmt::format(
        "rate.units: sliding_window keeps every admitted unit of a window and is capped at {}; "
        "use token_bucket or sliding_counter for {}",
        SlidingLog::kMaxLimit, spec.rate.units));
  }
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<const Meter>> Meter::Compile(const MeterSpec& spec, uint16_t id) {
  if (auto error = CheckRate(spec)) return std::unexpected(*std::move(error));
  if (auto error = CheckOptions(spec)) return std::unexpected(*std::move(error));
  std::unique_ptr<Meter> meter(new Meter(spec, id));
  if (spec.alignment != Alignment::kNone) {
    auto calendar = CalendarWindows::Make(spec.alignment, spec.timezone);
    if (!calendar) return std::unexpected(std::move(calendar.error()));
    meter->calendar_ = *std::move(calendar);
  }
  const int64_t units = spec.rate.units;
  const int64_t period_ns = spec.rate.period.count();
  if (units == 0) return meter;
  meter->quota_ = spec.algorithm == Algorithm::kTokenBucket ? spec.rate.burst : units;
  switch (spec.algorithm) {
    case Algorithm::kTokenBucket:
      meter->exact_bucket_ = ExactBucket(spec.rate);
      if (const auto bucket = TickBucket::Fit(spec.rate)) {
        meter->tick_bucket_ = *bucket;
        meter->form_ = Form::kTickBucket;
      } else {
        meter->form_ = Form::kExactBucket;
      }
      break;
    case Algorithm::kSlidingWindow:
      meter->log_ = SlidingLog(units, period_ns);
      meter->form_ = Form::kLog;
      break;
    case Algorithm::kSlidingCounter:
      meter->counter_ = SlidingCounter(units, period_ns);
      meter->strict_counter_ = StrictCounter(units, period_ns, spec.buckets);
      meter->form_ = spec.strict ? Form::kStrictCounter : Form::kCounter;
      break;
    case Algorithm::kFixedWindow:
      meter->window_ = FixedWindow(units, period_ns, meter->calendar_.get());
      meter->form_ = meter->window_.packable() ? Form::kPackedWindow : Form::kWindow;
      break;
    case Algorithm::kParallel:
      meter->parallel_ = Parallel(units);
      meter->form_ = Form::kParallel;
      break;
  }
  return meter;
}

}  // namespace weir::core
