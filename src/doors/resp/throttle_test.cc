#include <chrono>
#include <string>

#include "doors/check_api/check_api.h"
#include "gtest/gtest.h"
#include "testing/door_client.h"
#include "testing/resp_client.h"

namespace weir::doors {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Door {
  Door() : weir("limits: []"), client(weir) {}
  std::string Ask(const std::string& line) { return client.Ask(line); }
  // How many of `polls` calls, one each `step`, pass.
  int Allowed(const std::string& line, int polls, std::chrono::nanoseconds step) {
    int allowed = 0;
    for (int i = 0; i < polls; ++i, weir.Advance(step)) {
      const std::string reply = Ask(line);
      EXPECT_EQ(reply[0], '[') << reply;
      allowed += reply.starts_with("[0,") ? 1 : 0;
    }
    return allowed;
  }
  SimulatedEngine weir;
  RespClient client;
};

TEST(ThrottleTest, Case7_SecondsAreRoundedUp) {
  Door door;
  EXPECT_EQ(door.Ask("CL.THROTTLE k 0 1 10"), "[0,1,0,-1,10]");
  door.weir.Advance(milliseconds(300));
  EXPECT_EQ(door.Ask("CL.THROTTLE k 0 1 10"), "[1,1,0,10,10]");
  EXPECT_EQ(door.Ask("CL.THROTTLE u 15 30 60"), "[0,16,15,-1,2]");
}

TEST(ThrottleTest, Case8_RatesAboveOnePerSecond) {
  Door door;
  std::string limited;
  for (int i = 0; i < 8; ++i, door.weir.Advance(milliseconds(250)))
    limited += door.Ask("CL.THROTTLE k 0 2 1")[1];
  EXPECT_EQ(limited, "01010101");
}

TEST(ThrottleTest, Case9_RatesAboveAThousandPerSecond) {
  Door door;
  EXPECT_EQ(door.Allowed("CL.THROTTLE a 0 3000 1", 10'000, microseconds(100)), 2500);
  EXPECT_EQ(door.Allowed("CL.THROTTLE b 0 8000 1", 10'000, microseconds(100)), 5000);
  EXPECT_EQ(door.Allowed("CL.THROTTLE c 0 1000000 1", 10'000, microseconds(100)), 10'000);
}

TEST(ThrottleTest, Case10_LargeNumbersAreCounted) {
  Door door;
  EXPECT_EQ(door.Ask("CL.THROTTLE u 1000 1000 60"), "[0,1001,1000,-1,1]");
  door.weir.Advance(milliseconds(20));
  EXPECT_EQ(door.Ask("CL.THROTTLE u 1000 1000 60"), "[0,1001,999,-1,1]");
  door.weir.Advance(milliseconds(20));
  EXPECT_EQ(door.Ask("CL.THROTTLE u 1000 1000 60"), "[0,1001,998,-1,1]");
}

TEST(ThrottleTest, Case11_WrongArgumentsAreErrorsThatNameThem) {
  Door door;
  const auto begins = [&](const std::string& line, const std::string& with) {
    EXPECT_TRUE(door.Ask(line).starts_with(with)) << line << ": " << door.Ask(line);
  };
  begins("CL.THROTTLE t 0 0 60 1", "-ERR count: must be a whole number from 1 to ");
  begins("CL.THROTTLE t 0 1 0", "-ERR period: must be a whole number from 1 to 4611686018");
  begins("CL.THROTTLE t -1 1 1", "-ERR max_burst: must be a whole number from 0 to ");
  begins("CL.THROTTLE t 0 -1 1", "-ERR count: ");
  begins("CL.THROTTLE t 0 1 -1", "-ERR period: ");
  begins("CL.THROTTLE t 0 1 1 -1", "-ERR quantity: must be a whole number from 0 to ");
  begins("CL.THROTTLE t many 1 1", "-ERR max_burst: ");
  begins("CL.THROTTLE t 0 1.5 1", "-ERR count: ");
  begins("CL.THROTTLE t 0 1 99999999999999999999", "-ERR period: ");
  begins("CL.THROTTLE t 9007199254740991 1 60", "-ERR max_burst: filling the bucket from empty ");
  const std::string arity = "-ERR wrong number of arguments for 'cl.throttle' command";
  for (const char* line :
       {"CL.THROTTLE", "CL.THROTTLE t", "CL.THROTTLE t 0 1", "CL.THROTTLE t 0 1 1 1 1"}) {
    EXPECT_EQ(door.Ask(line), arity) << line;
  }
  EXPECT_EQ(door.Ask("PING"), "PONG");
}

TEST(ThrottleTest, Case15_TheLastPermittedCallPasses) {
  Door door;
  EXPECT_EQ(door.Allowed("CL.THROTTLE k 4 5 5", 6, seconds(0)), 5);
}

TEST(ThrottleTest, Case16_ANegativeQuantityGivesNothingBack) {
  Door door;
  EXPECT_EQ(door.Ask("CL.THROTTLE k 9 10 3600 3"), "[0,10,7,-1,1080]");
  EXPECT_TRUE(door.Ask("CL.THROTTLE k 9 10 3600 -5").starts_with("-ERR quantity: "));
  EXPECT_EQ(door.Ask("CL.THROTTLE k 9 10 3600 1"), "[0,10,6,-1,1440]");
}

TEST(ThrottleTest, Case29_AQuantityThatIsNoWholeNumberLeavesTheStateAlone) {
  Door door;
  EXPECT_EQ(door.Ask("CL.THROTTLE k 9 10 3600 3"), "[0,10,7,-1,1080]");
  for (const char* quantity : {"1.5", "abc", "1e30", "''", "9007199254740993"}) {
    EXPECT_TRUE(door.Ask(std::string("CL.THROTTLE k 9 10 3600 ") + quantity)
                    .starts_with("-ERR quantity: "));
  }
  EXPECT_EQ(door.Ask("CL.THROTTLE k 9 10 3600 1"), "[0,10,6,-1,1440]");
}

TEST(ThrottleTest, Case18_AQuantityOfNothingLooksAndStoresNothing) {
  Door door;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(door.Ask("CL.THROTTLE k 2 3 60 0"), "[0,3,3,-1,0]");
  EXPECT_EQ(door.weir.engine->metrics().StoreKeys(), 0u);
  EXPECT_EQ(door.Ask("CL.THROTTLE k 2 3 60"), "[0,3,2,-1,20]");
  EXPECT_EQ(door.weir.engine->metrics().StoreKeys(), 1u);
}

TEST(ThrottleTest, Case20_ABurstOfNothingIsOneCall) {
  Door door;
  EXPECT_EQ(door.Allowed("CL.THROTTLE k 0 1 1", 100, seconds(0)), 1);
}

TEST(ThrottleTest, AQuantityAboveTheCapacityNeverPasses) {
  Door door;
  EXPECT_EQ(door.Ask("CL.THROTTLE k 2 3 60 4"), "[1,3,3,-1,0]");
  EXPECT_EQ(door.Ask("CL.THROTTLE k 2 3 60"), "[0,3,2,-1,20]");
  EXPECT_EQ(door.Ask("CL.THROTTLE k 2 3 60 4"), "[1,3,2,-1,20]");
}

TEST(ThrottleTest, Case71_AnyBytesNameACounterOfTheirOwn) {
  Door door;
  const std::string keys[] = {
      "",     "a\r\nb",   "a",         std::string(1, '\0'),   std::string(2, '\0'),
      "\xff", "\xc3\xa9", "e\xcc\x81", std::string(4096, 'k'), std::string(1 << 20, 'k')};
  for (const std::string& key : keys) {
    EXPECT_EQ(door.client.Ask({"CL.THROTTLE", key, "0", "1", "60"}), "[0,1,0,-1,60]");
    EXPECT_EQ(door.client.Ask({"CL.THROTTLE", key, "0", "1", "60"}), "[1,1,0,60,60]");
  }
}

TEST(ThrottleTest, Case75_ABucketIsKeptUntilItIsFull) {
  Door door;
  EXPECT_EQ(door.Allowed("CL.THROTTLE k 0 1 10", 41, milliseconds(1500)), 6);
}

TEST(ThrottleTest, AChangedRateCarriesTheUsedUnitsOver) {
  Door door;
  for (int i = 0; i < 5; ++i) door.Ask("CL.THROTTLE k 4 5 60");
  EXPECT_EQ(door.Ask("CL.THROTTLE k 9 10 60 2"), "[0,10,3,-1,42]");
}

TEST(ThrottleTest, RulesOfTheDecisionApiAreInTheSameNamespace) {
  Door door;
  CheckApi api(*door.weir.worker, 1);
  DoorClient http(api, door.weir);
  EXPECT_EQ(door.Ask("CL.THROTTLE user:42 9 10 60 4"), "[0,10,6,-1,24]");
  EXPECT_TRUE(
      http.Post("/v1/check", R"({"key":"user:42","rule":{"rate":"10/min","burst":10},"cost":5})")
          .Has(R"("remaining":1,)"));
  EXPECT_EQ(door.Ask("CL.THROTTLE user:42 9 10 60 2"), "[1,10,1,6,54]");
  EXPECT_TRUE(http.Post("/v1/check", R"({"key":"user:42","rule":{"rate":"10/min"},"cost":2})")
                  .Has(R"("allowed":false,"denied_by":["ad-hoc"])"));
}

TEST(ThrottleTest, DecisionsAreCountedAtTheirDoor) {
  Door door;
  for (int i = 0; i < 3; ++i) door.Ask("CL.THROTTLE k 1 1 60");
  door.Ask("CL.THROTTLE k 1 1 60 0");
  const std::string page = door.weir.engine->metrics().Expose();
  const std::string series = R"(weir_decisions_total{door="resp",outcome=)";
  EXPECT_NE(page.find(series + R"("allowed",source="memory"} 2)"), std::string::npos) << page;
  EXPECT_NE(page.find(series + R"("denied",source="memory"} 1)"), std::string::npos) << page;
}

}  // namespace
}  // namespace weir::doors
