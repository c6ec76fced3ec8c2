#include "wire/grpc/status.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::grpc {
namespace {

TEST(GrpcStatus, TextIsTheNumber) {
  EXPECT_EQ(StatusText(Status::kOk), "0");
  EXPECT_EQ(StatusText(Status::kInvalidArgument), "3");
  EXPECT_EQ(StatusText(Status::kUnauthenticated), "16");
}

TEST(GrpcStatus, MessagesArePercentEncoded) {
  wire::Buffer out;
  AppendEncodedMessage("50% of é\n", out);
  EXPECT_EQ(out.View(), "50%25 of %C3%A9%0A");
}

TEST(GrpcTimeout, HasUpToEightDigitsAndAUnit) {
  EXPECT_EQ(ParseTimeout("20m"), 20'000'000);
  EXPECT_EQ(ParseTimeout("1H"), 3'600'000'000'000);
  EXPECT_EQ(ParseTimeout("2M"), 120'000'000'000);
  EXPECT_EQ(ParseTimeout("3S"), 3'000'000'000);
  EXPECT_EQ(ParseTimeout("99999999u"), 99'999'999'000);
  EXPECT_EQ(ParseTimeout("0n"), 0);
  EXPECT_EQ(ParseTimeout("99999999H"), INT64_MAX);
  for (const char* wrong : {"", "m", "20", "20s", "-1S", " 1S", "1.5S", "123456789S", "+1S"}) {
    EXPECT_EQ(ParseTimeout(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace weir::grpc
