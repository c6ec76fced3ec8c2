// Server-sent events: pieces give the events of the whole, and memory stays bounded.
#include <string>
#include <vector>

#include "fuzz/check.h"
#include "wire/sse/event_scanner.h"

using namespace weir;

namespace {

std::string Scan(std::string_view input, size_t piece) {
  sse::EventScanner scanner(128);
  std::string events;
  while (!input.empty()) {
    std::string_view part = input.substr(0, piece);
    input.remove_prefix(part.size());
    for (;;) {
      const sse::EventScanner::State state = scanner.Next(part);
      if (state == sse::EventScanner::State::kTooLong) return events + "too long";
      if (state == sse::EventScanner::State::kNeedMore) break;
      fuzz::Check(scanner.event().data.size() <= 128);
      events += scanner.event().type + "|" + scanner.event().data + "|" + scanner.event().id + "\n";
    }
  }
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = fuzz::Input(data, size);
  const size_t piece = 1 + fuzz::TakeByte(input);
  fuzz::Check(Scan(input, input.size() + 1) == Scan(input, piece));
  return 0;
}
