// SlotQueue: what is to be sent to the store, gathered by slot: all of one tick in one call, and
// while calls are under way the next ones gather, so that the busier the store is the larger the
// batches are.
//
//   SlotQueue<PartPtr> queue(loop, [this](std::vector<PartPtr> parts) { return Send(parts); });
//   if (!queue.Push(group, part, Lane::kAwaited)) …                   // Too many wait already.
//
// What somebody waits for goes before what nobody waits for, which has every fourth place: without
// it there would be fewer leases, and more to wait for. Each lane keeps its order.
//
// Thread safety: one event loop's thread. Ownership: borrows the loop, and must outlive its tasks.
// Bounds: kQueueMax items wait in each lane, kUnderWayMax calls are under way for each slot,
// kBatchMax items go in one.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/task.h"
#include "net/event_loop.h"

namespace weir::shared_store {

enum class Lane : uint8_t { kAwaited, kBackground };

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
  bool Push(uint16_t slot, Item item, Lane lane) {
    const auto at = static_cast<size_t>(lane);
    if (waiting_[at] >= kQueueMax) return false;
    ++waiting_[at];
    Group& group = groups_[slot];
    group.waiting[at].push_back(std::move(item));
    Schedule(slot, group);
    return true;
  }

 private:
  struct Group {
    std::array<std::deque<Item>, 2> waiting;  // By lane.
    int under_way = 0;
    bool scheduled = false;  // A Flush is on its way.

    bool empty() const { return waiting[0].empty() && waiting[1].empty(); }
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
    while (!group.empty() && group.under_way < kUnderWayMax) {
      ++group.under_way;
      loop_.Spawn(Carry(slot, TakeBatch(group)));
    }
    if (group.empty() && group.under_way == 0) groups_.erase(slot);
  }

  std::vector<Item> TakeBatch(Group& group) {
    std::vector<Item> batch;
    while (!group.empty() && batch.size() < kBatchMax) {
      const bool background =
          group.waiting[0].empty() || (!group.waiting[1].empty() && batch.size() % 4 == 3);
      const size_t lane = background ? 1 : 0;
      batch.push_back(std::move(group.waiting[lane].front()));
      group.waiting[lane].pop_front();
      --waiting_[lane];
    }
    return batch;
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
  std::array<size_t, 2> waiting_{};  // By lane.
};

}  // namespace weir::shared_store
