#include "store/lease/lease_terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/int128.h"

namespace weir::store::lease {
namespace {

using core::Int128;

constexpr int64_t kNsPerUs = 1000;

// FNV-1a over the definition, finished by the mixer of SplitMix64. It has to be equal on all nodes
// and to differ between the few definitions that one limit has in its life; nobody attacks it.
class DefinitionHash {
 public:
  void Add(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) AddByte(static_cast<uint8_t>(number >> shift));
  }
  void Add(std::string_view text) {
    Add(text.size());
    for (const char c : text) AddByte(static_cast<uint8_t>(c));
  }
  // 52 bits, so that a script's number holds it; never 0.
  uint64_t Finish() const {
    uint64_t z = hash_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return std::max<uint64_t>(z >> 12, 1);
  }

 private:
  void AddByte(uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; }

  uint64_t hash_ = 0xcbf29ce484222325u;
};

uint64_t FenceOf(const LeaseDefinition& definition, LeaseKind kind) {
  DefinitionHash hash;
  hash.Add(static_cast<uint64_t>(definition.spec.algorithm));
  hash.Add(static_cast<uint64_t>(definition.spec.rate.units));
  hash.Add(static_cast<uint64_t>(definition.spec.rate.period.count()));
  hash.Add(static_cast<uint64_t>(definition.spec.rate.burst));
  hash.Add(static_cast<uint64_t>(definition.spec.alignment));
  const bool calendar = definition.spec.alignment != core::Alignment::kNone;
  hash.Add(calendar ? std::string_view(definition.spec.timezone) : std::string_view());
  hash.Add(definition.per);
  hash.Add(static_cast<uint64_t>(definition.unit));
  hash.Add(static_cast<uint64_t>(kind));
  return hash.Finish();
}

std::unexpected<Error> NotLeased(std::string message) {
  return MakeError(ErrorCode::kFailedPrecondition, std::move(message));
}

}  // namespace

Result<LeaseTerms> LeaseTerms::Compile(const LeaseDefinition& definition, LeaseKind kind) {
  const core::MeterSpec& spec = definition.spec;
  const int64_t units = spec.rate.units;
  const int64_t period_ns = spec.rate.period.count();
  LeaseTerms terms;
  terms.window = spec.algorithm == Algorithm::kFixedWindow;
  if (!terms.window && spec.algorithm != Algorithm::kTokenBucket) {
    return NotLeased(fmt::format("only token_bucket and fixed_window are leased, not {}",
                                 AlgorithmName(spec.algorithm)));
  }
  if (units == 0) return NotLeased("a limit of 0 has nothing to lease");
  terms.fence = FenceOf(definition, kind);
  terms.reserved = kind == LeaseKind::kReserved && !terms.window;
  if (terms.window) {
    terms.calendar = spec.alignment != core::Alignment::kNone;
    terms.burst = units;
    terms.ticks_per_us = 0;
    terms.period_us = period_ns / kNsPerUs;
    if (!terms.calendar && (period_ns % kNsPerUs != 0 || terms.period_us > kMaxLeaseTicks)) {
      return NotLeased("a leased window lasts whole microseconds, at most 17 years");
    }
    if (units > kMaxLeaseTicks) return NotLeased("a leased limit is at most 2^49 units");
    return terms;
  }
  // A nanosecond gives back units/period_ns; reduced, a microsecond gives back whole ticks.
  static_assert(Int128{kMaxUnits} * kNsPerUs <= std::numeric_limits<int64_t>::max());
  const int64_t divisor = std::gcd(units * kNsPerUs, period_ns);
  terms.burst = spec.rate.burst;
  terms.ticks_per_unit = period_ns / divisor;
  terms.ticks_per_us = units * kNsPerUs / divisor;
  if (Int128{terms.burst} * terms.ticks_per_unit > kMaxLeaseTicks ||
      terms.ticks_per_us > kMaxLeaseTicks) {
    return NotLeased("rate and burst of a leased limit must fit whole ticks below 2^49");
  }
  return terms;
}

int64_t LeaseTerms::UnitsIn(int64_t span_us) const {
  const Int128 units = Int128{std::max<int64_t>(span_us, 0)} * ticks_per_us / ticks_per_unit;
  return static_cast<int64_t>(std::min<Int128>(units, burst));
}

int64_t OffsetOf(const LeaseTerms& terms, Key128 key) {
  if (!terms.window || terms.calendar) return 0;
  return static_cast<int64_t>((core::Uint128{key.lo} * static_cast<uint64_t>(terms.period_us)) >>
                              64);
}

std::optional<WindowBounds> WindowAt(const LeaseTerms& terms, const Windows& windows,
                                     int64_t now_us) {
  if (!terms.window) return WindowBounds{};
  if (!terms.calendar) {
    const int64_t start_us = now_us - (now_us + windows.offset_us) % terms.period_us;
    return WindowBounds{start_us, start_us + terms.period_us};
  }
  for (const WindowBounds& bounds : windows.calendar) {
    if (bounds.start_us <= now_us && now_us < bounds.end_us) return bounds;
  }
  return std::nullopt;
}

}  // namespace weir::store::lease
