#include "core/fixed_window.h"

#include <bit>

namespace weir::core {

FixedWindow::FixedWindow(int64_t limit, int64_t length_ns, const CalendarWindows* calendar)
    : limit_(limit), length_ns_(length_ns), calendar_(calendar) {
  // The largest index: a calendar window's start before the year 2242, or twice the horizon in
  // windows.
  const uint64_t top = calendar != nullptr ? uint64_t{1} << 33
                                           : static_cast<uint64_t>(2 * kHorizonNs / length_ns + 2);
  const int bits = 62 - static_cast<int>(std::bit_width(top));
  // Room for debt of several times the limit; beyond it the count stays at its largest until the
  // window ends.
  if (limit < int64_t{1} << 55 && (int64_t{1} << std::max(bits, 0)) >= 4 * (limit + 1)) {
    count_bits_ = bits;
    count_mask_ = (int64_t{1} << bits) - 1;
  }
}

bool FixedWindow::Refund(State* state, Receipt receipt, int64_t units, Now now,
                         uint64_t spread) const {
  Roll(state, SpanOf(now, spread).index);
  if (receipt.b == 0 || receipt.a != state->index || units <= 0) return false;
  state->count = std::max<int64_t>(state->count - units, 0);
  return true;
}

void FixedWindow::Overrun(State* state, int64_t units, Now now, uint64_t spread) const {
  constexpr int64_t kMaxCount = int64_t{1} << 61;
  Roll(state, SpanOf(now, spread).index);
  state->count = std::min(state->count + units, kMaxCount);
}

FixedWindow::State FixedWindow::Carry(State state, const FixedWindow& from, Now now,
                                      uint64_t spread) const {
  if (from.length_ns_ == length_ns_ && from.calendar_ == calendar_) return state;
  const int64_t used = from.Used(state, now, spread);
  return used == 0 ? State{} : FromUsed(used, now, spread);
}

}  // namespace weir::core
