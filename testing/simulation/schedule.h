// Virtual time: what is to happen, in order; what is due at the same instant, in the order in which
// it was asked for.
//
//   Schedule schedule;
//   schedule.After(5'000'000, [&] { ... });
//   schedule.RunUntil(20'000'000'000);
//
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace weir::testing {

class Schedule {
 public:
  int64_t now_ns() const { return now_ns_; }

  void At(int64_t at_ns, std::function<void()> what) {
    events_.push_back({std::max(at_ns, now_ns_), next_++, std::move(what)});
    std::push_heap(events_.begin(), events_.end(), Later);
  }
  void After(int64_t delay_ns, std::function<void()> what) {
    At(now_ns_ + delay_ns, std::move(what));
  }
  // Runs everything that is due before `end_ns`.
  void RunUntil(int64_t end_ns) {
    while (!events_.empty() && events_.front().at_ns < end_ns) {
      std::pop_heap(events_.begin(), events_.end(), Later);
      const Event event = std::move(events_.back());
      events_.pop_back();
      now_ns_ = event.at_ns;
      event.what();
    }
    now_ns_ = end_ns;
  }

 private:
  struct Event {
    int64_t at_ns;
    uint64_t order;
    std::function<void()> what;
  };
  static bool Later(const Event& a, const Event& b) {
    return a.at_ns != b.at_ns ? a.at_ns > b.at_ns : a.order > b.order;
  }

  int64_t now_ns_ = 0;
  uint64_t next_ = 0;
  std::vector<Event> events_;
};

}  // namespace weir::testing
