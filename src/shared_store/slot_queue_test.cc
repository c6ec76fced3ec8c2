#include "shared_store/slot_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "net/event.h"
#include "testing/loop_fixture.h"

namespace weir::shared_store {
namespace {

using Batches = std::vector<std::vector<int>>;

class SlotQueueTest : public ::testing::Test {
 public:
  void Run(Task<void> task) { loop_.RunTask(std::move(task)); }
  net::EventLoop& loop() { return loop_.loop(); }

  testing::LoopFixture loop_;
  Batches batches_;
  net::Event answered_{loop_.loop()};
  bool hold_ = false;
  SlotQueue<int> queue_{loop_.loop(), [this](std::vector<int> batch) -> Task<void> {
                          batches_.push_back(std::move(batch));
                          if (hold_) co_await answered_.Wait();
                        }};
};

TEST_F(SlotQueueTest, WhatComesInOneTickLeavesTogetherBySlot) {
  Run([](SlotQueueTest& test) -> Task<void> {
    for (const int item : {1, 2, 3}) test.queue_.Push(0, item, Lane::kAwaited);
    test.queue_.Push(9, 4, Lane::kAwaited);
    EXPECT_TRUE(test.batches_.empty());
    co_await test.loop().SleepFor(0);
    test.queue_.Push(0, 5, Lane::kAwaited);
    co_await test.loop().SleepFor(0);
  }(*this));
  EXPECT_EQ(batches_, (Batches{{1, 2, 3}, {4}, {5}}));
}

TEST_F(SlotQueueTest, BatchesAreBoundedAndFewAreUnderWay) {
  using Queue = SlotQueue<int>;
  hold_ = true;
  Run([](SlotQueueTest& test) -> Task<void> {
    const auto most = static_cast<int>(Queue::kBatchMax * (Queue::kUnderWayMax + 1));
    for (int i = 0; i < most; ++i) test.queue_.Push(0, i, Lane::kAwaited);
    co_await test.loop().SleepFor(0);
  }(*this));
  EXPECT_EQ(batches_.size(), static_cast<size_t>(Queue::kUnderWayMax));
  for (const std::vector<int>& batch : batches_) EXPECT_EQ(batch.size(), Queue::kBatchMax);
}

TEST_F(SlotQueueTest, WhatNobodyWaitsForHasEveryFourthPlace) {
  Run([](SlotQueueTest& test) -> Task<void> {
    for (int i = 0; i < 3; ++i) test.queue_.Push(0, 100 + i, Lane::kBackground);
    for (int i = 0; i < 8; ++i) test.queue_.Push(0, i, Lane::kAwaited);
    co_await test.loop().SleepFor(0);
  }(*this));
  EXPECT_EQ(batches_, (Batches{{0, 1, 2, 100, 3, 4, 5, 101, 6, 7, 102}}));
}

TEST_F(SlotQueueTest, AFullLaneRefusesAndLeavesTheOtherOpen) {
  Run([](SlotQueueTest& test) -> Task<void> {
    for (size_t i = 0; i < SlotQueue<int>::kQueueMax; ++i)
      EXPECT_TRUE(test.queue_.Push(0, 1, Lane::kBackground));
    EXPECT_FALSE(test.queue_.Push(0, 1, Lane::kBackground));
    EXPECT_TRUE(test.queue_.Push(0, 1, Lane::kAwaited));
    co_await test.loop().SleepFor(0);
    EXPECT_TRUE(test.queue_.Push(0, 1, Lane::kBackground));
  }(*this));
}

}  // namespace
}  // namespace weir::shared_store
