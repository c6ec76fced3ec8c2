// A verdict as the decision API shows it:
//   {"allowed":false,"denied_by":["a"],"source":"memory","retry_after_ms":144,...,"limits":[...]}
// Waits are rounded up to milliseconds; null where waiting never helps. usd is shown in
// micro-dollars, as `usd_micros`.
//
//   AppendDecision(verdict, answer.out());
//
// Thread safety: pure functions. Nothing allocates once the buffer has grown.
#pragma once

#include <cstdint>
#include <string_view>

#include "decide/ledger.h"
#include "decide/verdict.h"
#include "wire/buffer.h"

namespace weir::doors {

void AppendDecision(const decide::Verdict& verdict, wire::Buffer& out);

// {"reservation":"...","charged":{"tokens":46}}
void AppendSettled(std::string_view reservation, const decide::Settled& settled, wire::Buffer& out);

// "requests", ..., "usd_micros".
std::string_view JsonUnitName(Unit unit);
// Digits, or null for core::kNever.
void AppendMilliseconds(int64_t ns, wire::Buffer& out);

}  // namespace weir::doors
