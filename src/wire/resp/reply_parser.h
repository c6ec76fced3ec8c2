// Splits a stream of bytes from a Redis or Valkey server into replies, RESP2 and RESP3 alike, with
// bounded memory and depth.
//
//   resp::ReplyParser parser;
//   std::string_view input(buffer, got);
//   while (parser.Next(input) == resp::ReplyParser::State::kValue) Use(parser.Take());
//
// Strict: lines end in CRLF, numbers are whole, a push comes only between replies. Attributes
// (`|`) are read and dropped. The streamed types (`$?`, `*?`), which no server sends, are refused.
// Thread safety: none; one owner at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/resp/value.h"

namespace weir::resp {

struct ReplyLimits {
  size_t line_bytes_max = 64 << 10;   // A simple string, an error, a number.
  size_t bulk_bytes_max = 16 << 20;   // One bulk string.
  size_t reply_bytes_max = 32 << 20;  // All strings of one reply together.
  size_t items_max = 1 << 18;         // All values of one reply together.
  size_t depth_max = 32;              // Lists within lists.
};

class ReplyParser {
 public:
  enum class State : uint8_t { kValue, kNeedMore, kBroken };

  ReplyParser() : ReplyParser(ReplyLimits()) {}
  explicit ReplyParser(const ReplyLimits& limits) : limits_(limits) {}

  // Takes from the front of the input until a reply is whole (kValue: Take it, then call again with
  // what is left) or the input is used up (kNeedMore). kBroken is final; fault() says why.
  // Allocates what the reply holds, never what it announces.
  State Next(std::string_view& input);

  // After kValue, once.
  Value Take() { return std::move(root_); }

  // After kBroken: one sentence that holds nothing of the input.
  std::string_view fault() const { return fault_; }

  // Whether a reply has begun and not ended.
  bool in_reply() const { return !whole_ && (items_ > 0 || !line_.empty()); }

 private:
  enum class Step : uint8_t { kLine, kBulk, kBulkEnd, kBroken };
  // A list that waits for `left` more values.
  struct Open {
    Value list;
    size_t left = 0;
    bool attribute = false;  // To be dropped when it is whole.
  };

  State Break(std::string_view fault);
  bool TakeLine(std::string_view& input, std::string_view& line);
  bool BeginValue(std::string_view line);  // False: broken.
  bool BeginString(char type, std::string_view count);
  bool BeginList(char type, std::string_view count);
  bool FinishString();
  bool CountBytes(size_t bytes);
  // A value is whole: puts it where it belongs; root_ when that ends the reply. True always.
  bool Place(Value value);

  const ReplyLimits limits_;
  Step step_ = Step::kLine;
  bool whole_ = false;    // root_ holds a reply.
  std::string line_;      // A line that began in an earlier piece.
  Value string_;          // The bulk string that is being read.
  char string_type_ = 0;  // '$', '!' or '='.
  size_t string_left_ = 0;
  std::vector<Open> open_;
  size_t reply_bytes_ = 0;
  size_t items_ = 0;
  Value root_;
  std::string_view fault_;
};

}  // namespace weir::resp
