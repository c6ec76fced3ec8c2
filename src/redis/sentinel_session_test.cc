#include "redis/sentinel_session.h"

#include <gtest/gtest.h>

#include <string>

#include "redis/one_reply_test.h"

namespace weir::redis {
namespace {

using Event = SentinelSession::Event;

constexpr std::string_view kMasterReply = "*2\r\n$8\r\n10.0.0.1\r\n$4\r\n6379\r\n";
constexpr std::string_view kOthers3 =
    "*2\r\n%2\r\n$2\r\nip\r\n$8\r\n10.0.0.8\r\n$4\r\nport\r\n$5\r\n26379\r\n"
    "%2\r\n$2\r\nip\r\n$8\r\n10.0.0.9\r\n$4\r\nport\r\n$5\r\n26380\r\n";
constexpr std::string_view kOthers2 =
    "*1\r\n*4\r\n$2\r\nip\r\n$8\r\n10.0.0.8\r\n$4\r\nport\r\n$5\r\n26379\r\n";
constexpr std::string_view kSwitch =
    "3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$36\r\nmymaster 10.0.0.1 6379 10.0.0.2 "
    "6380\r\n";

std::string Subscribed(char type) {
  return std::string(1, type) + "3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n";
}

TEST(SentinelSession, AsksSubscribesAndAsksAgainInResp3) {
  SentinelSession session("mymaster", 3);
  wire::Buffer out;
  session.Start(out);
  EXPECT_EQ(out.View(),
            "*3\r\n$8\r\nSENTINEL\r\n$23\r\nGET-MASTER-ADDR-BY-NAME\r\n$8\r\nmymaster\r\n"
            "*3\r\n$8\r\nSENTINEL\r\n$9\r\nSENTINELS\r\n$8\r\nmymaster\r\n"
            "*2\r\n$9\r\nSUBSCRIBE\r\n$14\r\n+switch-master\r\n"
            "*3\r\n$8\r\nSENTINEL\r\n$23\r\nGET-MASTER-ADDR-BY-NAME\r\n$8\r\nmymaster\r\n");
  EXPECT_EQ(session.OnReply(Reply(kMasterReply)), Event::kMaster);
  EXPECT_EQ(session.master(), (Address{"10.0.0.1", 6379}));
  EXPECT_EQ(session.OnReply(Reply(kOthers3)), Event::kNone);
  EXPECT_EQ(session.sentinels(), (std::vector<Address>{{"10.0.0.8", 26379}, {"10.0.0.9", 26380}}));
  EXPECT_FALSE(session.subscribed());
  EXPECT_EQ(session.OnReply(Reply(Subscribed('>'))), Event::kNone);
  EXPECT_TRUE(session.subscribed());
  EXPECT_TRUE(session.waiting());
  EXPECT_EQ(session.OnReply(Reply(kMasterReply)), Event::kMaster);
  EXPECT_FALSE(session.waiting());
  EXPECT_EQ(session.OnReply(Reply(">" + std::string(kSwitch))), Event::kMaster);
  EXPECT_EQ(session.master(), (Address{"10.0.0.2", 6380}));
}

TEST(SentinelSession, Resp2EndsWithTheSubscription) {
  SentinelSession session("mymaster", 2);
  wire::Buffer out;
  session.Start(out);
  EXPECT_TRUE(out.View().ends_with("*2\r\n$9\r\nSUBSCRIBE\r\n$14\r\n+switch-master\r\n"));
  EXPECT_EQ(session.OnReply(Reply(kMasterReply)), Event::kMaster);
  EXPECT_EQ(session.OnReply(Reply(kOthers2)), Event::kNone);
  EXPECT_EQ(session.sentinels().size(), 1u);
  EXPECT_EQ(session.OnReply(Reply(Subscribed('*'))), Event::kNone);
  EXPECT_TRUE(session.subscribed());
  EXPECT_FALSE(session.waiting());
  wire::Buffer none;
  EXPECT_FALSE(session.AskAgain(none));
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(session.OnReply(Reply("*" + std::string(kSwitch))), Event::kMaster);
  EXPECT_EQ(session.master(), (Address{"10.0.0.2", 6380}));
}

TEST(SentinelSession, MessagesOfOthersChangeNothing) {
  SentinelSession session("mymaster", 3);
  wire::Buffer out;
  session.Start(out);
  ASSERT_EQ(session.OnReply(Reply(kMasterReply)), Event::kMaster);
  for (const std::string text :
       {"other 10.0.0.1 6379 10.0.0.2 6380", "mymaster 10.0.0.1 6379 10.0.0.2",
        "mymaster 10.0.0.1 6379 10.0.0.2 0", "mymaster 10.0.0.1 6379 10.0.0.2 65536",
        "mymaster 10.0.0.1 6379 10.0.0.2 6380 x", ""}) {
    const std::string wire = ">3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$" +
                             std::to_string(text.size()) + "\r\n" + text + "\r\n";
    EXPECT_EQ(session.OnReply(Reply(wire)), Event::kNone) << text;
  }
  EXPECT_EQ(session.OnReply(Reply(">1\r\n+invalidate\r\n")), Event::kNone);
  EXPECT_EQ(session.master(), (Address{"10.0.0.1", 6379}));
}

// A peer that fails at every step.
TEST(SentinelSession, FailsAtEveryStep) {
  struct Row {
    std::vector<std::string> replies;
    ErrorCode code;
    std::string message;
  };
  const std::string master(kMasterReply);
  const std::string others(kOthers3);
  const std::string malformed = "the Sentinel's answer is malformed";
  const Row rows[] = {
      {{"_\r\n"}, ErrorCode::kNotFound, "the Sentinel knows no master of the name mymaster"},
      {{"*-1\r\n"}, ErrorCode::kNotFound, "the Sentinel knows no master of the name mymaster"},
      {{"-IDONTKNOW x\r\n"},
       ErrorCode::kUnavailable,
       "the Sentinel does not say who the master is (IDONTKNOW)"},
      {{"+OK\r\n"}, ErrorCode::kUnavailable, malformed},
      {{"*1\r\n$1\r\nh\r\n"}, ErrorCode::kUnavailable, malformed},
      {{"*2\r\n$1\r\nh\r\n:1\r\n"}, ErrorCode::kUnavailable, malformed},
      {{"*2\r\n$1\r\nh\r\n$1\r\nx\r\n"}, ErrorCode::kUnavailable, malformed},
      {{"*2\r\n$0\r\n\r\n$1\r\n1\r\n"}, ErrorCode::kUnavailable, malformed},
      {{master, others, "-NOPERM no\r\n"},
       ErrorCode::kUnavailable,
       "the subscription was refused (NOPERM)"},
      {{master, others, Subscribed('>'), "-ERR x\r\n"},
       ErrorCode::kUnavailable,
       "the Sentinel does not say who the master is (ERR)"},
      {{master, others, Subscribed('>'), master, "+more\r\n"},
       ErrorCode::kUnavailable,
       "a reply that answers nothing"},
  };
  for (const Row& row : rows) {
    SentinelSession session("mymaster", 3);
    wire::Buffer out;
    session.Start(out);
    Event event = Event::kNone;
    for (const std::string& reply : row.replies) {
      ASSERT_NE(event, Event::kFailed) << row.message;
      event = session.OnReply(Reply(reply));
    }
    EXPECT_EQ(event, Event::kFailed) << row.message;
    EXPECT_EQ(session.error(), (Error{row.code, row.message}));
  }
  // A list of the others that cannot be had or read is no fault.
  for (const std::string wire :
       {"-ERR x\r\n", "_\r\n", "*1\r\n:1\r\n", "*1\r\n*2\r\n+ip\r\n+x\r\n"}) {
    SentinelSession session("mymaster", 3);
    wire::Buffer out;
    session.Start(out);
    EXPECT_EQ(session.OnReply(Reply(master)), Event::kMaster);
    EXPECT_EQ(session.OnReply(Reply(wire)), Event::kNone);
    EXPECT_TRUE(session.sentinels().empty());
  }
}

}  // namespace
}  // namespace weir::redis
