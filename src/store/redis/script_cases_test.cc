// Faults that shared rate limiters have shipped, on real servers: each with the right answer.
#include <gtest/gtest.h>

#include <thread>

#include "testing/redis_server.h"
#include "testing/script_store.h"

namespace weir::testing {
namespace {

using store::Charge;
using store::Key128;
using store::Mode;
using store::Outcome;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSec = 1000 * kMs;
constexpr int64_t kDay = 86'400 * kSec;
constexpr Key128 kKey{1, 0xabcd'ef01'2345'6789};
constexpr Key128 kOther{2, 0x1bcd'ef01'2345'6780};

class ScriptCasesTest : public ::testing::TestWithParam<const char*> {
 protected:
  void TearDown() override { EXPECT_EQ(store_.KeysWithoutTtl(), std::vector<std::string>{}); }

  const core::Meter* Meter(Algorithm algorithm, int64_t units, std::chrono::nanoseconds period,
                           int64_t burst = 0) {
    if (algorithm == Algorithm::kTokenBucket && burst == 0) burst = units;
    return store_
        .Intern(
            {.algorithm = algorithm, .rate = {.units = units, .period = period, .burst = burst}})
        .value();
  }
  const core::Meter* Bucket(int64_t units, std::chrono::nanoseconds period, int64_t burst = 0) {
    return Meter(Algorithm::kTokenBucket, units, period, burst);
  }
  // Far from 0, as a server's clock is.
  static core::Now At(int64_t ns) { return {.mono_ns = 1'796'000'000 * kSec + ns}; }
  Outcome Take(const core::Meter* meter, int64_t at_ns, int64_t cost = 1, Key128 key = kKey) {
    const Charge charge{.meter = meter, .key = key, .cost = cost};
    Outcome outcome;
    store_.Decide({&charge, 1}, {&outcome, 1}, At(at_ns), Mode::kCharge);
    return outcome;
  }
  std::vector<int64_t> SecondsAllowed(const core::Meter* meter, int64_t last) {
    std::vector<int64_t> allowed;
    for (int64_t t = 0; t <= last; ++t) {
      if (Take(meter, t * kSec).step.allowed) allowed.push_back(t);
    }
    return allowed;
  }

  RedisServer server_{{.program = GetParam()}};
  ScriptStore store_{server_.Console()};
};
INSTANTIATE_TEST_SUITE_P(Server, ScriptCasesTest,
                         ::testing::Values("redis-server", "valkey-server"),
                         [](const auto& server) {
                           const std::string name = server.param;
                           return name.substr(0, name.find('-'));
                         });

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

TEST_P(ScriptCasesTest, Case1_TheBucketRefillsBetweenCalls) {
  const auto* meter = Bucket(1, seconds(90), 1);
  std::vector<int64_t> allowed;
  for (int64_t t = 0; t <= 600; t += 10) {
    if (Take(meter, t * kSec).step.allowed) allowed.push_back(t);
  }
  EXPECT_EQ(allowed, (std::vector<int64_t>{0, 90, 180, 270, 360, 450, 540}));
}

TEST_P(ScriptCasesTest, Case5_TheAnnouncedWaitIsTheWholeWait) {
  const auto* meter = Bucket(6, minutes(1));
  EXPECT_TRUE(Take(meter, 0, 6).step.allowed);
  EXPECT_EQ(Take(meter, 5 * kSec).step.retry_after_ns, 5 * kSec);
  EXPECT_EQ(Take(meter, 9900 * kMs).step.retry_after_ns, 100 * kMs);
  EXPECT_TRUE(Take(meter, 10 * kSec).step.allowed);
}

TEST_P(ScriptCasesTest, Case10_LargeNumbersAreCounted) {
  const auto* meter = Bucket(1000, minutes(1), 1001);
  for (const int64_t remaining : {1000, 999, 998}) {
    EXPECT_EQ(Take(meter, 25 * kMs * (1000 - remaining) / 2).step.remaining, remaining);
  }
  EXPECT_GT(store_.TtlMs(kKey), 0);
}

TEST_P(ScriptCasesTest, Case21_ZeroAdmitsNothing) {
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kFixedWindow}) {
    const auto* meter = Meter(algorithm, 0, seconds(1), algorithm == Algorithm::kTokenBucket);
    std::vector<ScriptStore::Decision> calls(1000);
    for (auto& call : calls) call.charges.push_back({.meter = meter, .key = kKey});
    for (int i = 0; i < 10; ++i) {
      store_.DecideAll(calls, At(i * kSec));
      for (const auto& call : calls) {
        ASSERT_FALSE(call.admitted);
        ASSERT_EQ(call.outcomes[0].step.retry_after_ns, core::kNever);
      }
    }
  }
  const auto* parallel = Meter(Algorithm::kParallel, 0, seconds(1));
  EXPECT_FALSE(Take(parallel, 0).step.allowed);
  EXPECT_EQ(store_.TrackedKeys({}), 0);
}

TEST_P(ScriptCasesTest, Case23_RefusedCallsProlongNothing) {
  using Seconds = std::vector<int64_t>;
  EXPECT_EQ(SecondsAllowed(Meter(Algorithm::kSlidingWindow, 2, seconds(4)), 11),
            (Seconds{0, 1, 4, 5, 8, 9}));
  store_.Command({"FLUSHALL"});
  EXPECT_EQ(SecondsAllowed(Bucket(2, seconds(4)), 11), (Seconds{0, 1, 2, 4, 6, 8, 10}));
  store_.Command({"FLUSHALL"});
  EXPECT_EQ(SecondsAllowed(Meter(Algorithm::kSlidingCounter, 2, seconds(4)), 11),
            (Seconds{0, 1, 6, 8}));
  // A key whose windows are not shifted.
  const auto* fixed = Meter(Algorithm::kFixedWindow, 2, seconds(4));
  Seconds allowed;
  for (int64_t t = 0; t <= 11; ++t) {
    if (Take(fixed, t * kSec, 1, {1, 5}).step.allowed) allowed.push_back(t);
  }
  EXPECT_EQ(allowed, (Seconds{0, 1, 4, 5, 8, 9}));
}

TEST_P(ScriptCasesTest, Case26_AMonthInMillisecondsDoesNotWrap) {
  const auto* meter = Bucket(1, hours(24 * 30), 1);
  EXPECT_TRUE(Take(meter, 0).step.allowed);
  EXPECT_EQ(Take(meter, 2'147'484 * kSec).step.retry_after_ns, 444'516 * kSec);
  EXPECT_EQ(Take(meter, 25 * kDay).step.retry_after_ns, 432'000 * kSec);
  EXPECT_GT(store_.TtlMs(kKey), int64_t{30} * 86'400'000 - 60'000);
  EXPECT_TRUE(Take(meter, 30 * kDay).step.allowed);
}

TEST_P(ScriptCasesTest, Case28_WholeNumbersStayWhole) {
  const auto* meter = Bucket(200'000'000'000'000, hours(24));
  EXPECT_EQ(Take(meter, 0, 150'000'000'000'001).step.remaining, 49'999'999'999'999);
  EXPECT_FALSE(Take(meter, 0, 50'000'000'000'000).step.allowed);
  EXPECT_EQ(Take(meter, 0, 49'999'999'999'999).step.remaining, 0);
  const auto* window = Meter(Algorithm::kFixedWindow, kMaxUnits - 1, hours(24));
  EXPECT_EQ(Take(window, 0, kMaxUnits - 2, kOther).step.remaining, 1);
}

TEST_P(ScriptCasesTest, Case32_ARefusedCallSpendsNoOtherLimit) {
  const auto* group = Bucket(10, minutes(1));
  const auto* special = Bucket(3, minutes(1));
  // In one script call, so that each decision sees what the ones before it took.
  std::vector<ScriptStore::Decision> calls(13);
  for (size_t i = 0; i < calls.size(); ++i) {
    calls[i].charges.push_back({.meter = group, .key = kKey});
    if (i < 5) calls[i].charges.push_back({.meter = special, .key = kOther});
  }
  store_.DecideAll(calls, At(0));
  EXPECT_EQ(std::ranges::count_if(calls, &ScriptStore::Decision::admitted), 3 + 7);
  for (size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].admitted, i < 3 || (i >= 5 && i < 12)) << i;
  }
}

TEST_P(ScriptCasesTest, Case42_ARaisedRateCarriesUsedUnitsOver) {
  const auto* ten = Bucket(10, hours(1));
  const auto* twenty = Bucket(20, hours(1));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Take(ten, 0).step.allowed, i < 10);
  int passed = 0;
  for (int i = 0; i < 50; ++i) passed += Take(twenty, 0).step.allowed;
  EXPECT_EQ(passed, 10);
}

TEST_P(ScriptCasesTest, Case42_ThePolicyOfTwoNodesInOneCall) {
  const auto* ten = Bucket(10, hours(1));
  const auto* twenty = Bucket(20, hours(1));
  std::vector<ScriptStore::Decision> calls(30);
  for (size_t i = 0; i < calls.size(); ++i) {
    calls[i].charges.push_back({.meter = i % 2 == 0 ? ten : twenty, .key = kKey});
  }
  store_.DecideAll(calls, At(0));
  // The lower limit ends at ten used units, the higher at twenty: all told, whoever charged them.
  EXPECT_EQ(std::ranges::count_if(calls, &ScriptStore::Decision::admitted), 20);
}

TEST_P(ScriptCasesTest, Case51_YesterdaysUsageIsNotTodays) {
  const auto* day = store_
                        .Intern({.algorithm = Algorithm::kFixedWindow,
                                 .rate = {.units = 100, .period = hours(24)},
                                 .alignment = core::Alignment::kDay})
                        .value();
  const int64_t midnight_ns = kDay - At(0).mono_ns % kDay;
  EXPECT_EQ(Take(day, midnight_ns - kSec, 100).step.remaining, 0);
  EXPECT_EQ(Take(day, midnight_ns - 1000, 1).step.retry_after_ns, 1000);
  const Outcome today = Take(day, midnight_ns, 3);
  EXPECT_TRUE(today.step.allowed);
  EXPECT_EQ(today.step.remaining, 97);
}

TEST_P(ScriptCasesTest, CalendarWindowsAreTheServersEvenWhenTheNodesClockIsFarOff) {
  const auto* day = store_
                        .Intern({.algorithm = Algorithm::kFixedWindow,
                                 .rate = {.units = 5, .period = hours(24)},
                                 .alignment = core::Alignment::kDay})
                        .value();
  for (const int64_t skew_ns : {0 * kSec, 3 * kDay, -400 * kDay}) {
    std::vector<ScriptStore::Decision> call(1);
    call[0].charges.push_back({.meter = day, .key = kKey, .cost = 2});
    store_.DecideAll(call, At(0), skew_ns);
    EXPECT_EQ(call[0].admitted, skew_ns >= 0) << skew_ns;  // The third is one too many.
  }
}

TEST_P(ScriptCasesTest, Case74_TheTtlCoversTheRefillAndNoMore) {
  EXPECT_TRUE(Take(Bucket(60, minutes(1)), 0).step.allowed);
  EXPECT_GT(store_.TtlMs(kKey), 0);
  EXPECT_LE(store_.TtlMs(kKey), 120'000);
  EXPECT_TRUE(Take(Bucket(60, minutes(1)), 0, 60, kOther).step.allowed);
  EXPECT_GT(store_.TtlMs(kOther), 50'000);
  EXPECT_LE(store_.TtlMs(kOther), 120'000);
}

TEST_P(ScriptCasesTest, Case75_OneInTenSecondsStaysOneInTenSeconds) {
  const auto* meter = Bucket(1, seconds(10), 1);
  std::vector<int64_t> allowed;
  for (int64_t t = 0; t <= 60'000; t += 1500) {
    if (Take(meter, t * kMs).step.allowed) allowed.push_back(t);
    EXPECT_GE(store_.TtlMs(kKey), 0);
  }
  EXPECT_EQ(allowed, (std::vector<int64_t>{0, 10'500, 21'000, 31'500, 42'000, 52'500}));
}

// On the server's own clock and with its own expiry, scaled down: 1 in 100 ms, asked every few ms.
TEST_P(ScriptCasesTest, Case75_KeysThatExpireGiveNothingAway) {
  ScriptStore store(server_.Console(), ScriptStore::Clock::kOfTheServer);
  const auto* meter = *store.Intern(
      {.rate = {.units = 1, .period = 100 * std::chrono::milliseconds(1), .burst = 1}});
  const Charge charge{.meter = meter, .key = kKey};
  const auto began = std::chrono::steady_clock::now();
  int allowed = 0;
  while (std::chrono::steady_clock::now() - began < std::chrono::milliseconds(1050)) {
    Outcome outcome;
    allowed += store.Decide({&charge, 1}, {&outcome, 1}, {}, Mode::kCharge);
  }
  EXPECT_LE(allowed,
            1 + (std::chrono::steady_clock::now() - began) / std::chrono::milliseconds(100));
  EXPECT_GE(allowed, 5);
}

TEST_P(ScriptCasesTest, Case76_AHalfUsedLimitRefusesNobody) {
  ScriptStore store(server_.Console(), ScriptStore::Clock::kOfTheServer);
  const auto* meter =
      *store.Intern({.rate = {.units = 30'000'000, .period = seconds(1), .burst = 3000}});
  for (int i = 0; i < 30; ++i) {  // Keys of a millisecond come and go all the while.
    std::vector<ScriptStore::Decision> calls(100);
    for (auto& call : calls) call.charges.push_back({.meter = meter, .key = kKey});
    store.DecideAll(calls, {});
    for (const auto& call : calls) ASSERT_TRUE(call.admitted);
  }
}

TEST_P(ScriptCasesTest, Case85_TimeThatRefilledIsNotRefundedAgain) {
  const auto* meter = Bucket(1000, minutes(1));
  const Outcome first = Take(meter, 0, 1000);
  EXPECT_TRUE(Take(meter, 60 * kSec, 1000).step.allowed);
  EXPECT_FALSE(store_.Settle(*meter, kKey, first.receipt, 1000, 46, At(60 * kSec)));
  EXPECT_EQ(Take(meter, 60 * kSec, 0).step.remaining, 0);
}

// A fast rate that came and went while the call was open has given everything back.
TEST_P(ScriptCasesTest, Case85_AFastRateThatCameAndWentIsNotRefundedAgain) {
  const auto* slow = Bucket(10, hours(24));
  const auto* fast = Bucket(10, seconds(10));
  const Outcome open = Take(slow, 0, 10);
  Take(fast, 0, 0);
  Take(slow, 20 * kSec, 6);
  Take(slow, 20 * kSec, 4);  // It is still known after another charge.
  EXPECT_FALSE(store_.Release(*slow, kKey, open.receipt, 10, At(20 * kSec)));
  EXPECT_EQ(Take(slow, 20 * kSec, 0).step.remaining, 0);
}

TEST_P(ScriptCasesTest, SettlesAreCarriedOutOnceHoweverOftenTheyAreTold) {
  const auto* meter = Bucket(10, hours(24));
  const Outcome taken = Take(meter, 0, 8);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(store_.Settle(*meter, kKey, taken.receipt, 8, 6, At(0), /*id=*/77));
    EXPECT_EQ(Take(meter, 0, 0).step.remaining, 4);
  }
  EXPECT_TRUE(store_.Settle(*meter, kKey, taken.receipt, 6, 9, At(0), /*id=*/78));  // Debt.
  EXPECT_EQ(Take(meter, 0, 0).step.remaining, 1);
}

TEST_P(ScriptCasesTest, Case84b_LeasesOfADeadNodeComeBackAfterTheirTime) {
  const auto* meter = Meter(Algorithm::kParallel, 5, seconds(1));
  const auto acquire = [&](uint64_t id, int64_t at_ns) {
    const Charge charge{.meter = meter, .key = kKey, .lease_id = id, .lease_ttl_ns = 10 * kSec};
    Outcome outcome;
    store_.Decide({&charge, 1}, {&outcome, 1}, At(at_ns), Mode::kCharge);
    return outcome;
  };
  std::vector<core::Receipt> receipts;
  for (uint64_t id = 1; id <= 5; ++id) receipts.push_back(acquire(id, 0).receipt);
  EXPECT_FALSE(acquire(6, 9 * kSec).step.allowed);
  EXPECT_TRUE(acquire(5, 9 * kSec).step.allowed);  // Told twice, held once.
  EXPECT_TRUE(store_.Renew(*meter, kKey, receipts[0], 10 * kSec, At(9 * kSec)));
  EXPECT_GT(store_.TtlMs(kKey), 5'000);
  EXPECT_EQ(acquire(11, 10 * kSec).step.remaining, 3);  // The others' time is over.
  EXPECT_FALSE(store_.Renew(*meter, kKey, receipts[1], 10 * kSec, At(10 * kSec)));
  EXPECT_TRUE(store_.Release(*meter, kKey, receipts[0], 1, At(10 * kSec)));
  EXPECT_FALSE(store_.Release(*meter, kKey, receipts[0], 1, At(10 * kSec)));
  for (int i = 0; i < 50; ++i) {  // Aborted and released, fifty times.
    const Outcome lease = acquire(100 + i, 11 * kSec);
    ASSERT_TRUE(lease.charged);
    ASSERT_TRUE(store_.Release(*meter, kKey, lease.receipt, 1, At(11 * kSec)));
  }
  EXPECT_EQ(Take(meter, 11 * kSec, 0).step.remaining, 4);
}

TEST_P(ScriptCasesTest, ADenialWritesNothing) {
  const auto* meter = Bucket(1, hours(1));
  const auto* other = Bucket(100, hours(1));
  Take(meter, 0);
  const std::string before = store_.Command({"GET", ScriptStore::KeyOf(kKey)}).text;
  const std::vector<Charge> charges = {{.meter = other, .key = kOther},
                                       {.meter = meter, .key = kKey}};
  std::vector<Outcome> outcomes(2);
  EXPECT_FALSE(store_.Decide(charges, outcomes, At(kSec), Mode::kCharge));
  EXPECT_EQ(store_.Command({"GET", ScriptStore::KeyOf(kKey)}).text, before);
  EXPECT_EQ(store_.TrackedKeys({}), 1);
}

TEST_P(ScriptCasesTest, ACallMayBeLarge) {
  const auto* meter = Bucket(10, hours(1));
  const auto* window = Meter(Algorithm::kFixedWindow, 3, hours(1));
  std::vector<ScriptStore::Decision> calls(store::redis::DecideCall::kChargesMax / 2);
  for (uint64_t i = 0; i < calls.size(); ++i) {
    calls[i].charges.push_back({.meter = meter, .key = {3, i}});
    calls[i].charges.push_back({.meter = window, .key = {4, i << 20}});
  }
  store_.DecideAll(calls, At(0));
  for (const auto& call : calls) {
    ASSERT_TRUE(call.admitted);
    ASSERT_EQ(call.outcomes[0].step.remaining, 9);
    ASSERT_EQ(call.outcomes[1].step.remaining, 2);
  }
}

// After a failover to a server whose clock is behind: what was used stays used, and no more.
TEST_P(ScriptCasesTest, AClockThatJumpsBackIsHealedAndForgivesNothing) {
  for (const Algorithm algorithm : {Algorithm::kTokenBucket, Algorithm::kFixedWindow,
                                    Algorithm::kSlidingWindow, Algorithm::kSlidingCounter}) {
    store_.Command({"FLUSHALL"});
    const auto* meter = Meter(algorithm, 10, minutes(1));
    Take(meter, 3'600 * kSec, 10);
    const Outcome denied = Take(meter, 0);
    EXPECT_FALSE(denied.step.allowed) << AlgorithmName(algorithm);
    EXPECT_LE(denied.step.retry_after_ns, 120 * kSec) << AlgorithmName(algorithm);
    EXPECT_TRUE(Take(meter, 120 * kSec).step.allowed) << AlgorithmName(algorithm);
  }
}

TEST(ScriptCallsTest, KeysOfATagShareASlot) {
  EXPECT_EQ(store::redis::TagKey("weir:1:", 0xab), "weir:1:{00000000000000ab}");
  EXPECT_EQ(store::redis::CounterKey("weir:1:", 0xab, {1, 0x20}),
            "weir:1:{00000000000000ab}:00000000000000010000000000000020");
}

TEST(ScriptCallsTest, AnAnswerThatIsNoneIsAnError) {
  const auto text = [](std::string_view bytes) {
    return resp::Value{.type = resp::Type::kBulkString, .text = std::string(bytes)};
  };
  const auto meter = core::Meter::Compile({.rate = {1, std::chrono::seconds(1), 1}}).value();
  const Charge charge{.meter = meter.get(), .key = kKey};
  Outcome outcome;
  for (const std::string_view head : {"", "\xa1", "\x91", "\x91\xd3\x01", "\xdd\x01"}) {
    EXPECT_FALSE(store::redis::DecideReply::Parse(text(head)));
    EXPECT_FALSE(store::redis::SettleReply::Parse(text(head)));
  }
  EXPECT_FALSE(store::redis::DecideReply::Parse({.type = resp::Type::kInteger}));
  for (const std::string_view rest :
       {"\x91\x05", "\x92\x05\x04\x01\x01\x01", "\x94\x05\x02\x01\x01"}) {
    auto reply = store::redis::DecideReply::Parse(text(rest));
    ASSERT_TRUE(reply);
    EXPECT_FALSE(reply->Next({&charge, 1}, {&outcome, 1}));
  }
}

TEST_P(ScriptCasesTest, WhatTheServerCannotCountExactlyIsRefused) {
  using store::redis::CheckMeter;
  EXPECT_FALSE(CheckMeter(
      {.algorithm = Algorithm::kSlidingWindow, .rate = {.units = 100'001, .period = seconds(1)}}));
  EXPECT_FALSE(CheckMeter({.algorithm = Algorithm::kFixedWindow,
                           .rate = {.units = 1, .period = std::chrono::nanoseconds(1001)}}));
  EXPECT_TRUE(
      CheckMeter({.rate = {.units = 7, .period = std::chrono::nanoseconds(1001), .burst = 7}}));
}

}  // namespace
}  // namespace weir::testing
