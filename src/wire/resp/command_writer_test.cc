#include "wire/resp/command_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace weir::resp {
namespace {

TEST(CommandWriter, WritesArraysOfBulkStrings) {
  wire::Buffer out;
  const std::string_view words[] = {"SET", "k", ""};
  AppendCommand(out, words);
  EXPECT_EQ(out.View(), "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n");
}

TEST(CommandWriter, WordsHoldAnyBytes) {
  wire::Buffer out;
  const std::string_view words[] = {std::string_view("a\r\n\0$", 5)};
  AppendCommand(out, words);
  EXPECT_EQ(out.View(), std::string_view("*1\r\n$5\r\na\r\n\0$\r\n", 15));
}

TEST(CommandWriter, NumbersAreWordsOfDigits) {
  wire::Buffer out;
  BeginCommand(out, 3);
  AppendWord(out, int64_t{0});
  AppendWord(out, std::numeric_limits<int64_t>::min());
  AppendWord(out, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(out.View(),
            "*3\r\n$1\r\n0\r\n$20\r\n-9223372036854775808\r\n$19\r\n9223372036854775807\r\n");
}

TEST(CommandWriter, WordBytesIsWhatAppendWordAdds) {
  for (const size_t size : {0u, 1u, 9u, 10u, 99u, 100u, 65536u, 1000000u}) {
    wire::Buffer out;
    const std::string word(size, 'x');
    AppendWord(out, word);
    EXPECT_EQ(out.size(), WordBytes(word)) << size;
  }
}

}  // namespace
}  // namespace weir::resp
