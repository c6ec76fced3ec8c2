// A limit as its leases see it: whether it can be leased at all, its rate in whole ticks, and a
// hash of its definition that tells one policy's leases from another's.
//
// A unit is `ticks_per_unit` ticks and a microsecond gives back `ticks_per_us` of them, both whole,
// so node, model and script compute the same numbers without rounding: everything stays below 2^53.
//
//   Result<LeaseTerms> terms = LeaseTerms::Compile({.spec = spec, .unit = Unit::kRequests,
//                                                   .per = "client"}, LeaseKind::kReserved);
//   if (!terms) ...                                   // This limit is decided exactly; says why.
//   if (!LeasePays(terms->burst, nodes, calls_per_term)) ...   // So is this one, for now.
//
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/keyed_hash.h"
#include "core/meter.h"
#include "weir/limit.h"
#include "weir/result.h"

namespace weir::store::lease {

using base::Key128;

// What the units that nodes hold do to the capacity that all of them share.
enum class LeaseKind : uint8_t {
  kReserved,  // `leased`: it shrinks by what nodes may hold. In any interval of length t at most
              // B + r*t are spent.
  kFast,      // `leased_fast`: it does not. At most B + r*t + H, H being what nodes held when the
              // interval began (at most B/2); over any time that starts with no lease, B + r*t.
};
// A fixed window has no need of the reserve: its leases end with their window, so both kinds admit
// at most the limit in every window.

// The largest product of burst and ticks_per_unit, and of a tick rate: debt of seven more bursts
// fits.
inline constexpr int64_t kMaxLeaseTicks = int64_t{1} << 49;
// Where debt stops growing.
inline constexpr int64_t kMaxLevelTicks = int64_t{1} << 52;

struct LeaseDefinition {
  core::MeterSpec spec;
  Unit unit = Unit::kRequests;
  std::string_view per;  // The attributes that make the key, as the policy spells them.
};

struct LeaseTerms {
  bool window = false;    // fixed_window; else token_bucket.
  bool calendar = false;  // Windows follow a calendar: the caller sends their bounds.
  bool reserved = true;   // kReserved, and a token bucket.
  int64_t burst = 1;      // B, units.
  int64_t ticks_per_unit = 1;
  int64_t ticks_per_us = 1;  // 0 for a window.
  int64_t period_us = 0;     // Windows without a calendar.
  uint64_t fence = 0;        // Equal on every node whose limit is defined alike; never 0.

  // kFailedPrecondition when a limit of this definition is not leased: another algorithm, limit 0,
  // or numbers that do not fit whole ticks below 2^53. The message says which; the limit is then
  // decided exactly, or refused by the policy.
  static Result<LeaseTerms> Compile(const LeaseDefinition& definition, LeaseKind kind);

  // Units that refill in `span_us`, rounded down, at most the burst. 0 for a window.
  int64_t UnitsIn(int64_t span_us) const;

  friend bool operator==(const LeaseTerms&, const LeaseTerms&) = default;
};

// The smallest share of a node, in units, and the fewest calls in a term for which holding a lease
// saves more round trips than it makes.
inline constexpr int64_t kMinShareUnits = 4;
inline constexpr int64_t kMinCallsPerTerm = 8;

// Whether leasing a limit of capacity `burst` pays among `nodes` (at least 1) holders of which this
// one sees `calls_per_term`. False: decide exactly. Nothing breaks when nodes disagree.
constexpr bool LeasePays(int64_t burst, int64_t nodes, int64_t calls_per_term) {
  return burst / 2 / nodes >= kMinShareUnits && calls_per_term >= kMinCallsPerTerm;
}

// Where a window lies, in microseconds of the store's clock, [start, end).
struct WindowBounds {
  int64_t start_us = 0;
  int64_t end_us = 0;

  friend bool operator==(const WindowBounds&, const WindowBounds&) = default;
};

// How the store finds the window it is in. Unused by token buckets.
struct Windows {
  int64_t offset_us = 0;                   // Without a calendar: OffsetOf(terms, key).
  std::array<WindowBounds, 2> calendar{};  // With one: the window of the caller's wall clock and
                                           // the one after it.
};

// How far the windows of a key are shifted: the high bits of key.lo, as on the memory store.
int64_t OffsetOf(const LeaseTerms& terms, Key128 key);

// The window that holds `now_us`; nothing when neither of the caller's does, so that the caller
// must read its wall clock and ask again.
std::optional<WindowBounds> WindowAt(const LeaseTerms& terms, const Windows& windows,
                                     int64_t now_us);

}  // namespace weir::store::lease
