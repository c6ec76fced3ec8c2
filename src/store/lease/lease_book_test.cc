#include "store/lease/lease_book.h"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

namespace weir::store::lease {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr Key128 kKey{1, 2};
constexpr int64_t kSince = 555;

LeaseTerms Terms(int64_t units = 1000) {
  return LeaseTerms::Compile(
             {.spec = {.rate = {.units = units, .period = std::chrono::seconds(1), .burst = units}},
              .per = "client"},
             LeaseKind::kReserved)
      .value();
}

class LeaseBookTest : public testing::Test {
 protected:
  LeaseBookTest() : book_(Options()) {}

  static LeaseBook::Options Options() {
    return {.holder = 77,
            .keys = 8,
            .term_ns = 2000 * kMs,
            .margin_ns = 100 * kMs,
            .horizon_ns = 1000 * kMs,
            .patience_ns = 200 * kMs};
  }
  static Grant Granted(const RefillRequest& request, int64_t units, int64_t allotment) {
    return {.number = request.number,
            .since_us = kSince,
            .units = units,
            .allotment = allotment,
            .lasts_us = 2'000'000,
            .holders = 1,
            .available = 300,
            .reset_us = 700};
  }
  // Calls until the book asks.
  RefillRequest Warm(int64_t now_ns, Key128 key = kKey) {
    for (int i = 0; i < 100; ++i) {
      if (book_.Spend(key, terms_, 1, now_ns).ask) return *book_.Ask(key, terms_, now_ns);
    }
    ADD_FAILURE() << "never asks";
    return {};
  }
  // A lease of `units` of an allotment of as many, sent for and there at `now_ns`.
  RefillRequest Lease(int64_t units, int64_t now_ns, Key128 key = kKey) {
    const RefillRequest request = Warm(now_ns, key);
    book_.Apply(key, Granted(request, units, units), now_ns);
    return request;
  }
  int64_t Left(int64_t now_ns) { return book_.StandingOf(kKey, terms_, now_ns).left; }
  std::vector<GiveBackRequest> GiveBackAll(int64_t now_ns) {
    std::vector<GiveBackRequest> all;
    book_.GiveBackAll(now_ns, [&](Key128, const GiveBackRequest& back) { all.push_back(back); });
    return all;
  }
  std::vector<GiveBackRequest> Sweep(int64_t now_ns) {
    std::vector<GiveBackRequest> all;
    book_.Sweep(now_ns, 8, [&](Key128, const GiveBackRequest& back) { all.push_back(back); });
    return all;
  }

