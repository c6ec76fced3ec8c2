// Commands of Redis clients: pieces give the commands of the whole, a broken stream stays broken,
// and the bounds hold.
#include <algorithm>
#include <string>

#include "fuzz/check.h"
#include "wire/decimal.h"
#include "wire/resp/command_parser.h"

using namespace weir;

namespace {

constexpr resp::CommandLimits kLimits = {
    .words_max = 16, .word_bytes_max = 128, .command_bytes_max = 512, .inline_bytes_max = 128};

// All commands of the input as they arrive in pieces, each with its words.
std::string Parse(std::string_view input, size_t piece) {
  resp::CommandParser parser(kLimits);
  std::string text;
  size_t begin = 0;
  for (size_t end = std::min(piece, input.size());; end = std::min(end + piece, input.size())) {
    for (;;) {
      const std::string_view arrived = input.substr(begin, end - begin);
      const resp::CommandParser::State state = parser.Next(arrived);
      if (state == resp::CommandParser::State::kBroken) {
        fuzz::Check(parser.fault().starts_with("Protocol error: "));
        fuzz::Check(parser.Next(arrived) == state);
        return text + std::string(parser.fault());
      }
      if (state == resp::CommandParser::State::kNeedMore) break;
      fuzz::Check(parser.consumed() > 0 && parser.consumed() <= arrived.size());
      fuzz::Check(parser.words().size() <= std::max(kLimits.words_max, kLimits.inline_bytes_max));
      for (const std::string_view word : parser.words()) {
        fuzz::Check(word.size() <= kLimits.word_bytes_max);
        text += std::to_string(word.size()) + ":" + std::string(word) + " ";
      }
      text += "\n";
      begin += parser.consumed();
    }
    if (end == input.size()) return text;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = fuzz::Input(data, size);
  const size_t piece = 1 + fuzz::TakeByte(input);
  fuzz::Check(Parse(input, input.size() + 1) == Parse(input, piece));
  if (const std::optional<int64_t> number = wire::ParseDecimal(input.substr(0, 24)))
    fuzz::Check(wire::ParseDecimal(std::to_string(*number)) == number);
  return 0;
}
