#include "redis/deadline_wheel.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <vector>

#include "redis/backoff.h"

namespace weir::redis {
namespace {

constexpr int64_t kMs = 1'000'000;

std::vector<DeadlineWheel::Entry*> ExpireAt(DeadlineWheel& wheel, int64_t now_ns) {
  std::vector<DeadlineWheel::Entry*> expired;
  wheel.Expire(now_ns, [&](DeadlineWheel::Entry& entry) { expired.push_back(&entry); });
  return expired;
}

TEST(DeadlineWheel, NeverEarlyAndAtMostAMillisecondLate) {
  DeadlineWheel wheel(1000 * kMs);
  DeadlineWheel::Entry entry;
  EXPECT_EQ(wheel.NextNs(), DeadlineWheel::kNever);
  wheel.Add(entry, 1005 * kMs + 1);
  EXPECT_EQ(wheel.NextNs(), 1006 * kMs);
  EXPECT_TRUE(ExpireAt(wheel, 1005 * kMs).empty());
  EXPECT_TRUE(ExpireAt(wheel, 1005 * kMs + 999'999).empty());
  EXPECT_EQ(ExpireAt(wheel, 1006 * kMs).size(), 1u);
  EXPECT_FALSE(entry.in_wheel());
  EXPECT_EQ(wheel.NextNs(), DeadlineWheel::kNever);
}

TEST(DeadlineWheel, APastDeadlineComesUpAtOnce) {
  DeadlineWheel wheel(1000 * kMs);
  DeadlineWheel::Entry entry;
  wheel.Add(entry, 3);
  EXPECT_EQ(wheel.NextNs(), 1000 * kMs);
  EXPECT_EQ(ExpireAt(wheel, 1000 * kMs).size(), 1u);
}

TEST(DeadlineWheel, EntriesLeaveByThemselves) {
  DeadlineWheel wheel(0);
  DeadlineWheel::Entry stays;
  {
    DeadlineWheel::Entry goes;
    wheel.Add(goes, 5 * kMs);
    wheel.Add(stays, 5 * kMs);
  }
  const auto expired = ExpireAt(wheel, 10 * kMs);
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0], &stays);
}

TEST(DeadlineWheel, AddingAgainMovesTheDeadline) {
  DeadlineWheel wheel(0);
  DeadlineWheel::Entry entry;
  wheel.Add(entry, 5 * kMs);
  wheel.Add(entry, 9 * kMs);
  EXPECT_TRUE(ExpireAt(wheel, 8 * kMs).empty());
  EXPECT_EQ(ExpireAt(wheel, 9 * kMs).size(), 1u);
}

TEST(DeadlineWheel, FarDeadlinesWaitForTheirTurnOfTheWheel) {
  DeadlineWheel wheel(0);
  DeadlineWheel::Entry near, far;
  wheel.Add(near, 10 * kMs);
  wheel.Add(far, (10 + 256 * 3) * kMs);
  EXPECT_EQ(ExpireAt(wheel, 10 * kMs).size(), 1u);
  EXPECT_TRUE(ExpireAt(wheel, (10 + 256) * kMs).empty());
  EXPECT_TRUE(ExpireAt(wheel, (9 + 256 * 3) * kMs).empty());
  EXPECT_EQ(ExpireAt(wheel, (10 + 256 * 3) * kMs).size(), 1u);
}

// A whole number of turns ahead is the slot that time stands in.
TEST(DeadlineWheel, WhatIsDueInALaterTurnDoesNotWakeNow) {
  DeadlineWheel wheel(7 * kMs);
  DeadlineWheel::Entry entry;
  wheel.Add(entry, (7 + 256 * 2) * kMs);
  EXPECT_TRUE(ExpireAt(wheel, 7 * kMs).empty());
  EXPECT_EQ(wheel.NextNs(), (7 + 256) * kMs);
  EXPECT_TRUE(ExpireAt(wheel, (7 + 256) * kMs).empty());
  EXPECT_EQ(wheel.NextNs(), (7 + 256 * 2) * kMs);
  EXPECT_EQ(ExpireAt(wheel, (7 + 256 * 2) * kMs).size(), 1u);
}

TEST(DeadlineWheel, AnEntryMayAddAndRemoveOthersWhenItExpires) {
  DeadlineWheel wheel(0);
  DeadlineWheel::Entry first, second, third;
  wheel.Add(first, 1 * kMs);
  wheel.Add(second, 1 * kMs);
  int expired = 0;
  wheel.Expire(5 * kMs, [&](DeadlineWheel::Entry& entry) {
    ++expired;
    if (&entry != &first) return;
    second.Leave();
    wheel.Add(third, 2 * kMs);
  });
  EXPECT_EQ(expired, 2);  // first and third
  EXPECT_FALSE(third.in_wheel());
}

// Against a plain sorted list, with clocks that stand still and that jump by minutes.
TEST(DeadlineWheel, DoesWhatASortedListDoes) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 50; ++round) {
    int64_t now_ns = static_cast<int64_t>(random() % 1'000'000'000);
    DeadlineWheel wheel(now_ns);
    std::deque<DeadlineWheel::Entry> entries(64);
    std::map<DeadlineWheel::Entry*, int64_t> model;
    for (int step = 0; step < 400; ++step) {
      DeadlineWheel::Entry& entry = entries[random() % entries.size()];
      switch (random() % 4) {
        case 0:
        case 1: {
          const int64_t ahead_ns =
              static_cast<int64_t>(random() % (random() % 8 == 0 ? 60'000 * kMs : 300 * kMs));
          const int64_t due_ns = now_ns + ahead_ns - 5 * kMs;
          wheel.Add(entry, due_ns);
          model[&entry] = due_ns;
          break;
        }
        case 2:
          entry.Leave();
          model.erase(&entry);
          break;
        default:
          now_ns += static_cast<int64_t>(random() % (random() % 16 == 0 ? 5'000 * kMs : 7 * kMs));
          wheel.Expire(now_ns, [&](DeadlineWheel::Entry& due) {
            ASSERT_TRUE(model.contains(&due));
            ASSERT_LE(model[&due], now_ns) << "early";
            model.erase(&due);
          });
          for (const auto& [left, due_ns] : model) ASSERT_GT(due_ns, now_ns - kMs) << "late";
          int64_t first_ns = DeadlineWheel::kNever;
          for (const auto& [left, due_ns] : model) first_ns = std::min(first_ns, due_ns);
          ASSERT_EQ(wheel.NextNs() == DeadlineWheel::kNever, model.empty());
          if (model.empty()) break;
          ASSERT_GT(wheel.NextNs(), now_ns) << "woken for nothing, and again at once";
          ASSERT_LE(wheel.NextNs(), std::max(now_ns, first_ns) + kMs);
      }
    }
  }
}

TEST(Backoff, DoublesWithJitterUpToTheMost) {
  Backoff backoff(10, 80, 1);
  const int64_t bounds[] = {10, 20, 40, 80, 80, 80};
  bool varied = false;
  for (const int64_t bound : bounds) {
    const int64_t wait = backoff.NextNs();
    EXPECT_GE(wait, bound / 2);
    EXPECT_LE(wait, bound);
    varied = varied || (wait != bound && wait != bound / 2);
  }
  EXPECT_TRUE(varied);
  backoff.Reset();
  EXPECT_LE(backoff.NextNs(), 10);
}

TEST(Backoff, SeedsDiffer) {
  Backoff one(1'000'000, 64'000'000, 1), other(1'000'000, 64'000'000, 99);
  int same = 0;
  for (int i = 0; i < 10; ++i) same += one.NextNs() == other.NextNs() ? 1 : 0;
  EXPECT_LT(same, 3);
}

}  // namespace
}  // namespace weir::redis
