// The scripts' text, without comments, and its SHA-1 for EVALSHA. Made by the build out of the .lua
// files beside this one.
#pragma once

#include <string_view>

namespace weir::store::redis {

struct Script {
  std::string_view sha1;  // 40 hexadecimal digits.
  std::string_view text;
};

extern const Script kDecideScript;  // counters/ and decide.lua
extern const Script kSettleScript;  // counters/ and settle.lua

}  // namespace weir::store::redis
