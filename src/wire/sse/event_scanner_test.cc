#include "wire/sse/event_scanner.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::sse {
namespace {

// Events as "type|data|id", fed in pieces of the given size.
std::vector<std::string> Scan(std::string_view text, size_t piece_bytes, size_t bytes_max = 1024) {
  EventScanner scanner(bytes_max);
  std::vector<std::string> events;
  while (!text.empty()) {
    std::string_view piece = text.substr(0, piece_bytes);
    text.remove_prefix(piece.size());
    for (;;) {
      const EventScanner::State state = scanner.Next(piece);
      if (state == EventScanner::State::kTooLong) {
        events.push_back("too long");
        return events;
      }
      if (state == EventScanner::State::kNeedMore) break;
      events.push_back(scanner.event().type + "|" + scanner.event().data + "|" +
                       scanner.event().id);
    }
  }
  return events;
}

TEST(EventScanner, ReadsEventsAtEverySplit) {
  const std::string text =
      "\xEF\xBB\xBF"
      "data: one\n\n"
      ": a comment\n"
      "event: usage\r\ndata:{\"a\":\r\ndata: 1}\r\n\r\n"
      "id: 7\rdata\r\r"
      "retry: 5\nunknown: x\n\n"
      "data:  two spaces\n\n"
      "data: [DONE]\n\n"
      "data: unfinished";
  const std::vector<std::string> expected = {"|one|", "usage|{\"a\":\n1}|", "||7", "| two spaces|7",
                                             "|[DONE]|7"};
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    EXPECT_EQ(Scan(text, piece), expected) << piece;
  }
}

TEST(EventScanner, Case84d_BoundsALineAndAnEvent) {
  EXPECT_EQ(Scan(std::string(2000, 'x'), 100), std::vector<std::string>{"too long"});
  std::string event;
  for (int i = 0; i < 200; ++i) event += "data: 0123456789\n";
  EXPECT_EQ(Scan(event + "\n", 100), std::vector<std::string>{"too long"});
  EXPECT_EQ(Scan("data: 12345\n\n", 100, 11), std::vector<std::string>{"|12345|"});
  EXPECT_EQ(Scan("data: 12345\n\n", 100, 10), std::vector<std::string>{"too long"});
}

TEST(EventScanner, StartsAfreshAfterReset) {
  EventScanner scanner(100);
  std::string_view first = "id: 1\ndata: a";
  EXPECT_EQ(scanner.Next(first), EventScanner::State::kNeedMore);
  scanner.Reset();
  std::string_view second = "data: b\n\n";
  EXPECT_EQ(scanner.Next(second), EventScanner::State::kEvent);
  EXPECT_EQ(scanner.event().data, "b");
  EXPECT_EQ(scanner.event().id, "");
}

}  // namespace
}  // namespace weir::sse
