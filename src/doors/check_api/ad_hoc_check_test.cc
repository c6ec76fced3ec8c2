#include <chrono>
#include <string>

#include "doors/check_api/check_api.h"
#include "gtest/gtest.h"
#include "testing/door_client.h"

namespace weir::doors {
namespace {

struct Api {
  Api() : weir("limits: []"), service(*weir.worker, 1), client(service, weir) {}
  DoorAnswer Check(const std::string& key, const std::string& rule, const std::string& cost = "1") {
    return client.Post("/v1/check",
                       R"({"key":")" + key + R"(","rule":)" + rule + R"(,"cost":)" + cost + "}");
  }
  SimulatedEngine weir;
  CheckApi service;
  DoorClient client;
};

TEST(AdHocCheckTest, AnAnswerInFull) {
  Api api;
  EXPECT_EQ(
      api.Check("user:42", R"({"rate":"10/min","burst":10,"algorithm":"token_bucket"})").body,
      R"({"allowed":true,"denied_by":[],"source":"memory","retry_after_ms":0,"reservation":null,)"
      R"("limits":[{"name":"ad-hoc","unit":"requests","allowed":true,"quota":10,"remaining":9,)"
      R"("reset_after_ms":6000,"retry_after_ms":0,"shadow":false}]})");
}

TEST(AdHocCheckTest, Case45_ARaisedRuleFindsTheUsedUnits) {
  Api api;
  for (int i = 0; i < 5; ++i) api.Check("k", R"({"rate":"5/min"})");
  EXPECT_TRUE(api.Check("k", R"({"rate":"10/min"})", "2").Has(R"("remaining":3)"));
}

TEST(AdHocCheckTest, Case16_And29_WrongCostsAre400) {
  Api api;
  EXPECT_TRUE(api.Check("k", R"({"rate":"10/hour"})", "3").Has(R"("remaining":7)"));
  for (const char* cost : {"-5", "1.5", "\"abc\"", "1e30"}) {
    EXPECT_EQ(api.Check("k", R"({"rate":"10/hour"})", cost).status, 400) << cost;
  }
  EXPECT_TRUE(api.Check("k", R"({"rate":"10/hour"})", "1").Has(R"("remaining":6)"));
}

TEST(AdHocCheckTest, MistakesNameTheField) {
  Api api;
  EXPECT_TRUE(api.Check("k", R"({"rate":"10/fortnight"})").Has("rule.rate: "));
  EXPECT_TRUE(api.Check("k", R"({"rate":"10/min","burst":0})").Has("rule.burst: "));
  EXPECT_TRUE(api.Check("k", R"({"rate":"10/min","burst":5,"algorithm":"fixed_window"})")
                  .Has("rule.burst: "));
  EXPECT_TRUE(api.Check("k", R"({"rate":"unlimited"})").Has("rule.rate: "));
  EXPECT_TRUE(api.Check("k", R"({"rate":"10 tokens/min"})").Has("rule.rate: "));
}

TEST(AdHocCheckTest, ACostAboveTheCapacityNeverPasses) {
  Api api;
  EXPECT_TRUE(api.Check("k", R"({"rate":"10/min"})", "11").Has(R"("retry_after_ms":null)"));
}

}  // namespace
}  // namespace weir::doors
