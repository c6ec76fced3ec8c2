#include "wire/grpc/message_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::grpc {
namespace {

std::string Framed(std::string_view message, char compressed = 0) {
  char prefix[kPrefixBytes];
  WritePrefix(message.size(), prefix);
  prefix[0] = compressed;
  return std::string(prefix, kPrefixBytes) + std::string(message);
}

TEST(MessageReader, TakesAMessageInAnyPieces) {
  const std::string framed = Framed(std::string(300, 'm'));
  for (size_t piece = 1; piece <= framed.size(); ++piece) {
    MessageReader reader(1000);
    for (size_t at = 0; at < framed.size(); at += piece) {
      ASSERT_EQ(reader.Feed(std::string_view(framed).substr(at, piece)), Status::kOk);
    }
    ASSERT_EQ(reader.Finish(), Status::kOk);
    EXPECT_EQ(reader.message(), std::string(300, 'm'));
  }
}

TEST(MessageReader, AnEmptyMessageIsOne) {
  MessageReader reader(1000);
  EXPECT_EQ(reader.Feed(Framed("")), Status::kOk);
  EXPECT_EQ(reader.Finish(), Status::kOk);
  EXPECT_EQ(reader.message(), "");
}

TEST(MessageReader, RefusesWhatIsNoWholeMessage) {
  for (const std::string& bytes :
       {std::string(), std::string("\0\0", 2), Framed("abc").substr(0, 7)}) {
    MessageReader reader(1000);
    EXPECT_EQ(reader.Feed(bytes), Status::kOk);
    EXPECT_EQ(reader.Finish(), Status::kInvalidArgument);
    EXPECT_EQ(reader.fault(), "the message is not whole");
  }
}

TEST(MessageReader, RefusesWhatItCannotTake) {
  MessageReader compressed(1000);
  EXPECT_EQ(compressed.Feed(Framed("x", 1)), Status::kUnimplemented);
  MessageReader two(1000);
  EXPECT_EQ(two.Feed(Framed("x") + Framed("y")), Status::kInvalidArgument);
  MessageReader behind(1000);
  EXPECT_EQ(behind.Feed(Framed("x")), Status::kOk);
  EXPECT_EQ(behind.Feed("y"), Status::kInvalidArgument);
}

// By the length that is announced, before the bytes have come.
TEST(MessageReader, BoundsAMessage) {
  MessageReader fits(10);
  EXPECT_EQ(fits.Feed(Framed("0123456789")), Status::kOk);
  EXPECT_EQ(fits.Finish(), Status::kOk);
  MessageReader over(10);
  EXPECT_EQ(over.Feed(Framed("0123456789a").substr(0, kPrefixBytes)), Status::kResourceExhausted);
  MessageReader huge(10);
  EXPECT_EQ(huge.Feed(std::string("\0\xff\xff\xff\xff", 5)), Status::kResourceExhausted);
  MessageReader much(10);
  EXPECT_EQ(much.Feed(std::string("\0\0\0\0\x05", 5) + std::string(1000, 'x')),
            Status::kInvalidArgument);
}

TEST(MessageReader, IsReadyForAnotherCallWhenCleared) {
  MessageReader reader(10);
  EXPECT_EQ(reader.Feed(Framed("x", 1)), Status::kUnimplemented);
  reader.Clear();
  EXPECT_EQ(reader.fault(), "");
  EXPECT_EQ(reader.Feed(Framed("y")), Status::kOk);
  EXPECT_EQ(reader.Finish(), Status::kOk);
  EXPECT_EQ(reader.message(), "y");
}

}  // namespace
}  // namespace weir::grpc
