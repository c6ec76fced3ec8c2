// What came back of a token bucket while charges were open on it. A charge's place in the bucket is
// known from when it was made; each later refund of a charge before it has moved it down. Whoever
// gives back by the old place gives back what time has given back already, and the bucket admits
// too much:
//
//   at 1/s, burst 2, at once: charge a, charge b, give a back; a second later b has refilled, too.
//
//   RefundTotal total;                                 // One for each counter, beside its state.
//   receipt.mark = total.mark();                       // In one step with the charge.
//   int64_t back = RefundOpen(bucket, &state, &total, receipt, units, now_ns);
//
// A charge is moved down by all that came back since it was made, except of charges that came after
// it. Of how many units that was, kPlaces sums are kept; where more charges end out of their order,
// a refund can be too small, never too large.
//
// Thread safety: plain values.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

#include "core/step.h"

namespace weir::core {

class RefundTotal {
 public:
  static constexpr size_t kPlaces = 8;
  // Where a charge stands among those of its bucket, in their order: between refunds, the later one
  // is given back later by time.
  struct Place {
    int64_t mark = -1;    // Of its receipt. Below the start of the total: its place is not known.
    int64_t ends_ns = 0;  // When time alone has given it back.

    friend auto operator<=>(const Place&, const Place&) = default;
  };

  RefundTotal() = default;
  // Of a counter whose earlier total may have been forgotten: `start` is not below it.
  explicit RefundTotal(int64_t start) : start_(start), total_(start) {}

  int64_t mark() const { return total_; }
  bool IsFull() const { return total_ > kMost; }

  // Units by which the charge has been moved down, at most.
  int64_t Since(const Place& place) const {
    if (place.mark < start_) return total_ - start_;
    int64_t units = total_ - place.mark;
    for (size_t i = size_; i > 0 && place < backs_[i - 1].place; --i) units -= backs_[i - 1].units;
    return units;
  }

  // REQUIRES: not IsFull(); units in [0, kMost].
  void Add(const Place& place, int64_t units, int64_t now_ns) {
    total_ += units;
    if (place.mark < start_) return;
    // Charges below one that time has given back are given back as well.
    const auto over = [&](const Back& back) { return back.place.ends_ns <= now_ns; };
    size_ = static_cast<size_t>(std::remove_if(backs_.begin(), backs_.begin() + size_, over) -
                                backs_.begin());
    size_t at = size_++;
    for (; at > 0 && place < backs_[at - 1].place; --at) backs_[at] = backs_[at - 1];
    backs_[at] = {place, units};
    if (size_ > kPlaces) MergeSmallest();
  }

  // The counter was forgotten: nothing of what was charged before comes back.
  void ForgetCharges() {
    start_ = forgotten_at_ = ++total_;
    size_ = 0;
  }
  bool HasForgotten(int64_t mark) const { return mark < forgotten_at_; }

  // Places no longer compare: the rate has changed.
  void ForgetPlaces() { size_ = 0; }

 private:
  static constexpr int64_t kMost = int64_t{1} << 61;
  struct Back {
    Place place;  // Of the lowest charge that it came back of.
    int64_t units = 0;
  };

  // The two neighbours with the fewest units become one: only charges between them lose.
  void MergeSmallest() {
    size_t smallest = 0;
    for (size_t i = 1; i + 1 < size_; ++i) {
      if (backs_[i].units + backs_[i + 1].units <
          backs_[smallest].units + backs_[smallest + 1].units)
        smallest = i;
    }
    backs_[smallest].units += backs_[smallest + 1].units;
    std::copy(backs_.begin() + smallest + 2, backs_.begin() + size_, backs_.begin() + smallest + 1);
    --size_;
  }

  int64_t start_ = 0;
  int64_t total_ = 0;
  int64_t forgotten_at_ = INT64_MIN;
  size_t size_ = 0;
  std::array<Back, kPlaces + 1> backs_;  // By their places.
};

// Gives back up to `units` of the receipt's charge: min(units * T, max(0, A' - now)), A' being
// where the charge stands now. Returns the units, rounded up.
template <typename Bucket>
int64_t RefundOpen(const Bucket& bucket, typename Bucket::State* state, RefundTotal* total,
                   Receipt receipt, int64_t units, int64_t now_ns) {
  if (total->IsFull()) return 0;
  const RefundTotal::Place place{receipt.mark, bucket.EndOf(receipt)};
  const Receipt moved = bucket.MovedDown(receipt, total->Since(place));
  const bool last = bucket.IsLast(*state, moved, now_ns);
  const int64_t back = bucket.Refund(state, moved, units, now_ns);
  if (back > 0 && !last) total->Add(place, back, now_ns);
  return back;
}

}  // namespace weir::core
