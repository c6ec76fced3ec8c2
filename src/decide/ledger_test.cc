#include "decide/ledger.h"

#include "gtest/gtest.h"

namespace weir::decide {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

Settled Answer(int64_t requests) {
  Settled settled;
  settled.charged[0] = requests;
  settled.given = 1;
  return settled;
}

TEST(LedgerTest, EndsOnceAndRepeatsTheAnswer) {
  Ledger ledger({});
  const ReservationId id{1, 2};
  ASSERT_TRUE(ledger.Open(id, {.expires_ns = 10 * kSecondNs}, 0).has_value());
  EXPECT_EQ(ledger.open_count(), 1u);
  int ran = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(*ledger.End(id, kSecondNs, [&](const Reservation&) { return Answer(++ran); }),
              Answer(1));
  }
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(ledger.open_count(), 0u);
  // Remembered for a minute after its end, then forgotten.
  EXPECT_TRUE(
      ledger.End(id, 60 * kSecondNs, [](const Reservation&) { return Answer(9); }).has_value());
  EXPECT_EQ(
      ledger.End(id, 61 * kSecondNs, [](const Reservation&) { return Answer(9); }).error().code,
      ErrorCode::kNotFound);
}

TEST(LedgerTest, AnUnknownHalfIsNotTheSameReservation) {
  Ledger ledger({});
  ASSERT_TRUE(ledger.Open({1, 2}, {.expires_ns = kSecondNs}, 0).has_value());
  EXPECT_FALSE(ledger.End({7, 2}, 0, [](const Reservation&) { return Answer(1); }).has_value());
}

TEST(LedgerTest, ExpiredOnesMakeRoomAndProlongedOnesStay) {
  Ledger ledger({.max_reservations = 64});  // One per shard.
  ASSERT_TRUE(ledger.Open({1, 2}, {.expires_ns = kSecondNs}, 0).has_value());
  EXPECT_EQ(ledger.Open({1, 3}, {.expires_ns = kSecondNs}, 0).error().code,
            ErrorCode::kResourceExhausted);
  EXPECT_TRUE(ledger.Prolong({1, 2}, 0, 5 * kSecondNs, [](const Reservation&) { return true; }));
  EXPECT_FALSE(ledger.Open({1, 3}, {.expires_ns = 9 * kSecondNs}, 2 * kSecondNs).has_value());
  EXPECT_TRUE(ledger.Open({1, 3}, {.expires_ns = 9 * kSecondNs}, 5 * kSecondNs).has_value());
  EXPECT_FALSE(ledger.Prolong({1, 2}, 5 * kSecondNs, 9 * kSecondNs,
                              [](const Reservation&) { return true; }));
}

TEST(LedgerTest, AnswersAreBoundedTheOldestGoFirst) {
  Ledger ledger({.max_reservations = 6400, .max_answers = 128});  // Two per shard.
  for (uint64_t low = 1; low <= 3; ++low) {
    ASSERT_TRUE(ledger.Open({1, low}, {.expires_ns = kSecondNs}, 0).has_value());
    ASSERT_TRUE(
        ledger
            .End({1, low}, static_cast<int64_t>(low), [](const Reservation&) { return Answer(1); })
            .has_value());
  }
  EXPECT_FALSE(ledger.End({1, 1}, 9, [](const Reservation&) { return Answer(2); }).has_value());
  EXPECT_TRUE(ledger.End({1, 3}, 9, [](const Reservation&) { return Answer(2); }).has_value());
}

TEST(LedgerTest, OnesThatNobodyCanAskForAgainAreNotRemembered) {
  Ledger ledger({});
  ASSERT_TRUE(ledger.Open({1, 2}, {.expires_ns = kSecondNs, .remember = false}, 0).has_value());
  EXPECT_TRUE(ledger.End({1, 2}, 0, [](const Reservation&) { return Answer(1); }).has_value());
  EXPECT_FALSE(ledger.End({1, 2}, 0, [](const Reservation&) { return Answer(1); }).has_value());
}

}  // namespace
}  // namespace weir::decide
