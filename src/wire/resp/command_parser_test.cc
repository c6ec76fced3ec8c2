#include "wire/resp/command_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::resp {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;
using State = CommandParser::State;

// All commands of the input, which comes in pieces of so many bytes; the last one is the fault, if
// there is one.
std::vector<Words> Commands(std::string_view input, size_t piece,
                            const CommandLimits& limits = {}) {
  CommandParser parser(limits);
  std::vector<Words> commands;
  std::string held;
  while (true) {
    const State state = parser.Next(held);
    if (state == State::kCommand) {
      commands.emplace_back(parser.words().begin(), parser.words().end());
      held.erase(0, parser.consumed());
      continue;
    }
    if (state == State::kBroken) {
      EXPECT_EQ(parser.Next(held), State::kBroken);
      commands.push_back({std::string(parser.fault())});
      return commands;
    }
    if (input.empty()) return commands;
    held.append(input.substr(0, piece));
    input.remove_prefix(std::min(piece, input.size()));
  }
}

TEST(CommandParser, SplitsArraysAndInlineCommandsWhereverTheyAreCut) {
  using namespace std::string_literals;
  const std::string input =
      "*2\r\n$4\r\nECHO\r\n$7\r\na\r\nb\0c!\r\n"s
      "PING\r\n*0\r\n\r\n*-1\r\nset  'it\\'s' \"a\\x00b\\n\\\"\"\n*1\r\n$0\r\n\r\n"s;
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{7}, input.size()}) {
    EXPECT_THAT(Commands(input, piece),
                ElementsAre(Words{"ECHO", "a\r\nb\0c!"s}, Words{"PING"}, Words{}, Words{}, Words{},
                            Words{"set", "it's", "a\0b\n\""s}, Words{""}))
        << piece;
  }
}

TEST(CommandParser, SaysWhatIsWrongInRedissWords) {
  const CommandLimits limits{
      .words_max = 3, .word_bytes_max = 10, .command_bytes_max = 30, .inline_bytes_max = 20};
  const auto fault = [&](std::string_view input) {
    const std::vector<Words> commands = Commands(input, input.size(), limits);
    return commands.empty() ? "nothing" : commands.back().at(0);
  };
  EXPECT_EQ(fault("*x\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(fault("*4\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(fault("*99999999999999999999\r\n"), "Protocol error: invalid multibulk length");
  EXPECT_EQ(fault("*" + std::string(40, '1')), "Protocol error: invalid multibulk length");
  EXPECT_EQ(fault("*1\r\nGET\r\n"), "Protocol error: expected '$'");
  EXPECT_EQ(fault("*1\r\n$-1\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(fault("*1\r\n$11\r\n"), "Protocol error: invalid bulk length");
  EXPECT_EQ(fault("*3\r\n$10\r\n0123456789\r\n$10\r\n0123456789\r\n"),
            "Protocol error: invalid bulk length");  // Of the whole command.
  EXPECT_EQ(fault("*1\r\n$2\r\nabc\r\n"),
            "Protocol error: a bulk string is longer than it announced");
  EXPECT_EQ(fault("get \"a"), "nothing");
  EXPECT_EQ(fault("get \"a\r\n"), "Protocol error: unbalanced quotes in request");
  EXPECT_EQ(fault("get \"a\"b\r\n"), "Protocol error: unbalanced quotes in request");
  EXPECT_EQ(fault(std::string(21, 'a')), "Protocol error: too big inline request");
}

}  // namespace
}  // namespace weir::resp
