// CL.THROTTLE, as redis-cell defines it: a token bucket that the call describes.
//
//   CL.THROTTLE key max_burst count period [quantity]
//   → limited (0 or 1), limit, remaining, retry_after, reset_after; in seconds, rounded up, and
//     retry_after is -1 when the call passed or never can.
//
//   Result<Throttle> throttle = ReadThrottle(words);
//   worker.DecideAdHoc(throttle->rule, throttle->quantity, throttle->Options(), now);
//
// Thread safety: pure functions. Only errors allocate.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "decide/engine.h"
#include "weir/result.h"
#include "wire/resp/reply_writer.h"

namespace weir::doors::resp {

struct Throttle {
  decide::AdHocRule rule;  // Its key is a view of the words.
  int64_t quantity = 1;    // 0: a look that changes nothing.

  decide::DecideOptions Options() const {
    return {.door = metrics::Door::kResp, .peek = quantity == 0, .next_unit = false};
  }
};

// REQUIRES: at least the five words of the shortest call. kInvalidArgument names the argument.
Result<Throttle> ReadThrottle(std::span<const std::string_view> words);
// The engine's error in the command's own terms.
Error ThrottleError(const Error& error);

void AppendThrottle(const decide::Verdict& verdict, weir::resp::ReplyWriter& reply);

}  // namespace weir::doors::resp
