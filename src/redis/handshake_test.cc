#include "redis/handshake.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "redis/one_reply_test.h"

namespace weir::redis {
namespace {

using State = Handshake::State;

constexpr std::string_view kHelloMap = "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n";
constexpr std::string_view kMaster = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
constexpr std::string_view kSlave =
    "*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:1\r\n$9\r\nconnected\r\n:0\r\n";
constexpr std::string_view kUnknownHello =
    "-ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `weir`, `hush`, \r\n";

// A peer that follows a script: for each command it wants exactly these words, and answers.
struct Exchange {
  std::string command;  // Words joined by blanks.
  std::string reply;
};

std::string WordsOf(wire::Buffer& out) {
  std::string words;
  resp::Value command = Reply(out.View());
  out.Clear();
  for (const resp::Value& word : command.items) words += (words.empty() ? "" : " ") + word.text;
  return words;
}

// The state after the last reply.
State Play(Handshake& handshake, const std::vector<Exchange>& script) {
  wire::Buffer out;
  handshake.Start(out);
  State state = State::kMore;
  for (const Exchange& exchange : script) {
    EXPECT_EQ(state, State::kMore) << "ended before " << exchange.command;
    if (state != State::kMore) return state;
    EXPECT_EQ(WordsOf(out), exchange.command);
    state = handshake.OnReply(Reply(exchange.reply), out);
  }
  EXPECT_EQ(out.empty(), state != State::kMore);
  return state;
}

Handshake::Options Full() {
  return {.credentials = {"weir", "hush"},
          .client_name = "weir",
          .database = 2,
          .require_master = true};
}

const std::vector<Exchange> kFullToday = {
    {"HELLO 3 AUTH weir hush SETNAME weir", std::string(kHelloMap)},
    {"SELECT 2", "+OK\r\n"},
    {"ROLE", std::string(kMaster)}};
const std::vector<Exchange> kFullOld = {
    {"HELLO 3 AUTH weir hush SETNAME weir", std::string(kUnknownHello)},
    {"AUTH weir hush", "+OK\r\n"},
    {"CLIENT SETNAME weir", "+OK\r\n"},
    {"SELECT 2", "+OK\r\n"},
    {"ROLE", std::string(kMaster)}};

TEST(Handshake, SaysAllInOneToAServerOfToday) {
  Handshake handshake(Full());
  EXPECT_EQ(Play(handshake, kFullToday), State::kReady);
  EXPECT_EQ(handshake.protocol(), 3);
}

TEST(Handshake, FallsBackForAServerWithoutHello) {
  Handshake handshake(Full());
  EXPECT_EQ(Play(handshake, kFullOld), State::kReady);
  EXPECT_EQ(handshake.protocol(), 2);
}

TEST(Handshake, SaysNoMoreThanItMust) {
  Handshake bare({});
  EXPECT_EQ(Play(bare, {{"HELLO 3", std::string(kHelloMap)}}), State::kReady);
  Handshake old({});
  EXPECT_EQ(Play(old, {{"HELLO 3", "-ERR unknown command 'HELLO'\r\n"}}), State::kReady);
  Handshake password_only({.credentials = {"", "hush"}});
  EXPECT_EQ(Play(password_only,
                 {{"HELLO 3 AUTH default hush", "-NOPROTO no\r\n"}, {"AUTH hush", "+OK\r\n"}}),
            State::kReady);
  EXPECT_EQ(password_only.protocol(), 2);
}

// Each step answered by each error: the handshake ends with an error or goes on by design, and no
// error holds what servers repeat.
TEST(Handshake, FailsAtEveryStepWithoutTellingSecrets) {
  const std::vector<std::string> errors = {
      "-ERR unknown command 'x', with args beginning with: 'hush'\r\n",
      "-WRONGPASS hush\r\n",
      "-NOAUTH hush\r\n",
      "-NOPERM hush\r\n",
      "-LOADING hush\r\n",
      "-MASTERDOWN hush\r\n",
      "-BUSY hush\r\n",
      "-ERR max number of clients reached hush\r\n",
      "-hush\r\n",
      "!8\r\nERR hush\r\n"};
  int failed = 0;
  for (const std::vector<Exchange>& script : {kFullToday, kFullOld}) {
    for (size_t step = 0; step < script.size(); ++step) {
      for (const std::string& error : errors) {
        std::vector<Exchange> broken(script.begin(), script.begin() + step + 1);
        broken.back().reply = error;
        Handshake handshake(Full());
        const State state = Play(handshake, broken);
        if (state != State::kFailed) continue;
        ++failed;
        EXPECT_EQ(handshake.error().message.find("hush"), std::string::npos)
            << handshake.error().message;
        EXPECT_FALSE(handshake.error().message.empty());
        wire::Buffer out;
        EXPECT_EQ(handshake.OnReply(Reply("+OK\r\n"), out), State::kFailed);
      }
    }
  }
  // HELLO fails by 5 of the errors (twice), AUTH by all, SETNAME by NOAUTH, SELECT by all (twice).
  EXPECT_EQ(failed, 2 * 5 + 10 + 1 + 2 * 10);
}

Error FaultOf(Handshake::Options options, const std::vector<Exchange>& script) {
  Handshake handshake(std::move(options));
  EXPECT_EQ(Play(handshake, script), State::kFailed);
  return handshake.error();
}

TEST(Handshake, SaysWhatIsWrong) {
  const std::string hello = "HELLO 3 AUTH weir hush SETNAME weir";
  EXPECT_EQ(FaultOf(Full(), {{hello, "-WRONGPASS invalid\r\n"}}),
            (Error{ErrorCode::kPermissionDenied, "the user or the password is wrong (WRONGPASS)"}));
  EXPECT_EQ(FaultOf({}, {{"HELLO 3", "-NOAUTH HELLO must be called …\r\n"}}),
            (Error{ErrorCode::kPermissionDenied,
                   "the server wants a password and none is configured (NOAUTH)"}));
  EXPECT_EQ(
      FaultOf({.database = 1}, {{"HELLO 3", "-ERR unknown\r\n"}, {"SELECT 1", "-NOAUTH x\r\n"}}),
      (Error{ErrorCode::kPermissionDenied,
             "the server wants a password and none is configured (NOAUTH)"}));
  EXPECT_EQ(FaultOf(Full(), {{hello, "-LOADING x\r\n"}}),
            (Error{ErrorCode::kUnavailable, "the server is not ready (LOADING)"}));
  EXPECT_EQ(FaultOf(Full(), {{hello, "-ERR\r\n"}, {"AUTH weir hush", "-ERR wrong number\r\n"}}),
            (Error{ErrorCode::kPermissionDenied,
                   "AUTH with a user was refused: wrong, or the server has no users (ERR)"}));
  EXPECT_EQ(FaultOf({.credentials = {"", "hush"}}, {{"HELLO 3 AUTH default hush", "-ERR\r\n"},
                                                    {"AUTH hush", "-ERR no password\r\n"}}),
            (Error{ErrorCode::kPermissionDenied,
                   "AUTH was refused: the password is wrong, or the server has none (ERR)"}));
  EXPECT_EQ(FaultOf(Full(), {{hello, std::string(kHelloMap)}, {"SELECT 2", "-ERR DB index\r\n"}}),
            (Error{ErrorCode::kFailedPrecondition, "database 2 cannot be selected (ERR)"}));
  for (const std::string& role : {std::string(kSlave), std::string("*1\r\n$8\r\nsentinel\r\n"),
                                  std::string("*0\r\n"), std::string("_\r\n")}) {
    EXPECT_EQ(
        FaultOf(Full(), {{hello, std::string(kHelloMap)}, {"SELECT 2", "+OK\r\n"}, {"ROLE", role}}),
        (Error{ErrorCode::kUnavailable, "the server is not a master"}));
  }
}

TEST(Handshake, ANameOrARoleThatIsRefusedIsNoFault) {
  std::vector<Exchange> script = kFullOld;
  script[2].reply = "-ERR unknown subcommand\r\n";
  script[4].reply = "-NOPERM no ROLE for you\r\n";
  Handshake handshake(Full());
  EXPECT_EQ(Play(handshake, script), State::kReady);
}

}  // namespace
}  // namespace weir::redis
