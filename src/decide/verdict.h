// Verdict: what Decide says of one call, with all that an answer needs.
//
// Thread safety: plain values of one worker. Views and pointers live until that worker's next call.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/step.h"
#include "policy/policy.h"
#include "weir/decision.h"
#include "weir/limit.h"

namespace weir::decide {

// How many units of each kind a call takes; usd in micro-dollars. A limit whose unit is not given
// is peeked.
struct Costs {
  std::array<int64_t, kUnitCount> amount{};
  uint8_t given = 0;  // Bit i: amount[i] counts.

  static Costs Requests(int64_t n = 1) {
    Costs costs;
    costs.Set(Unit::kRequests, n);
    return costs;
  }
  void Set(Unit unit, int64_t n) {  // 0 <= n <= kMaxUnits
    amount[static_cast<size_t>(unit)] = n;
    given |= static_cast<uint8_t>(1u << static_cast<unsigned>(unit));
  }
  bool has(Unit unit) const { return given >> static_cast<unsigned>(unit) & 1; }
  int64_t operator[](Unit unit) const { return amount[static_cast<size_t>(unit)]; }
};

// What one limit that applies says of the call. Unlimited variants do not appear.
struct LimitVerdict {
  std::string_view name;                 // Of the limit; the key's rule for ad-hoc calls.
  const policy::Limit* limit = nullptr;  // Null for ad-hoc rules.
  const policy::Variant* variant = nullptr;
  const core::MeterSpec* spec = nullptr;
  Unit unit = Unit::kRequests;
  bool shadow = false;  // Evaluated and counted, never denying; in no header.
  bool allowed = true;
  bool attribute_missing =
      false;  // Denied because `missing: deny` and an attribute is absent; retry_after is kNever.
  int64_t cost = 0;      // What the call asked for; 0: peeked.
  int64_t quota = 0;     // B
  int64_t window_s = 0;  // ceil(B * P / N), in seconds; 0 for parallel.
  int64_t remaining = 0;
  int64_t reset_after_ns = 0;  // core::kNever for parallel.
  int64_t retry_after_ns =
      0;  // 0 when allowed; core::kNever when waiting never helps; 1 s when denied by parallel.
  int64_t next_unit_after_ns =
      0;  // Until one more unit is there (fixed windows: until the window ends); for RateLimit's t.
};

// 128 random bits; text is 32 hexadecimal digits.
struct ReservationId {
  uint64_t high = 0;
  uint64_t low = 0;
  friend bool operator==(const ReservationId&, const ReservationId&) = default;
};
std::array<char, 32> ToText(ReservationId id);
std::optional<ReservationId> ParseReservationId(std::string_view text);

// What the limits of one descriptor say of the call, whatever the others say.
struct DescriptorStatus {
  bool allowed = true;
  // A limit without end applies (`rate: unlimited`), and none that counts and is enforced.
  bool unlimited = false;
  // The denying limit with the longest wait, else the one with the least remaining share. Null: no
  // enforced limit applies. Shadow limits never bind. `spec` has the rate in force; name is empty
  // for a rate that came with the call and found no limit.
  const LimitVerdict* binding = nullptr;
};

struct Verdict {
  bool allowed = true;
  Source source = Source::kMemory;       // Of the binding limit.
  std::span<const LimitVerdict> limits;  // In the policy's order, shadow ones included.
  // The denying limit that can never admit, else the one with the longest wait; when allowed the
  // enforced one with the least remaining share. Null when no enforced limit applies.
  const LimitVerdict* binding = nullptr;
  // The largest wait over the denying limits; 0 when allowed, core::kNever when waiting never
  // helps.
  int64_t retry_after_ns = 0;
  std::optional<ReservationId> reservation;  // When one was asked for and the call is allowed.
  // Of a call by descriptors: one for each, in their order.
  std::span<const DescriptorStatus> descriptors;
};

}  // namespace weir::decide