  LeaseTerms terms_ = Terms();
  LeaseBook book_;
};

TEST_F(LeaseBookTest, AColdKeyIsExactAndAWarmOneAsks) {
  // Four calls in a horizon are eight in a term.
  for (int i = 0; i < 3; ++i) {
    const LeaseBook::Answer answer = book_.Spend(kKey, terms_, 2, 0);
    EXPECT_FALSE(answer.spent);
    EXPECT_FALSE(answer.ask);
  }
  EXPECT_TRUE(book_.Spend(kKey, terms_, 2, 0).ask);
  EXPECT_EQ(book_.Ask(kKey, terms_, 0),
            (RefillRequest{.holder = 77, .number = 1, .want = 8, .term_us = 2'000'000}));
  // One request at a time, until it has been out for too long.
  EXPECT_FALSE(book_.Spend(kKey, terms_, 1, 200 * kMs - 1).ask);
  EXPECT_TRUE(book_.Spend(kKey, terms_, 1, 200 * kMs).ask);
}

TEST_F(LeaseBookTest, ASmallLimitIsExact) {
  const LeaseTerms small = Terms(7);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(book_.Spend(kKey, small, 1, 0).ask);
}

TEST_F(LeaseBookTest, SpendsWhatItHoldsAndNoMore) {
  Lease(10, 0);
  EXPECT_TRUE(book_.Spend(kKey, terms_, 6, 0).spent);
  EXPECT_FALSE(book_.Spend(kKey, terms_, 5, 0).spent);
  EXPECT_TRUE(book_.Spend(kKey, terms_, 4, 0).spent);
  EXPECT_FALSE(book_.Spend(kKey, terms_, 1, 0).spent);
  EXPECT_TRUE(book_.Spend(kKey, terms_, 0, 0).spent);
}

TEST_F(LeaseBookTest, SpendsUntilSendTimePlusTermMinusMargin) {
  const RefillRequest request = Warm(1000 * kMs);
  book_.Apply(kKey, Granted(request, 10, 10), 1150 * kMs);  // The reply took its time.
  EXPECT_TRUE(book_.Spend(kKey, terms_, 1, 2900 * kMs - 1).spent);
  EXPECT_FALSE(book_.Spend(kKey, terms_, 1, 2900 * kMs).spent);
  EXPECT_EQ(Left(2900 * kMs), 0);
  // What ran out is not reported, and not given back.
  EXPECT_EQ(Warm(2900 * kMs).left, 0);
  for (const GiveBackRequest& back : GiveBackAll(2900 * kMs)) EXPECT_EQ(back.left, 0);
}

TEST_F(LeaseBookTest, AsksAtLowWaterAndReportsWhatIsLeft) {
  const RefillRequest first = Lease(10, 0);
  EXPECT_FALSE(book_.Spend(kKey, terms_, 5, 0).ask);  // Half is left.
  EXPECT_TRUE(book_.Spend(kKey, terms_, 1, 0).ask);
  const RefillRequest second = *book_.Ask(kKey, terms_, 10 * kMs);
  EXPECT_EQ(second.left, 4);
  EXPECT_EQ(second.since_us, kSince);
  EXPECT_EQ(second.applied, first.number);
  EXPECT_EQ(second.number, first.number + 1);
  EXPECT_TRUE(book_.Spend(kKey, terms_, 3, 20 * kMs).spent);  // While the request is out.
  book_.Apply(kKey, Granted(second, 6, 10), 30 * kMs);
  EXPECT_EQ(Left(30 * kMs), 7);
}

TEST_F(LeaseBookTest, RenewsALeaseThatIsUsedSlowly) {
  Lease(10, 0);
  EXPECT_FALSE(book_.Spend(kKey, terms_, 1, 1200 * kMs).ask);
  EXPECT_TRUE(book_.Spend(kKey, terms_, 1, 1300 * kMs).ask);  // A third of the term is left.
}

TEST_F(LeaseBookTest, AsksForMoreWhenTheRateGrows) {
  Lease(8, 0);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(book_.Spend(kKey, terms_, 1, 0).ask);
  for (int i = 0; i < 20; ++i) book_.Spend(kKey, terms_, 100, 0);  // Decided on the store.
  EXPECT_FALSE(book_.Spend(kKey, terms_, 0, 249 * kMs).ask);
  EXPECT_TRUE(book_.Spend(kKey, terms_, 0, 250 * kMs).ask);
  EXPECT_EQ(book_.Ask(kKey, terms_, 250 * kMs)->want, 1000);  // No more than the burst.
}

TEST_F(LeaseBookTest, ALateGrantCountsUntilAnotherMessageWasSent) {
  const RefillRequest first = Warm(0);
  book_.Failed(kKey, first.number, 300 * kMs);
  book_.Apply(kKey, Granted(first, 10, 10), 500 * kMs);
  EXPECT_EQ(Left(500 * kMs), 10);
  book_.Apply(kKey, Granted(first, 10, 10), 500 * kMs);  // Not twice.
  EXPECT_EQ(Left(500 * kMs), 10);

  for (int i = 0; i < 6; ++i) book_.Spend(kKey, terms_, 1, 500 * kMs);
  const RefillRequest second = *book_.Ask(kKey, terms_, 500 * kMs);
  book_.Failed(kKey, second.number, 700 * kMs);
  const RefillRequest third = *book_.Ask(kKey, terms_, 800 * kMs);
  EXPECT_EQ(third.applied, first.number);
  book_.Apply(kKey, Granted(second, 6, 10), 810 * kMs);  // Overtaken: the store takes it back.
  EXPECT_EQ(Left(810 * kMs), 4);
  book_.Apply(kKey, Granted(third, 6, 10), 820 * kMs);
  EXPECT_EQ(Left(820 * kMs), 10);
}

TEST_F(LeaseBookTest, AGrantThatComesAfterItsTimeIsNotTaken) {
  const RefillRequest first = Warm(0);
  book_.Apply(kKey, Granted(first, 10, 10), 1900 * kMs);
  EXPECT_EQ(Left(1900 * kMs), 0);
  EXPECT_EQ(Warm(1900 * kMs).applied, 0);  // So that the store takes it back.
}

TEST_F(LeaseBookTest, AnotherRegistrationVoidsWhatWasHeld) {
  Lease(10, 0);
  for (int i = 0; i < 6; ++i) book_.Spend(kKey, terms_, 1, 0);
  const RefillRequest second = *book_.Ask(kKey, terms_, 0);
  Grant grant = Granted(second, 3, 10);
  grant.since_us = kSince + 1;
  book_.Apply(kKey, grant, 10 * kMs);
  EXPECT_EQ(Left(10 * kMs), 3);
}

TEST_F(LeaseBookTest, ARefusalKeepsWhatIsHeldAndWaits) {
  Lease(10, 0);
  for (int i = 0; i < 6; ++i) book_.Spend(kKey, terms_, 1, 0);
  const RefillRequest second = *book_.Ask(kKey, terms_, 0);
  book_.Apply(kKey,
              {.status = GrantStatus::kDraining, .number = second.number, .retry_us = 500'000}, 0);
  EXPECT_EQ(Left(1900 * kMs - 1), 4);  // As long as before, no longer.
  EXPECT_EQ(Left(1900 * kMs), 0);
  EXPECT_FALSE(book_.Spend(kKey, terms_, 0, 500 * kMs - 1).ask);
  EXPECT_TRUE(book_.Spend(kKey, terms_, 0, 500 * kMs).ask);
}

TEST_F(LeaseBookTest, AShortGrantDoesNotLeadToARequestPerUnit) {
  const RefillRequest first = Warm(0);
  Grant grant = Granted(first, 1, 40);
  grant.retry_us = 10'000;
  book_.Apply(kKey, grant, 0);
  EXPECT_FALSE(book_.Spend(kKey, terms_, 1, 62 * kMs).ask);
  EXPECT_TRUE(book_.Spend(kKey, terms_, 1, 63 * kMs).ask);
}

TEST_F(LeaseBookTest, UndoPutsUnitsBackAsLongAsNothingWasSaidOfThem) {
  Lease(10, 0);
  const LeaseBook::Answer one = book_.Spend(kKey, terms_, 4, 0);
  book_.Undo(kKey, terms_, 4, one, 5 * kMs);
  EXPECT_EQ(Left(5 * kMs), 10);
  const LeaseBook::Answer two = book_.Spend(kKey, terms_, 6, 5 * kMs);
  ASSERT_TRUE(two.ask);
  book_.Ask(kKey, terms_, 5 * kMs);  // Says that 4 are left.
  book_.Undo(kKey, terms_, 6, two, 6 * kMs);
  EXPECT_EQ(Left(6 * kMs), 4);
  const LeaseBook::Answer late = book_.Spend(kKey, terms_, 1, 1900 * kMs - 1);
  book_.Undo(kKey, terms_, 1, late, 1900 * kMs);
  EXPECT_EQ(Left(1900 * kMs), 0);
  const LeaseBook::Answer denied = book_.Spend(kKey, terms_, 50, 10 * kMs);
  book_.Undo(kKey, terms_, 50, denied, 10 * kMs);  // Was not spent.
  EXPECT_EQ(Left(10 * kMs), 3);
}

TEST_F(LeaseBookTest, GivesBackOnceAndSpendsNothingAfterwards) {
  const RefillRequest first = Lease(10, 0);
  book_.Spend(kKey, terms_, 3, 0);
  EXPECT_EQ(GiveBackAll(0), (std::vector<GiveBackRequest>{{.holder = 77,
                                                           .number = first.number + 1,
                                                           .since_us = kSince,
                                                           .applied = first.number,
                                                           .left = 7}}));
  EXPECT_TRUE(GiveBackAll(0).empty());
  EXPECT_FALSE(book_.Spend(kKey, terms_, 1, 0).spent);
  // A later lease is another registration, and says nothing of grants before.
  const RefillRequest again = Warm(0);
  EXPECT_EQ(again.since_us, 0);
  EXPECT_EQ(again.applied, first.number + 1);
  EXPECT_EQ(again.number, first.number + 2);
}

TEST_F(LeaseBookTest, AGrantOnItsWayWhenALeaseIsGivenBackIsVoid) {
  const RefillRequest first = Warm(0);
  const std::vector<GiveBackRequest> back = GiveBackAll(0);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].applied, 0);
  EXPECT_EQ(back[0].since_us, 0);
  EXPECT_EQ(back[0].left, 0);
  book_.Apply(kKey, Granted(first, 10, 10), 1 * kMs);
  EXPECT_EQ(Left(1 * kMs), 0);
}

TEST_F(LeaseBookTest, IdleLeasesGoBackBeforeTheyRunOut) {
  Lease(10, 0);
  book_.Spend(kKey, terms_, 1, 400 * kMs);
  EXPECT_TRUE(Sweep(900 * kMs - 1).empty());
  const std::vector<GiveBackRequest> back = Sweep(900 * kMs);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].left, 9);
  EXPECT_TRUE(Sweep(901 * kMs).empty());
}

