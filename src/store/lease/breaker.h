// Circuit breaker: after a run of failures the store is left alone for a while, then one probe
// finds out whether it is back.
//
//   closed     every call goes; `failures` failures in a row open it
//   open       no call goes for open_for_ns
//   half-open  one call goes, the probe; its success closes, its failure opens again; a probe of
//              which nothing is heard for open_for_ns gives way to another
//
//   switch (breaker.Ask(now_ns)) {
//     case Breaker::Pass::kNo: return Fallback();
//     default: ...                       // Call, then:
//   }
//   ok ? breaker.Succeeded(sent_ns) : breaker.Failed(sent_ns, now_ns);
//
// The results of calls that were sent before the breaker opened change nothing: a late failure does
// not prolong the pause, a late success is no proof that the store is there now. With open_for_ns
// of less than a second, service is back within a second of the store.
//
// Thread safety: one thread (one breaker per event loop and store). Nothing allocates or blocks.
#pragma once

#include <cstdint>

namespace weir::store::lease {

class Breaker {
 public:
  struct Options {
    int failures = 3;                   // At least 1.
    int64_t open_for_ns = 500'000'000;  // Above 0.
  };
  enum class State : uint8_t { kClosed, kOpen, kHalfOpen };
  enum class Pass : uint8_t { kYes, kProbe, kNo };

  explicit Breaker(const Options& options) : options_(options) {}

  // Whether a call may go at `now_ns`. kProbe: it may, and everything waits for its result.
  Pass Ask(int64_t now_ns);
  // The result of a call that was sent at `sent_ns`. A denial by the store is a success.
  void Succeeded(int64_t sent_ns);
  void Failed(int64_t sent_ns, int64_t now_ns);

  State state() const { return state_; }

 private:
  Options options_;
  State state_ = State::kClosed;
  int failures_ = 0;
  int64_t since_ns_ = 0;  // When it opened, or when the probe went.
};

}  // namespace weir::store::lease
