// Deadlines of many calls with one timer for all: a wheel of one-millisecond slots. Adding and
// removing take O(1) and allocate nothing; a deadline passes up to a millisecond late, never early.
//
//   DeadlineWheel wheel(loop.now_ns());
//   wheel.Add(call, deadline_ns);                    // call is a DeadlineWheel::Entry
//   wheel.Expire(now_ns, [](DeadlineWheel::Entry& entry) { … });   // when NextNs() has come
//
// Thread safety: none; one owner. Entries belong to their callers and leave when destroyed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace weir::redis {

class DeadlineWheel {
 public:
  class Entry {
   public:
    Entry() = default;
    ~Entry() { Leave(); }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    bool in_wheel() const { return previous_ != nullptr; }
    int64_t due_ns() const { return due_ns_; }
    void Leave() {
      if (previous_ == nullptr) return;
      previous_->next_ = next_;
      next_->previous_ = previous_;
      previous_ = next_ = nullptr;
    }

   private:
    friend class DeadlineWheel;
    Entry* previous_ = nullptr;  // A slot is a ring through its own head.
    Entry* next_ = nullptr;
    int64_t due_ns_ = 0;
  };

  static constexpr int64_t kSlotNs = 1'000'000;
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  explicit DeadlineWheel(int64_t now_ns);
  ~DeadlineWheel();
  DeadlineWheel(const DeadlineWheel&) = delete;
  DeadlineWheel& operator=(const DeadlineWheel&) = delete;

  // A deadline that has passed already comes up at the next Expire.
  void Add(Entry& entry, int64_t deadline_ns);

  // When to call Expire: the end of the first slot in use, at most a turn of the wheel ahead;
  // kNever when nothing is in it.
  int64_t NextNs() const;

  // Takes out every entry whose deadline is at or before `now_ns`, and calls `expired` for each,
  // which may add and remove others.
  template <typename Expired>
  void Expire(int64_t now_ns, Expired&& expired) {
    while (Entry* entry = PopDue(now_ns)) expired(*entry);
  }

 private:
  static constexpr size_t kSlotCount = 256;
  Entry* PopDue(int64_t now_ns);
  static void Insert(Entry& head, Entry& entry);
  Entry& HeadOf(int64_t tick) { return slots_[static_cast<size_t>(tick) % kSlotCount]; }
  static bool IsEmpty(const Entry& head) { return head.next_ == &head; }

  std::array<Entry, kSlotCount> slots_;
  int64_t tick_;  // All slots before this one have been emptied of what was due.
};

}  // namespace weir::redis
