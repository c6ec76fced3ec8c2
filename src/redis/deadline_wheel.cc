#include "redis/deadline_wheel.h"

#include <algorithm>

namespace weir::redis {
namespace {

// The slot whose end is the first at or after the instant. Times are not negative.
int64_t TickOf(int64_t deadline_ns) {
  return deadline_ns / DeadlineWheel::kSlotNs + (deadline_ns % DeadlineWheel::kSlotNs != 0);
}

}  // namespace

DeadlineWheel::DeadlineWheel(int64_t now_ns) : tick_(now_ns / kSlotNs) {
  for (Entry& head : slots_) head.previous_ = head.next_ = &head;
}

DeadlineWheel::~DeadlineWheel() {
  for (Entry& head : slots_) {
    while (!IsEmpty(head)) head.next_->Leave();
    head.previous_ = head.next_ = nullptr;
  }
}

void DeadlineWheel::Insert(Entry& head, Entry& entry) {
  entry.previous_ = head.previous_;
  entry.next_ = &head;
  head.previous_->next_ = &entry;
  head.previous_ = &entry;
}

void DeadlineWheel::Add(Entry& entry, int64_t deadline_ns) {
  entry.Leave();
  entry.due_ns_ = deadline_ns;
  Insert(HeadOf(std::max(tick_, TickOf(std::max<int64_t>(deadline_ns, 0)))), entry);
}

int64_t DeadlineWheel::NextNs() const {
  // The slot that time stands in has been emptied of what was due, but may hold what is due in a
  // later turn: waking for that at once would be waking for ever.
  const Entry& current = slots_[static_cast<size_t>(tick_) % kSlotCount];
  for (const Entry* entry = current.next_; entry != &current; entry = entry->next_) {
    if (TickOf(entry->due_ns_) <= tick_) return tick_ * kSlotNs;
  }
  for (size_t ahead = 1; ahead <= kSlotCount; ++ahead) {
    const int64_t tick = tick_ + static_cast<int64_t>(ahead);
    const Entry& head = slots_[static_cast<size_t>(tick) % kSlotCount];
    if (!IsEmpty(head)) return tick * kSlotNs;
  }
  return kNever;
}

DeadlineWheel::Entry* DeadlineWheel::PopDue(int64_t now_ns) {
  const int64_t now_tick = now_ns / kSlotNs;
  // One turn looks into every slot: what lies in one a turn later is due in a later turn.
  if (now_tick - tick_ >= static_cast<int64_t>(kSlotCount)) {
    tick_ = now_tick - static_cast<int64_t>(kSlotCount) + 1;
  }
  for (; tick_ <= now_tick; ++tick_) {
    Entry& head = HeadOf(tick_);
    for (Entry* entry = head.next_; entry != &head; entry = entry->next_) {
      if (entry->due_ns_ > now_ns) continue;
      entry->Leave();
      return entry;
    }
    if (tick_ == now_tick) break;  // More may be added to this one before its end.
  }
  return nullptr;
}

}  // namespace weir::redis
