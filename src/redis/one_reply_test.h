// For tests: one reply from its bytes.
//
//   resp::Value reply = Reply("*2\r\n$1\r\na\r\n:1\r\n");
#pragma once

#include <gtest/gtest.h>

#include <string_view>

#include "wire/resp/reply_parser.h"

namespace weir::redis {

inline resp::Value Reply(std::string_view wire) {
  resp::ReplyParser parser;
  EXPECT_EQ(parser.Next(wire), resp::ReplyParser::State::kValue) << wire;
  EXPECT_TRUE(wire.empty());
  return parser.Take();
}

}  // namespace weir::redis
