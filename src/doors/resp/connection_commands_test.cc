#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/resp_client.h"

namespace weir::doors {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kOpen = "listen: {resp: 127.0.0.1:0}";
constexpr const char* kGuarded = "listen: {resp: {address: 127.0.0.1:0, token: s3cret-word}}";

struct Door {
  explicit Door(const std::string& yaml = kOpen) : weir(yaml), client(weir) {}
  std::string Ask(const std::string& line) { return client.Ask(line); }
  SimulatedEngine weir;
  RespClient client;
};

TEST(ConnectionCommandsTest, HelloTellsOfTheServerInTheProtocolThatItChooses) {
  Door door;
  EXPECT_EQ(door.Ask("HELLO"),
            "[server,weir,version,0.1.0,proto,2,id,1,mode,standalone,role,master,modules,[]]");
  EXPECT_EQ(door.Ask("hello 3 SETNAME me"),
            "{server,weir,version,0.1.0,proto,3,id,1,mode,standalone,role,master,modules,[]}");
  EXPECT_EQ(door.Ask("CLIENT GETNAME"), "me");
  EXPECT_EQ(door.Ask("HELLO 4"), "-NOPROTO unsupported protocol version");
  EXPECT_EQ(door.Ask("HELLO x"), "-ERR Protocol version is not an integer or out of range");
  EXPECT_EQ(door.Ask("HELLO 2 SETNAME"), "-ERR Syntax error in HELLO option SETNAME");
  EXPECT_EQ(door.client.session().protocol, 3);
}

TEST(ConnectionCommandsTest, NothingButTheWayInBeforeThePassword) {
  Door door(kGuarded);
  for (const char* line : {"PING", "CL.THROTTLE k 0 1 1", "WEIR.CHECK client a", "INFO",
                           "CLIENT ID", "COMMAND", "CONFIG GET save", "SELECT 0"}) {
    EXPECT_EQ(door.Ask(line), "-NOAUTH Authentication required.") << line;
  }
  EXPECT_THAT(door.Ask("HELLO 3"), StartsWith("-NOAUTH HELLO must be called with the client"));
  EXPECT_EQ(door.client.session().protocol, 2);
  EXPECT_EQ(door.Ask("QUIT"), "OK");
}

TEST(ConnectionCommandsTest, ThePasswordInOneOrTwoWordsOrWithHello) {
  Door door(kGuarded);
  const std::string wrong = "-WRONGPASS invalid username-password pair or user is disabled.";
  for (const char* line : {"AUTH s3cret", "AUTH s3cret-word-and-more", "AUTH other s3cret-word",
                           "AUTH default ''", "HELLO 3 AUTH default no"}) {
    EXPECT_EQ(door.Ask(line), wrong) << line;
    EXPECT_FALSE(door.client.session().authenticated);
  }
  EXPECT_EQ(door.Ask("AUTH s3cret-word"), "OK");
  EXPECT_EQ(door.Ask("PING"), "PONG");
  EXPECT_EQ(door.Ask("RESET"), "RESET");
  EXPECT_EQ(door.Ask("PING"), "-NOAUTH Authentication required.");
  EXPECT_EQ(door.Ask("AUTH default s3cret-word"), "OK");
  EXPECT_EQ(door.Ask("PING"), "PONG");
  door.client.Reconnect();
  EXPECT_THAT(door.Ask("HELLO 3 AUTH default s3cret-word SETNAME a"), StartsWith("{server,weir"));
  EXPECT_EQ(door.Ask("PING"), "PONG");
  EXPECT_EQ(door.Ask("AUTH a b c"), "-ERR syntax error");
}

TEST(ConnectionCommandsTest, AuthWithoutAPasswordToSay) {
  Door door;
  EXPECT_THAT(door.Ask("AUTH x"), StartsWith("-ERR AUTH <password> called without any password"));
  EXPECT_EQ(door.Ask("AUTH default x"), "OK");
}

TEST(ConnectionCommandsTest, NoErrorShowsAPassword) {
  Door door(kGuarded);
  for (const char* line : {"AUHT s3cret-word", "AUTH s3cret-word s3cret-word", "AUTH s3cret-word a",
                           "HELLO 3 AUTH s3cret-word", "HELLO 3 s3cret-word", "PING s3cret-word"}) {
    EXPECT_THAT(door.Ask(line), Not(HasSubstr("s3cret-word"))) << line;
  }
}

TEST(ConnectionCommandsTest, ClientTellsAndIsTold) {
  Door door;
  EXPECT_EQ(door.Ask("CLIENT ID"), "1");
  EXPECT_EQ(door.Ask("CLIENT GETNAME"), "nil");
  EXPECT_EQ(door.Ask("CLIENT SETNAME 'a b'"),
            "-ERR Client names cannot contain spaces, newlines or special characters.");
  EXPECT_EQ(door.Ask("CLIENT SETNAME worker-1"), "OK");
  EXPECT_EQ(door.Ask("CLIENT GETNAME"), "worker-1");
  EXPECT_EQ(door.Ask("CLIENT SETINFO LIB-NAME redis-py"), "OK");
  EXPECT_EQ(door.Ask("CLIENT SETINFO lib-ver 8.1"), "OK");
  EXPECT_EQ(door.Ask("CLIENT SETINFO lib x"), "-ERR Unrecognized option 'lib'");
  EXPECT_EQ(door.Ask("CLIENT SETINFO lib-ver 'a b'"),
            "-ERR lib-ver cannot contain spaces, newlines or special characters.");
  EXPECT_EQ(door.Ask("CLIENT INFO"),
            "id=1 addr=127.0.0.1:40000 name=worker-1 age=0 idle=0 flags=N db=0 sub=0 psub=0 "
            "multi=-1 cmd=client user=default lib-name=redis-py lib-ver=8.1 resp=2\n");
  EXPECT_EQ(door.Ask("CLIENT LIST"), door.Ask("CLIENT INFO"));
  EXPECT_EQ(door.Ask("CLIENT NO-EVICT on"), "OK");
  EXPECT_EQ(door.Ask("CLIENT NO-TOUCH maybe"), "-ERR syntax error");
  EXPECT_EQ(door.Ask("CLIENT SETNAME"),
            "-ERR wrong number of arguments for 'client|setname' command");
  EXPECT_EQ(door.Ask("CLIENT KILL x"), "-ERR unknown subcommand 'KILL'. Try CLIENT HELP.");
  door.client.Reconnect();
  EXPECT_EQ(door.Ask("CLIENT ID"), "1025");
}

TEST(ConnectionCommandsTest, CommandTellsOfTheCommands) {
  Door door;
  EXPECT_EQ(door.Ask("COMMAND COUNT"), "15");
  EXPECT_THAT(door.Ask("COMMAND"), StartsWith("[[cl.throttle,-5,[fast],1,1,1],[weir.check,-3,"));
  EXPECT_EQ(door.Ask("COMMAND INFO ping nothing"), "[[ping,-1,[fast],0,0,0],nil]");
  EXPECT_THAT(door.Ask("COMMAND LIST"), StartsWith("[cl.throttle,weir.check,"));
  EXPECT_EQ(door.Ask("COMMAND DOCS echo nothing"),
            "[echo,[summary,Answers its argument.,group,connection]]");
  EXPECT_EQ(door.Ask("COMMAND WHAT"), "-ERR unknown subcommand 'WHAT'. Try COMMAND HELP.");
}

TEST(ConnectionCommandsTest, TheRest) {
  Door door;
  EXPECT_EQ(door.Ask("PING"), "PONG");
  EXPECT_EQ(door.Ask("ping 'a b'"), "a b");
  EXPECT_EQ(door.Ask("PING a b"), "-ERR wrong number of arguments for 'ping' command");
  EXPECT_EQ(door.Ask("ECHO x"), "x");
  EXPECT_EQ(door.Ask("SELECT 0"), "OK");
  EXPECT_EQ(door.Ask("SELECT 1"), "-ERR DB index is out of range");
  EXPECT_EQ(door.Ask("SELECT a"), "-ERR value is not an integer or out of range");
  EXPECT_EQ(door.Ask("CONFIG GET save"), "[save,]");
  EXPECT_EQ(door.Ask("CONFIG GET appendonly maxmemory"), "[appendonly,no]");
  EXPECT_EQ(door.Ask("CONFIG SET save x"), "-ERR unknown subcommand 'SET'. Try CONFIG HELP.");
  EXPECT_THAT(door.Ask("INFO"), HasSubstr("\r\nloading:0\r\n"));
  EXPECT_EQ(door.Ask("GET k"), "-ERR unknown command 'GET'");
  EXPECT_EQ(door.Ask("ECHO"), "-ERR wrong number of arguments for 'echo' command");
  EXPECT_THAT(door.client.Send("*1\r\n$4\r\nA\r\nB\r\n"),
              ElementsAre("-ERR unknown command 'A  B'"));
}

TEST(ConnectionCommandsTest, ResetMakesTheConnectionAsNew) {
  Door door;
  door.Ask("HELLO 3 SETNAME me");
  EXPECT_EQ(door.Ask("RESET"), "RESET");
  EXPECT_EQ(door.client.session().protocol, 2);
  EXPECT_EQ(door.Ask("CLIENT GETNAME"), "nil");
}

TEST(ConnectionCommandsTest, ARequestOfABrowserIsNotAnswered) {
  Door door;
  EXPECT_THAT(door.client.Send("POST / HTTP/1.1\r\n"), ElementsAre());
  EXPECT_TRUE(door.client.session().closing);
}

// Whatever the words are, each command has exactly one reply, and the reply can be read.
TEST(ConnectionCommandsTest, AnyWordsHaveOneReply) {
  Door door("attributes: [tenant]\nlimits: [{name: a, per: [client], rate: 5/s}]");
  const std::vector<std::string> words = {
      "CL.THROTTLE", "WEIR.CHECK", "WEIR.SETTLE", "WEIR.RELEASE", "AUTH",  "CLIENT", "COMMAND",
      "CONFIG",      "ECHO",       "HELLO",       "INFO",         "PING",  "RESET",  "SELECT",
      "SETNAME",     "SETINFO",    "LIST",        "DOCS",         "GET",   "COST",   "PEEK",
      "RESERVE",     "TTL",        "client",      "ip",           "usd",   "tokens", "0",
      "1",           "-1",         "3",           "60s",          "\r\n$", "",       "\xff\x00"};
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    const size_t count = 1 + random() % 7;
    text = "*" + std::to_string(count) + "\r\n";
    for (size_t w = 0; w < count; ++w) {
      const std::string& word = words[w == 0 ? random() % 14 : random() % words.size()];
      text += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    }
    ASSERT_EQ(door.client.Send(text).size(), 1u) << text;
  }
}

}  // namespace
}  // namespace weir::doors
