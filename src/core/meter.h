// A Meter is a limit's rate, compiled: checked once, so that a decision multiplies without a
// thought of overflow.
//
//   Result<std::unique_ptr<const Meter>> meter = Meter::Compile(
//       {.algorithm = Algorithm::kTokenBucket, .rate = {.units = 300, .period = 1min, .burst =
//       50}});
//   if (!meter) return std::unexpected(meter.error());   // "rate.period: must be ..."
//
// Thread safety: immutable; every method may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "core/calendar.h"
#include "core/fixed_window.h"
#include "core/gcra.h"
#include "core/now.h"
#include "core/parallel.h"
#include "core/sliding_counter.h"
#include "core/sliding_log.h"
#include "core/step.h"
#include "weir/limit.h"
#include "weir/result.h"

namespace weir::core {

struct MeterSpec {
  Algorithm algorithm = Algorithm::kTokenBucket;
  // units 0 denies every call that costs something. burst: the token bucket's capacity, at least 1
  // (REQUIRED there); elsewhere units or 0. parallel: units is the number of slots, and the period
  // has no meaning.
  Rate rate;
  bool strict = false;                     // sliding_counter only: at most N in every true window.
  int buckets = 10;                        // sliding_counter with strict only: 2 to 64.
  Alignment alignment = Alignment::kNone;  // fixed_window only: a window is one calendar period,
                                           // whatever rate.period.
  std::string timezone = "UTC";            // IANA name; read with an alignment only.

  friend bool operator==(const MeterSpec&, const MeterSpec&) = default;
};

// Which state a meter keeps per key. The packed forms hold it in one int64 whose zero is "full
// quota".
enum class Form : uint8_t {
  kDenyAll,       // units 0: no state.
  kTickBucket,    // packed
  kPackedWindow,  // packed
  kExactBucket,
  kWindow,
  kLog,
  kCounter,
  kStrictCounter,
  kParallel,
};

class Meter {
 public:
  // kInvalidArgument names the field of the spec. `id` is the caller's own number for this meter.
  // May read the zone's file; allocates.
  static Result<std::unique_ptr<const Meter>> Compile(const MeterSpec& spec, uint16_t id = 0);

  Form form() const { return form_; }
  uint16_t id() const { return id_; }
  bool packed() const { return form_ == Form::kTickBucket || form_ == Form::kPackedWindow; }
  Algorithm algorithm() const { return spec_.algorithm; }
  const MeterSpec& spec() const { return spec_; }
  // The capacity B: what remaining is out of, and the largest cost that can ever pass.
  int64_t quota() const { return quota_; }

  // REQUIRES: the form is that one (kWindow and kPackedWindow share window()).
  const TickBucket& tick_bucket() const { return tick_bucket_; }
  const FixedWindow& window() const { return window_; }
  const ExactBucket& exact_bucket() const { return exact_bucket_; }
  const SlidingLog& log() const { return log_; }
  const SlidingCounter& counter() const { return counter_; }
  const StrictCounter& strict_counter() const { return strict_counter_; }
  const Parallel& parallel() const { return parallel_; }

  // The answer of a meter of form kDenyAll.
  static Step DenyAll(int64_t cost) { return {cost == 0, 0, 0, cost == 0 ? 0 : kNever}; }

 private:
  Meter(const MeterSpec& spec, uint16_t id) : id_(id), spec_(spec) {}
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  // What a decision reads comes first, in one cache line or two.
  Form form_ = Form::kDenyAll;
  uint16_t id_ = 0;
  int64_t quota_ = 0;
  TickBucket tick_bucket_;
  FixedWindow window_;
  ExactBucket exact_bucket_;
  SlidingLog log_;
  SlidingCounter counter_;
  StrictCounter strict_counter_;
  Parallel parallel_;
  MeterSpec spec_;
  std::unique_ptr<CalendarWindows> calendar_;
};

}  // namespace weir::core
