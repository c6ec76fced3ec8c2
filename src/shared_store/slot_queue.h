// SlotQueue: what is to be sent to the store, gathered by slot: all of one tick in one call, and
// while calls are under way the next ones gather, so that the busier the store is the larger the
// batches are.
//
//   SlotQueue<PartPtr> queue(loop, [this](std::vector<PartPtr> parts) { return Send(parts); });
//   if (!queue.Push(group, part)) …                                   // Too many wait already.
//
// Thread safety: one event loop's thread. Ownership: borrows the loop, and must outlive its tasks.
// Bounds: kQueueMax items wait, kUnderWayMax calls are under way for each slot, kBatchMax items go
// in one.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/task.h"
#include "net/event_loop.h"

namespace weir::shared_store {

template <typename Item>
class SlotQueue {
 public:
  static constexpr size_t kQueueMax = 16'384;
  static constexpr int kUnderWayMax = 4;
  static constexpr size_t kBatchMax = 64;

  // `send` is a call: it has been answered, or will not be, when its task has finished.
  using Send = std::function<Task<void>(std::vector<Item> batch)>;

  SlotQueue(net::EventLoop& loop, Send send) : loop_(loop), send_(std::move(send)) {}

  // Sends the item with the others of the tick. False: too many wait already.
  bool Push(uint16_t slot, Item item) {
    if (waiting_ >= kQueueMax) return false;
    ++waiting_;
    Group& group = groups_[slot];
    group.waiting.push_back(std::move(item));
    Schedule(slot, group);
    return true;
  }

 private:
  struct Group {
    std::deque<Item> waiting;
    int under_way = 0;
    bool scheduled = false;  // A Flush is on its way.
  };

  void Schedule(uint16_t slot, Group& group) {
    if (group.scheduled) return;
    group.scheduled = true;
    loop_.Spawn(Flush(slot));
  }

  // At the end of the tick: as many calls as may be under way.
  Task<void> Flush(uint16_t slot) {
    co_await loop_.TickEnd();
    Group& group = groups_[slot];
    group.scheduled = false;
    while (!group.waiting.empty() && group.under_way < kUnderWayMax) {
      std::vector<Item> batch;
      while (!group.waiting.empty() && batch.size() < kBatchMax) {
        batch.push_back(std::move(group.waiting.front()));
        group.waiting.pop_front();
        --waiting_;
      }
      ++group.under_way;
      loop_.Spawn(Carry(slot, std::move(batch)));
    }
    if (group.waiting.empty() && group.under_way == 0) groups_.erase(slot);
  }

  Task<void> Carry(uint16_t slot, std::vector<Item> batch) {
    co_await send_(std::move(batch));
    Group& group = groups_[slot];
    --group.under_way;
    Schedule(slot, group);
  }

  net::EventLoop& loop_;
  const Send send_;
  std::unordered_map<uint16_t, Group> groups_;
  size_t waiting_ = 0;
};

}  // namespace weir::shared_store
