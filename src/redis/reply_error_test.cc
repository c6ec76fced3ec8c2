#include "redis/reply_error.h"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

const Address kAsked{"10.0.0.1", 7000};

TEST(ReplyError, KnowsWhatServersSay) {
  struct Row {
    std::string_view text;
    ErrorKind kind;
    Remedy remedy;
    ErrorCode code;
    bool refused;
  };
  const Row rows[] = {
      {"NOSCRIPT No matching script. Please use EVAL.", ErrorKind::kNoScript, Remedy::kSendText,
       ErrorCode::kUnavailable, true},
      {"MOVED 3999 127.0.0.1:6381", ErrorKind::kMoved, Remedy::kFollow, ErrorCode::kUnavailable,
       true},
      {"ASK 3999 127.0.0.1:6381", ErrorKind::kAsk, Remedy::kFollowOnce, ErrorCode::kUnavailable,
       true},
      {"TRYAGAIN Multiple keys request during rehashing of slot", ErrorKind::kTryAgain,
       Remedy::kWait, ErrorCode::kUnavailable, true},
      {"CLUSTERDOWN The cluster is down", ErrorKind::kClusterDown, Remedy::kWait,
       ErrorCode::kUnavailable, true},
      {"CLUSTERDOWN Hash slot not served", ErrorKind::kClusterDown, Remedy::kWait,
       ErrorCode::kUnavailable, true},
      {"CROSSSLOT Keys in request don't hash to the same slot", ErrorKind::kCrossSlot,
       Remedy::kNone, ErrorCode::kInvalidArgument, true},
      {"READONLY You can't write against a read only replica.", ErrorKind::kReadOnly,
       Remedy::kFindMaster, ErrorCode::kUnavailable, true},
      {"READONLY You can't write against a read only replica. script: 1b9, on @user_script:1.",
       ErrorKind::kReadOnly, Remedy::kFindMaster, ErrorCode::kUnavailable, true},
      {"ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write against "
       "a read only replica.",
       ErrorKind::kReadOnly, Remedy::kFindMaster, ErrorCode::kUnavailable, true},
      {"ERR Error running script (call to f_1): @user_script:1: -OOM command not allowed when used "
       "memory > 'maxmemory'.",
       ErrorKind::kOutOfMemory, Remedy::kNone, ErrorCode::kUnavailable, true},
      {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
       ErrorKind::kMasterDown, Remedy::kFindMaster, ErrorCode::kUnavailable, true},
      {"LOADING Redis is loading the dataset in memory", ErrorKind::kLoading, Remedy::kWait,
       ErrorCode::kUnavailable, true},
      {"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
       ErrorKind::kBusy, Remedy::kWait, ErrorCode::kUnavailable, true},
      {"OOM command not allowed when used memory > 'maxmemory'.", ErrorKind::kOutOfMemory,
       Remedy::kNone, ErrorCode::kUnavailable, true},
      {"MISCONF Redis is configured to save RDB snapshots, but …", ErrorKind::kMisconfigured,
       Remedy::kNone, ErrorCode::kUnavailable, true},
      {"NOREPLICAS Not enough good replicas to write.", ErrorKind::kNoReplicas, Remedy::kNone,
       ErrorCode::kUnavailable, true},
      {"NOAUTH Authentication required.", ErrorKind::kNoAuth, Remedy::kReconnect,
       ErrorCode::kPermissionDenied, true},
      {"WRONGPASS invalid username-password pair or user is disabled.", ErrorKind::kWrongPassword,
       Remedy::kReconnect, ErrorCode::kPermissionDenied, true},
      {"NOPERM this user has no permissions to run the 'evalsha' command", ErrorKind::kNoPermission,
       Remedy::kNone, ErrorCode::kPermissionDenied, true},
      {"NOPROTO unsupported protocol version", ErrorKind::kNoProtocol, Remedy::kNone,
       ErrorCode::kInternal, true},
      {"ERR max number of clients reached", ErrorKind::kTooManyClients, Remedy::kReconnect,
       ErrorCode::kUnavailable, true},
      // A script that failed may have written before it did.
      {"ERR user_script:1: Script attempted to access nonexistent global variable 'x' script: 1",
       ErrorKind::kOther, Remedy::kNone, ErrorCode::kInternal, false},
      {"ERR Error running script (call to f_1): @user_script:1: -WRONGTYPE Operation",
       ErrorKind::kOther, Remedy::kNone, ErrorCode::kInternal, false},
      {"WRONGTYPE Operation against a key", ErrorKind::kOther, Remedy::kNone, ErrorCode::kInternal,
       false},
      {"MOVEDX 1 h:1", ErrorKind::kOther, Remedy::kNone, ErrorCode::kInternal, false},
      {"stale", ErrorKind::kOther, Remedy::kNone, ErrorCode::kInternal, false},
      {"", ErrorKind::kOther, Remedy::kNone, ErrorCode::kInternal, false},
  };
  for (const Row& row : rows) {
    const ErrorMeaning meaning = MeaningOf(row.text);
    EXPECT_EQ(meaning.kind, row.kind) << row.text;
    EXPECT_EQ(meaning.remedy, row.remedy) << row.text;
    EXPECT_EQ(meaning.code, row.code) << row.text;
    EXPECT_EQ(meaning.refused, row.refused) << row.text;
  }
}

