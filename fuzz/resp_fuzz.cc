// RESP replies: pieces give the values of the whole, a broken stream stays broken, and the bounds
// hold.
#include <cmath>
#include <string>

#include "fuzz/check.h"
#include "wire/resp/reply_parser.h"

using namespace weir;

namespace {

constexpr resp::ReplyLimits kLimits = {.line_bytes_max = 64,
                                       .bulk_bytes_max = 256,
                                       .reply_bytes_max = 512,
                                       .items_max = 64,
                                       .depth_max = 5};

size_t Describe(const resp::Value& value, size_t depth, std::string& text, size_t& bytes) {
  fuzz::Check(depth <= kLimits.depth_max);
  fuzz::Check(value.items.empty() || value.type >= resp::Type::kArray);
  fuzz::Check(value.type != resp::Type::kPush || depth == 0);
  fuzz::Check(value.type != resp::Type::kMap || value.items.size() % 2 == 0);
  bytes += value.text.size();
  text += std::to_string(static_cast<int>(value.type)) + "," + std::to_string(value.integer) + "," +
          value.text + "(";
  size_t items = 1;
  for (const resp::Value& item : value.items) items += Describe(item, depth + 1, text, bytes);
  text += ")";
  return items;
}

std::string Parse(std::string_view input, size_t piece) {
  resp::ReplyParser parser(kLimits);
  std::string text;
  while (!input.empty()) {
    std::string_view part = input.substr(0, piece);
    input.remove_prefix(part.size());
    for (;;) {
      const resp::ReplyParser::State state = parser.Next(part);
      if (state == resp::ReplyParser::State::kBroken) {
        fuzz::Check(!parser.fault().empty());
        return text + "broken";
      }
      if (state == resp::ReplyParser::State::kNeedMore) break;
      size_t bytes = 0;
      const resp::Value value = parser.Take();
      fuzz::Check(Describe(value, 0, text, bytes) <= kLimits.items_max);
      fuzz::Check(bytes <= kLimits.reply_bytes_max);
    }
    fuzz::Check(part.empty());
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = fuzz::Input(data, size);
  const size_t piece = 1 + fuzz::TakeByte(input);
  fuzz::Check(Parse(input, input.size() + 1) == Parse(input, piece));
  return 0;
}
