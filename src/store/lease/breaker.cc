#include "store/lease/breaker.h"

namespace weir::store::lease {

Breaker::Pass Breaker::Ask(int64_t now_ns) {
  if (state_ == State::kClosed) return Pass::kYes;
  if (now_ns - since_ns_ < options_.open_for_ns) return Pass::kNo;
  state_ = State::kHalfOpen;
  since_ns_ = now_ns;
  return Pass::kProbe;
}

void Breaker::Succeeded(int64_t sent_ns) {
  if (state_ == State::kOpen || (state_ == State::kHalfOpen && sent_ns < since_ns_)) return;
  state_ = State::kClosed;
  failures_ = 0;
}

void Breaker::Failed(int64_t sent_ns, int64_t now_ns) {
  if (state_ == State::kOpen || (state_ == State::kHalfOpen && sent_ns < since_ns_)) return;
  if (state_ == State::kClosed && ++failures_ < options_.failures) return;
  state_ = State::kOpen;
  since_ns_ = now_ns;
  failures_ = 0;
}

}  // namespace weir::store::lease