TEST_F(LeaseBookTest, ALeaseThatRanOutIsNotSwept) {
  Lease(10, 0);
  EXPECT_TRUE(Sweep(1900 * kMs).empty());
}

TEST_F(LeaseBookTest, AnotherDefinitionVoidsWhatWasHeld) {
  const RefillRequest first = Lease(10, 0);
  terms_ = Terms(2000);
  EXPECT_FALSE(book_.Spend(kKey, terms_, 1, 0).spent);
  // The grant of the old definition is not reported as not taken: it was, and spent in part.
  EXPECT_EQ(Warm(0).applied, first.number);
}

TEST_F(LeaseBookTest, WhereEveryEntryHoldsANewcomerIsExact) {
  for (uint64_t i = 0; i < 8; ++i) Lease(10, 0, {i, 0});
  for (int i = 0; i < 50; ++i) {
    const LeaseBook::Answer answer = book_.Spend({9, 0}, terms_, 1, 0);
    EXPECT_FALSE(answer.spent);
    EXPECT_FALSE(answer.ask);
  }
  // Until one has run dry.
  EXPECT_TRUE(book_.Spend({3, 0}, terms_, 10, 0).spent);
  const RefillRequest request = Warm(0, {9, 0});
  EXPECT_EQ(request.applied, request.number - 1);  // Whatever this key had before is closed.
}

