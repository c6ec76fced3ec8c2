// Meters as the scripts know them: see counters/start.lua.
#include <algorithm>
#include <array>
#include <numeric>

#include "core/int128.h"
#include "store/redis/message.h"

namespace weir::store::redis {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kWholeMax = int64_t{1}
                              << 53;  // The largest whole number that a double is sure of.

// Bounds under which a level in ticks is exact in one double; a debt beyond it is kept in the wide
// form. A tick is the same fraction of a nanosecond as TickBucket's where that fits, so that what
// two rates carry over rounds alike; else it is larger.
constexpr int64_t kTauMax = int64_t{1} << 50;
constexpr int64_t kTicksPerUsMax = int64_t{1} << 31;

std::optional<MeterCode> BucketCode(const Rate& rate) {
  const bool tick = core::TickBucket::Fit(rate).has_value();
  const int64_t period_ns = rate.period.count();
  MeterCode code{.c = rate.burst, .limit = rate.burst};
  const auto fits = [&](int64_t divisor) {
    const core::Int128 ticks_per_us = core::Int128{rate.units} * 1000 / divisor;
    code.a = period_ns / divisor;
    code.b = core::Clamp64(ticks_per_us);
    const core::Int128 tau = core::Int128{code.a} * rate.burst;
    code.tau = core::Clamp64(tau);
    return tau <= kTauMax && ticks_per_us <= kTicksPerUsMax;
  };
  code.form = tick ? ScriptForm::kTickBucket : ScriptForm::kExactBucket;
  if (tick && fits(std::gcd(period_ns, rate.units))) return code;
  // 1000 * 2^53 fits an int64.
  if (fits(std::gcd(period_ns, rate.units * 1000))) return code;
  code.form = tick ? ScriptForm::kWideTickBucket : ScriptForm::kWideExactBucket;
  code.tau = 0;
  if (code.a > kWholeMax || code.b > kWholeMax) return std::nullopt;
  return code;
}

// Tells calendars apart: 52 bits of FNV-1a over the alignment and the zone's name.
int64_t CalendarNumber(const core::MeterSpec& spec) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto mix = [&](unsigned char byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  mix(static_cast<unsigned char>(spec.alignment));
  for (const char byte : spec.timezone) mix(static_cast<unsigned char>(byte));
  return static_cast<int64_t>(hash >> 12);
}

}  // namespace

std::optional<MeterCode> CodeOf(const core::MeterSpec& spec) {
  const int64_t units = spec.rate.units;
  const int64_t period_ns = spec.rate.period.count();
  const int64_t period_us = period_ns / 1000;
  MeterCode code{.form = ScriptForm::kDenyAll, .limit = units};
  if (units == 0) return code;
  const bool whole_us = period_ns % 1000 == 0;
  switch (spec.algorithm) {
    case Algorithm::kTokenBucket:
      return BucketCode(spec.rate);
    case Algorithm::kSlidingWindow:
      code.form = ScriptForm::kLog;
      code.a = period_us;
      break;
    case Algorithm::kSlidingCounter:
      if (spec.strict) {
        const int64_t width_ns = core::CeilDiv64(period_ns, spec.buckets);
        const int64_t divisor = std::gcd(width_ns, int64_t{1000});
        code.form = ScriptForm::kStrictCounter;
        code.a = width_ns / divisor;
        code.b = 1000 / divisor;
        code.c = spec.buckets + 1;
        return code.a <= kWholeMax ? std::optional(code) : std::nullopt;
      }
      code.form = ScriptForm::kCounter;
      code.a = period_us;
      break;
    case Algorithm::kFixedWindow:
      code.form = ScriptForm::kWindow;
      code.a = period_us;
      if (spec.alignment != core::Alignment::kNone) {
        code.form = ScriptForm::kCalendar;
        code.a = CalendarNumber(spec);
        return code;
      }
      break;
    case Algorithm::kParallel:
      code.form = ScriptForm::kParallel;
      return code;
  }
  return whole_us ? std::optional(code) : std::nullopt;
}

MeterCode CodeOf(const core::Meter& meter) {
  if (meter.form() == core::Form::kDenyAll) return {};
  return CodeOf(meter.spec()).value_or(MeterCode{});
}

std::string MeterCode::Descriptor() const {
  std::string text(1, static_cast<char>(form));
  for (const int64_t number : {a, b, c}) {
    for (int shift = 48; shift >= 0; shift -= 8) text.push_back(static_cast<char>(number >> shift));
  }
  return text;
}

int64_t WindowOffsetUs(int64_t length_us, base::Key128 key) {
  // The bits of the key that the memory store shifts windows by, so that both agree.
  const uint64_t spread = key.lo >> 17 << 18;
  const auto length_ns = static_cast<uint64_t>(length_us) * 1000;
  return static_cast<int64_t>((core::Uint128{spread} * length_ns) >> 64) / 1000;
}

size_t MeterList::Add(const core::Meter& meter) {
  const auto found = std::ranges::find(meters_, &meter);
  if (found != meters_.end()) return static_cast<size_t>(found - meters_.begin()) + 1;
  meters_.push_back(&meter);
  codes_.push_back(CodeOf(meter));
  return meters_.size();
}

namespace {

// The edges of the windows that the server's clock may be in, in microseconds: the one at
// `unix_ns`, and its neighbour where that is nearer than two clocks may differ.
std::vector<int64_t> EdgesAt(const core::Meter& meter, int64_t unix_ns) {
  constexpr int64_t kNearNs = 10 * kSecondNs;
  if (unix_ns <= 0) return {};
  const auto begin = [&](int64_t at_ns) {
    return meter.window().FromUsed(1, {.wall_ns = at_ns}, 0).index * kSecondNs;
  };
  const auto end = [&](int64_t at_ns) {
    const core::Now now{.wall_ns = at_ns};
    return at_ns +
           meter.window().Test(meter.window().FromUsed(1, now, 0), 0, now, 0).reset_after_ns;
  };
  const int64_t begin_ns = begin(unix_ns);
  const int64_t end_ns = end(unix_ns);
  std::vector<int64_t> edges;
  if (unix_ns - begin_ns < kNearNs && begin_ns > 0) edges.push_back(begin(begin_ns - 1) / 1000);
  edges.push_back(begin_ns / 1000);
  edges.push_back(end_ns / 1000);
  if (end_ns - unix_ns < kNearNs) edges.push_back(end(end_ns) / 1000);
  return edges;
}

}  // namespace

void MeterList::AppendTo(Message& message) const {
  message.Array(meters_.size());
  for (size_t i = 0; i < meters_.size(); ++i) {
    const MeterCode& code = codes_[i];
    const bool calendar = code.form == ScriptForm::kCalendar;
    message.Array(calendar ? 8 : 7);
    message.Number(static_cast<int64_t>(code.form));
    message.Bytes(code.Descriptor());
    message.Number(code.a);
    message.Number(code.b);
    message.Number(code.c);
    message.Number(code.limit);
    if (code.tau > 0) {
      message.Number(code.tau);
    } else {
      message.False();
    }
    if (!calendar) continue;
    const std::vector<int64_t> edges = EdgesAt(*meters_[i], unix_ns_);
    message.Array(edges.size());
    for (const int64_t edge : edges) message.Number(edge);
  }
}

}  // namespace weir::store::redis