TEST(ReplyError, TellsTheCallerWhereAndWhat) {
  const std::string_view text = "OOM command not allowed";
  EXPECT_EQ(ErrorOf(MeaningOf(text), text, kAsked),
            (Error{ErrorCode::kUnavailable, "10.0.0.1:7000: OOM command not allowed"}));
  const std::string long_text = "ERR " + std::string(5000, 'x');
  EXPECT_EQ(ErrorOf({}, long_text, kAsked).message.size(), 15u + 300u + 3u);
  EXPECT_EQ(ErrorOf({}, std::string_view("ERR a\r\n\0b", 9), kAsked).message,
            "10.0.0.1:7000: ERR a???b");
}

TEST(ReplyError, TheWordAloneIsSafeToShow) {
  EXPECT_EQ(ErrorWord("ERR unknown command 'HELLO', with args beginning with: 'secret'"), "ERR");
  EXPECT_EQ(ErrorWord("WRONGPASS"), "WRONGPASS");
  EXPECT_EQ(ErrorWord("secret"), "an error");
  EXPECT_EQ(ErrorWord(""), "an error");
  EXPECT_EQ(ErrorWord(std::string(25, 'A')), "an error");
}

TEST(ReplyError, ReadsRedirects) {
  const auto redirect = ParseRedirect("MOVED 3999 127.0.0.1:6381", kAsked);
  ASSERT_TRUE(redirect.has_value());
  EXPECT_EQ(redirect->slot, 3999);
  EXPECT_EQ(redirect->target, (Address{"127.0.0.1", 6381}));
  EXPECT_EQ(ParseRedirect("ASK 16383 node-2.example.com:6381", kAsked)->target,
            (Address{"node-2.example.com", 6381}));
  EXPECT_EQ(ParseRedirect("MOVED 1 fd00::1:6381", kAsked)->target, (Address{"fd00::1", 6381}));
  EXPECT_EQ(ParseRedirect("MOVED 1 [fd00::1]:6381", kAsked)->target, (Address{"fd00::1", 6381}));
  EXPECT_EQ(ParseRedirect("MOVED 1 :6381", kAsked)->target, (Address{"10.0.0.1", 6381}));
  EXPECT_EQ(ParseRedirect("MOVED 1 ?:6381", kAsked)->target, (Address{"10.0.0.1", 6381}));
  for (const std::string_view text :
       {"MOVED", "MOVED ", "MOVED 1", "MOVED 16384 h:1", "MOVED -1 h:1", "MOVED x h:1", "MOVED 1 h",
        "MOVED 1 h:", "MOVED 1 h:0", "MOVED 1 h:65536", "MOVED 1 h:x", "MOVED  h:1"}) {
    EXPECT_FALSE(ParseRedirect(text, kAsked).has_value()) << text;
  }
}

}  // namespace
}  // namespace weir::redis
