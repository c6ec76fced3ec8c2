#include <chrono>
#include <string>

#include "doors/check_api/check_api.h"
#include "gtest/gtest.h"
#include "testing/door_client.h"
#include "testing/resp_client.h"

namespace weir::doors {
namespace {

using std::chrono::seconds;

struct Door {
  explicit Door(const std::string& yaml)
      : weir(yaml), client(weir), api(*weir.worker, 1), http(api, weir) {}
  std::string Ask(const std::string& line) { return client.Ask(line); }
  std::string Post(const std::string& body) { return http.Post("/v1/check", body).body; }
  // What an error of the API says.
  static std::string Message(const std::string& body) {
    const std::string front = R"("message":")";
    const size_t at = body.find(front) + front.size();
    return body.substr(at, body.rfind('"') - at);
  }
  SimulatedEngine weir;
  RespClient client;
  CheckApi api;
  DoorClient http;
};

std::string ReservationOf(const std::string& reply) {
  const std::string front = R"("reservation":")";
  const size_t at = reply.find(front);
  return at == std::string::npos ? "" : reply.substr(at + front.size(), 32);
}

constexpr const char* kLimits =
    "limits: [{name: calls, per: [client], rate: 10/hour}, {name: money, per: [client], rate: 5 "
    "usd/hour}, {name: tok, per: [client], rate: 1000 tokens/min}]";

TEST(CheckCommandTest, AnAnswerIsTheApis) {
  Door door(kLimits);
  EXPECT_EQ(door.Ask("WEIR.CHECK client a COST requests 2 usd 0.25"),
            door.Post(R"({"attributes":{"client":"b"},"cost":{"requests":2,"usd":0.25}})"));
  EXPECT_EQ(door.Ask("weir.check client a peek"),
            door.Post(R"({"attributes":{"client":"b"},"peek":true})"));
  EXPECT_EQ(door.Ask("WEIR.CHECK client a COST requests 9"),
            door.Post(R"({"attributes":{"client":"b"},"cost":9})"));
}

TEST(CheckCommandTest, APeekChangesNothing) {
  Door door(kLimits);
  const std::string first = door.Ask("WEIR.CHECK client a COST requests 10 PEEK");
  EXPECT_TRUE(first.starts_with(R"({"allowed":true)")) << first;
  EXPECT_EQ(door.Ask("WEIR.CHECK client a COST requests 10 PEEK"), first);
}

TEST(CheckCommandTest, ErrorsAreTheApisWords) {
  Door door(kLimits);
  const auto same = [&](const std::string& line, const std::string& body) {
    EXPECT_EQ(door.Ask(line), "-ERR " + Door::Message(door.Post(body))) << line;
  };
  same("WEIR.CHECK clint a", R"({"attributes":{"clint":"a"}})");
  same("WEIR.CHECK ip nowhere", R"({"attributes":{"ip":"nowhere"}})");
  same("WEIR.CHECK client a client b", R"({"attributes":{"client":"a","client":"b"}})");
  same("WEIR.CHECK api_key k client b", R"({"attributes":{"api_key":"k","client":"b"}})");
  same("WEIR.CHECK client a COST token 1", R"({"attributes":{},"cost":{"token":1}})");
  same("WEIR.CHECK client a COST usd 0.1234567", R"({"attributes":{},"cost":{"usd":0.1234567}})");
  same("WEIR.CHECK client a COST usd 9007199254.740993",
       R"({"attributes":{},"cost":{"usd":9007199254.740993}})");
  same("WEIR.CHECK client a COST tokens 1 tokens 1",
       R"({"attributes":{},"cost":{"tokens":1,"tokens":1}})");
  same("WEIR.CHECK client a RESERVE TTL 25h", R"({"attributes":{},"reserve":{"ttl":"25h"}})");
}

