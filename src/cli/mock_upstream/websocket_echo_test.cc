#include "cli/mock_upstream/websocket_echo.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::mock {
namespace {

// RFC 6455, sections 1.3 and 5.7.
TEST(WebSocketEcho, AcceptIsThatOfTheStandard) {
  EXPECT_EQ(WebSocketAccept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WebSocketEcho, AMaskedTextComesBackUnmasked) {
  const std::string hello("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", 11);
  wire::Buffer out;
  bool closing = false;
  for (size_t cut = 0; cut < hello.size(); ++cut) {
    EXPECT_EQ(EchoFrame(std::string_view(hello).substr(0, cut), out, closing), 0u);
  }
  EXPECT_EQ(EchoFrame(hello + "rest", out, closing), hello.size());
  EXPECT_EQ(out.View(), std::string_view("\x81\x05Hello", 7));
  EXPECT_FALSE(closing);
}

TEST(WebSocketEcho, PingBecomesPongAndCloseCloses) {
  wire::Buffer out;
  bool closing = false;
  EXPECT_EQ(EchoFrame(std::string_view("\x89\x00", 2), out, closing), 2u);
  EXPECT_EQ(out.View(), std::string_view("\x8a\x00", 2));
  out.Clear();
  EXPECT_EQ(EchoFrame(std::string_view("\x88\x00", 2), out, closing), 2u);
  EXPECT_TRUE(closing);
}

TEST(WebSocketEcho, LongFramesKeepTheirLength) {
  for (const size_t size : {size_t{126}, size_t{70000}}) {
    std::string frame("\x82", 1);
    if (size < 65536) {
      frame += std::string("\x7e", 1) + static_cast<char>(size >> 8) + static_cast<char>(size);
    } else {
      frame += std::string("\x7f\0\0\0\0\0", 6) + static_cast<char>(size >> 16) +
               static_cast<char>(size >> 8) + static_cast<char>(size);
    }
    frame += std::string(size, 'x');
    wire::Buffer out;
    bool closing = false;
    EXPECT_EQ(EchoFrame(frame, out, closing), frame.size());
    EXPECT_EQ(out.View(), frame);
  }
}

}  // namespace
}  // namespace weir::mock