TEST_F(LeaseBookTest, AskedTwiceInATickItSendsOneRequest) {
  Lease(10, 0);
  for (int i = 0; i < 8; ++i) book_.Spend(kKey, terms_, 1, 0);
  EXPECT_TRUE(book_.Ask(kKey, terms_, 0));
  EXPECT_FALSE(book_.Ask(kKey, terms_, 0));
  EXPECT_FALSE(book_.Ask({5, 5}, terms_, 0));
  EXPECT_FALSE(book_.Ask(kKey, Terms(2000), 0));
}

TEST_F(LeaseBookTest, ADroppedKeyIsNeitherSpentNorGivenBack) {
  const RefillRequest first = Lease(10, 0);
  book_.Drop(kKey);
  EXPECT_FALSE(book_.Spend(kKey, terms_, 1, 0).spent);
  EXPECT_TRUE(GiveBackAll(0).empty());
  EXPECT_EQ(Warm(0).applied, first.number);
}

TEST_F(LeaseBookTest, TellsWhatIsKnownOfTheWhole) {
  Lease(10, 0);
  book_.Spend(kKey, terms_, 4, 0);
  const LeaseBook::Standing standing = book_.StandingOf(kKey, terms_, 0);
  EXPECT_EQ(standing.left, 6);
  EXPECT_EQ(standing.available, 300);
  EXPECT_EQ(standing.reset_ns, 700'000);
  EXPECT_EQ(book_.StandingOf(kKey, terms_, 500'000).reset_ns, 200'000);
  EXPECT_EQ(book_.StandingOf(kKey, terms_, 800'000).reset_ns, 0);
  EXPECT_EQ(book_.StandingOf({5, 5}, terms_, 0).left, 0);
}

TEST_F(LeaseBookTest, HearsOfTheWholeFromOtherAnswers) {
  Lease(10, 0);
  book_.Hear(kKey, terms_, 40, 900'000, 100'000);
  const LeaseBook::Standing standing = book_.StandingOf(kKey, terms_, 200'000);
  EXPECT_EQ(standing.left, 10);
  EXPECT_EQ(standing.available, 40);
  EXPECT_EQ(standing.reset_ns, 800'000);
  LeaseTerms other = terms_;
  ++other.fence;
  book_.Hear(kKey, other, 1, 1, 200'000);
  EXPECT_EQ(book_.StandingOf(kKey, terms_, 200'000).available, 40);
}

TEST_F(LeaseBookTest, CanPaySaysWhatSpendWouldDo) {
  EXPECT_FALSE(book_.CanPay(kKey, terms_, 0, 0));
  EXPECT_FALSE(book_.Holds(kKey, 0));
  Lease(10, 0);
  EXPECT_TRUE(book_.Holds(kKey, 0));
  EXPECT_TRUE(book_.CanPay(kKey, terms_, 10, 0));
  EXPECT_FALSE(book_.CanPay(kKey, terms_, 11, 0));
  EXPECT_FALSE(book_.CanPay(kKey, Terms(2000), 1, 0));
  EXPECT_TRUE(book_.Spend(kKey, terms_, 10, 0).spent);
  EXPECT_FALSE(book_.CanPay(kKey, terms_, 1, 0));
  EXPECT_TRUE(book_.CanPay(kKey, terms_, 0, 0));
  EXPECT_FALSE(book_.CanPay(kKey, terms_, 0, 60'000'000'000));
  EXPECT_FALSE(book_.Holds(kKey, 60'000'000'000));
}

}  // namespace
}  // namespace weir::store::lease
