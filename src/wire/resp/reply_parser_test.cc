#include "wire/resp/reply_parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace weir::resp {
namespace {

using State = ReplyParser::State;

Value Text(Type type, std::string text) {
  Value value;
  value.type = type;
  value.text = std::move(text);
  return value;
}
Value Bulk(std::string text) { return Text(Type::kBulkString, std::move(text)); }
Value Integer(int64_t integer) {
  Value value;
  value.type = Type::kInteger;
  value.integer = integer;
  return value;
}
Value List(Type type, std::vector<Value> items) {
  Value value;
  value.type = type;
  value.items = std::move(items);
  return value;
}
Value Boolean(bool is_true) {
  Value value;
  value.type = Type::kBoolean;
  value.integer = is_true ? 1 : 0;
  return value;
}
Value Double(double real, std::string text) {
  Value value = Text(Type::kDouble, std::move(text));
  value.real = real;
  return value;
}

// Every reply in `wire`, fed in pieces of `piece` bytes. Fails when bytes are left over.
std::vector<Value> ParseAll(std::string_view wire, size_t piece) {
  ReplyParser parser;
  std::vector<Value> values;
  while (!wire.empty()) {
    std::string_view part = wire.substr(0, piece);
    wire.remove_prefix(part.size());
    State state;
    while ((state = parser.Next(part)) == State::kValue) values.push_back(parser.Take());
    EXPECT_EQ(state, State::kNeedMore) << parser.fault();
    EXPECT_TRUE(part.empty());
    if (state == State::kBroken) return values;
  }
  EXPECT_FALSE(parser.in_reply());
  return values;
}

std::string Fault(std::string_view wire, const ReplyLimits& limits = {}) {
  ReplyParser parser(limits);
  State state;
  while ((state = parser.Next(wire)) == State::kValue) parser.Take();
  if (state != State::kBroken) return "";
  std::string_view more = "+OK\r\n";
  EXPECT_EQ(parser.Next(more), State::kBroken) << "a broken parser went on";
  return std::string(parser.fault());
}

struct Example {
  std::string wire;
  Value value;
};

std::vector<Example> EveryType() {
  const Value null;
  return {
      {"+OK\r\n", Text(Type::kSimpleString, "OK")},
      {"+\r\n", Text(Type::kSimpleString, "")},
      {"-ERR no such key\r\n", Text(Type::kError, "ERR no such key")},
      {":0\r\n", Integer(0)},
      {":-9223372036854775808\r\n", Integer(INT64_MIN)},
      {":+9223372036854775807\r\n", Integer(INT64_MAX)},
      {"$5\r\nhe\r\nl\r\n", Bulk("he\r\nl")},
      {"$0\r\n\r\n", Bulk("")},
      {"$-1\r\n", null},
      {"*-1\r\n", null},
      {"_\r\n", null},
      {"*0\r\n", List(Type::kArray, {})},
      {"*2\r\n$1\r\na\r\n:7\r\n", List(Type::kArray, {Bulk("a"), Integer(7)})},
      {"*3\r\n*0\r\n*1\r\n*1\r\n:1\r\n_\r\n",
       List(Type::kArray, {List(Type::kArray, {}),
                           List(Type::kArray, {List(Type::kArray, {Integer(1)})}), null})},
      {"#t\r\n", Boolean(true)},
      {"#f\r\n", Boolean(false)},
      {",1.25\r\n", Double(1.25, "1.25")},
      {",-4e3\r\n", Double(-4000, "-4e3")},
      {",10\r\n", Double(10, "10")},
      {",inf\r\n", Double(INFINITY, "inf")},
      {",-inf\r\n", Double(-INFINITY, "-inf")},
      {"(3492890328409238509324850943850943825024385\r\n",
       Text(Type::kBigNumber, "3492890328409238509324850943850943825024385")},
      {"(-1\r\n", Text(Type::kBigNumber, "-1")},
      {"!21\r\nSYNTAX invalid syntax\r\n", Text(Type::kError, "SYNTAX invalid syntax")},
      {"=15\r\ntxt:Some string\r\n", Text(Type::kVerbatim, "Some string")},
      {"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n",
       List(Type::kMap, {Text(Type::kSimpleString, "a"), Integer(1), Text(Type::kSimpleString, "b"),
                         List(Type::kArray, {Integer(2)})})},
      {"~2\r\n:1\r\n#t\r\n", List(Type::kSet, {Integer(1), Boolean(true)})},
      {">2\r\n+message\r\n$2\r\nhi\r\n",
       List(Type::kPush, {Text(Type::kSimpleString, "message"), Bulk("hi")})},
      // Attributes belong to the value after them and are dropped, at every depth.
      {"|1\r\n+ttl\r\n:3600\r\n$1\r\nx\r\n", Bulk("x")},
      {"*2\r\n:1\r\n|1\r\n+ttl\r\n*2\r\n:1\r\n:2\r\n:3\r\n",
       List(Type::kArray, {Integer(1), Integer(3)})},
      {"|0\r\n:5\r\n", Integer(5)},
  };
}

TEST(ReplyParser, ReadsEveryType) {
  for (const Example& example : EveryType()) {
    const std::vector<Value> values = ParseAll(example.wire, example.wire.size());
    ASSERT_EQ(values.size(), 1u) << example.wire;
    EXPECT_EQ(values[0], example.value) << example.wire;
  }
  std::string_view nan = ",nan\r\n";
  ReplyParser parser;
  ASSERT_EQ(parser.Next(nan), State::kValue);
  EXPECT_TRUE(std::isnan(parser.Take().real));
}

TEST(ReplyParser, ReadsTheSameInPiecesOfEverySize) {
  std::string wire;
  std::vector<Value> wanted;
  for (const Example& example : EveryType()) {
    wire += example.wire;
    wanted.push_back(example.value);
  }
  for (size_t piece = 1; piece <= wire.size(); ++piece) {
    ASSERT_EQ(ParseAll(wire, piece), wanted) << "in pieces of " << piece;
  }
}

TEST(ReplyParser, ReadsTheSameSplitAtEveryByte) {
  for (const Example& example : EveryType()) {
    for (size_t split = 0; split <= example.wire.size(); ++split) {
      ReplyParser parser;
      std::string_view first = std::string_view(example.wire).substr(0, split);
      std::string_view second = std::string_view(example.wire).substr(split);
      if (split < example.wire.size()) {
        ASSERT_EQ(parser.Next(first), State::kNeedMore) << example.wire << " at " << split;
        EXPECT_TRUE(first.empty());
        EXPECT_EQ(parser.in_reply(), split > 0) << example.wire << " at " << split;
        ASSERT_EQ(parser.Next(second), State::kValue) << example.wire << " at " << split;
      } else {
        ASSERT_EQ(parser.Next(first), State::kValue);
      }
      EXPECT_EQ(parser.Take(), example.value) << example.wire << " at " << split;
    }
  }
}

TEST(ReplyParser, TakesNothingBeyondTheReply) {
  ReplyParser parser;
  std::string_view input = "+one\r\n+two\r\n";
  ASSERT_EQ(parser.Next(input), State::kValue);
  EXPECT_EQ(parser.Take().text, "one");
  EXPECT_EQ(input, "+two\r\n");
  ASSERT_EQ(parser.Next(input), State::kValue);
  EXPECT_EQ(parser.Take().text, "two");
  EXPECT_EQ(parser.Next(input), State::kNeedMore);
}

TEST(ReplyParser, RefusesWhatIsNotResp) {
  constexpr std::string_view kNotResp = "the bytes are not RESP";
  for (const std::string_view wire : {"\r\n",
                                      "HTTP/1.1 400 Bad Request\r\n",
                                      "OK\r\n",
                                      "?\r\n",
                                      ":\r\n",
                                      ":1x\r\n",
                                      ": 1\r\n",
                                      ":+-1\r\n",
                                      ":--1\r\n",
                                      ":9223372036854775808\r\n",
                                      "$\r\n",
                                      "$-2\r\n",
                                      "$x\r\n",
                                      "$+-1\r\n",
                                      "*-2\r\n",
                                      "*1.0\r\n",
                                      "%-1\r\n",
                                      "~-1\r\n",
                                      ">-1\r\n",
                                      "|-1\r\n",
                                      "!-1\r\n",
                                      "=-1\r\n",
                                      "_x\r\n",
                                      "#\r\n",
                                      "#T\r\n",
                                      "#true\r\n",
                                      ",\r\n",
                                      ",1,5\r\n",
                                      ",0x10\r\n",
                                      ",infinity\r\n",
                                      "(\r\n",
                                      "(-\r\n",
                                      "(1.5\r\n",
                                      "(1 \r\n",
                                      "$?\r\n",
                                      "*?\r\n",
                                      "*1\r\n>1\r\n:1\r\n"}) {
    EXPECT_EQ(Fault(wire), kNotResp) << wire;
  }
  EXPECT_EQ(Fault("+OK\n"), "a line does not end in CRLF");
  EXPECT_EQ(Fault("\n"), "a line does not end in CRLF");
  EXPECT_EQ(Fault("+a\rb\r\n"), "a line holds a bare CR");
  EXPECT_EQ(Fault("$1\r\nabc\r\n"), "a string is longer than it announced");
  EXPECT_EQ(Fault("$1\r\na\rb"), "a string is longer than it announced");
  EXPECT_EQ(Fault("=3\r\ntxt\r\n"), "a verbatim string does not name its format");
  EXPECT_EQ(Fault("=4\r\ntxt;\r\n"), "a verbatim string does not name its format");
}

TEST(ReplyParser, KeepsItsBounds) {
  ReplyLimits limits;
  limits.line_bytes_max = 8;
  limits.bulk_bytes_max = 10;
  limits.reply_bytes_max = 15;
  limits.items_max = 6;
  limits.depth_max = 3;
  EXPECT_EQ(Fault("+123456\r\n", limits), "");
  EXPECT_EQ(Fault("+1234567\r\n", limits), "a line is too long");
  EXPECT_EQ(Fault("+12345678", limits), "a line is too long");  // Before its end is there.
  EXPECT_EQ(Fault("$10\r\n0123456789\r\n", limits), "");
  EXPECT_EQ(Fault("$11\r\n", limits), "a string is too long");
  EXPECT_EQ(Fault("$9223372036854775807\r\n"), "a string is too long");
  EXPECT_EQ(Fault("*2\r\n$10\r\n0123456789\r\n$5\r\n12345\r\n", limits), "");
  EXPECT_EQ(Fault("*2\r\n$10\r\n0123456789\r\n$6\r\n", limits), "a reply is too large");
  EXPECT_EQ(Fault("*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n", limits), "");
  EXPECT_EQ(Fault("*7\r\n", limits), "a reply has too many items");
  EXPECT_EQ(Fault("%4\r\n", limits), "a reply has too many items");
  EXPECT_EQ(Fault("*2\r\n*2\r\n:1\r\n:2\r\n*2\r\n:1\r\n:2\r\n", limits),
            "a reply has too many items");
  EXPECT_EQ(Fault("*1\r\n*1\r\n*1\r\n:1\r\n", limits), "");
  EXPECT_EQ(Fault("*1\r\n*1\r\n*1\r\n*1\r\n", limits), "a reply is nested too deeply");
  // The bounds count for each reply by itself.
  EXPECT_EQ(Fault("$10\r\n0123456789\r\n$10\r\n0123456789\r\n", limits), "");
  EXPECT_EQ(Fault("*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n*4\r\n:1\r\n:2\r\n:3\r\n:4\r\n", limits), "");
}

TEST(ReplyParser, AnAnnouncedCountReservesNoMemoryToSpeakOf) {
  // 32 lists, each of which announces a quarter of a million items.
  std::string wire;
  for (int i = 0; i < 32; ++i) wire += "*262144\r\n";
  ReplyParser parser;
  std::string_view input = wire;
  EXPECT_EQ(parser.Next(input), State::kNeedMore);
  input = "*1\r\n";
  EXPECT_EQ(parser.Next(input), State::kBroken);
  EXPECT_EQ(parser.fault(), "a reply is nested too deeply");
}

TEST(ReplyParser, FaultsHoldNothingOfTheInput) {
  ReplyParser parser;
  std::string_view input = "?secret\r\n";
  ASSERT_EQ(parser.Next(input), State::kBroken);
  EXPECT_EQ(parser.fault().find("secret"), std::string_view::npos);
}

TEST(Value, FindsInMapsAndInFlatArrays) {
  for (const std::string_view wire :
       {"%2\r\n+a\r\n:1\r\n$1\r\nb\r\n:2\r\n", "*4\r\n+a\r\n:1\r\n$1\r\nb\r\n:2\r\n"}) {
    const Value map = ParseAll(wire, 100).at(0);
    ASSERT_NE(map.Find("b"), nullptr);
    EXPECT_EQ(map.Find("b")->integer, 2);
    EXPECT_EQ(map.Find("c"), nullptr);
  }
  EXPECT_EQ(List(Type::kArray, {Bulk("a")}).Find("a"), nullptr);
}

}  // namespace
}  // namespace weir::resp