TEST(CheckCommandTest, Case16_WrongCostsLeaveTheStateAlone) {
  Door door(kLimits);
  EXPECT_NE(door.Ask("WEIR.CHECK client a COST requests 3").find(R"("remaining":7)"),
            std::string::npos);
  for (const char* cost : {"-5", "1.5", "abc", "1e30", "''"}) {
    EXPECT_TRUE(door.Ask(std::string("WEIR.CHECK client a COST requests ") + cost)
                    .starts_with("-ERR cost.requests: must be "))
        << cost;
  }
  EXPECT_NE(door.Ask("WEIR.CHECK client a COST requests 1").find(R"("remaining":6)"),
            std::string::npos);
}

TEST(CheckCommandTest, WhatOnlyACommandCanHaveWrong) {
  Door door(kLimits);
  EXPECT_EQ(door.Ask("WEIR.CHECK client a COST"), "-ERR cost: is missing");
  EXPECT_EQ(door.Ask("WEIR.CHECK client a COST tokens"), "-ERR cost.tokens: is missing");
  EXPECT_EQ(door.Ask("WEIR.CHECK client a path"), "-ERR attributes.path: has no value");
  EXPECT_EQ(door.Ask("WEIR.CHECK client a PEEK path"),
            "-ERR path: is none of the options COST, PEEK and RESERVE");
  EXPECT_EQ(door.Ask("WEIR.CHECK client"),
            "-ERR wrong number of arguments for 'weir.check' command");
}

TEST(CheckCommandTest, AnOptionsNameCanBeAnAttribute) {
  Door door("attributes: [peek]\nlimits: [{name: a, per: [peek], rate: 2/hour}]");
  EXPECT_NE(door.Ask("WEIR.CHECK peek x").find(R"("remaining":1)"), std::string::npos);
  EXPECT_NE(door.Ask("WEIR.CHECK peek x PEEK").find(R"("remaining":1)"), std::string::npos);
}

TEST(CheckCommandTest, AnApiKeyBecomesTheClientThatTheGatewayWouldName) {
  Door door(kLimits);
  door.Ask("WEIR.CHECK api_key sk-secret COST requests 4");
  const std::string body = door.Post(R"({"attributes":{"api_key":"sk-secret"},"cost":1})");
  EXPECT_NE(body.find(R"("remaining":5)"), std::string::npos) << body;
  EXPECT_EQ(door.weir.engine->metrics().Expose().find("sk-secret"), std::string::npos);
}

TEST(CheckCommandTest, ReservationsEndAsThoseOfTheApi) {
  Door door(kLimits);
  const std::string id =
      ReservationOf(door.Ask("WEIR.CHECK client a COST tokens 1000 RESERVE TTL 10m"));
  ASSERT_EQ(id.size(), 32u);
  const std::string settled = R"({"reservation":")" + id + R"(","charged":{"tokens":46}})";
  EXPECT_EQ(door.Ask("WEIR.SETTLE " + id + " tokens 46"), settled);
  EXPECT_EQ(door.Ask("WEIR.SETTLE " + id + " tokens 7"), settled);
  EXPECT_EQ(
      door.http.Post("/v1/settle", R"({"reservation":")" + id + R"(","actual":{"tokens":7}})").body,
      settled);
  const std::string other = ReservationOf(door.Ask("WEIR.CHECK client a COST tokens 954 RESERVE"));
  EXPECT_EQ(door.Ask("WEIR.RELEASE " + other),
            R"({"reservation":")" + other + R"(","charged":{"tokens":0}})");
  EXPECT_EQ(door.Ask("WEIR.RELEASE nonsense"), "-NOT_FOUND reservation: unknown or expired");
  EXPECT_EQ(door.Ask("WEIR.SETTLE " + other + " tokens x"),
            "-ERR actual.tokens: must be a whole number of at least 0");
  EXPECT_EQ(door.Ask("WEIR.SETTLE " + other + " tokens"),
            "-ERR wrong number of arguments for "
            "'weir.settle' command");
}

TEST(CheckCommandTest, AReservationOfSixtySecondsExpires) {
  Door door(kLimits);
  const std::string id = ReservationOf(door.Ask("WEIR.CHECK client a COST tokens 10 RESERVE"));
  door.weir.Advance(seconds(60));
  EXPECT_EQ(door.Ask("WEIR.RELEASE " + id), "-NOT_FOUND reservation: unknown or expired");
}

}  // namespace
}  // namespace weir::doors
