// Splits a stream of server-sent events (WHATWG HTML, 9.2.6) into events, with bounded memory.
//
//   sse::EventScanner scanner(256 * 1024);
//   std::string_view input = piece;
//   while (scanner.Next(input) == sse::EventScanner::State::kEvent) Use(scanner.event().data);
//
// Lines end in LF, CR or CRLF, also where a piece ends between the two. Comments and unknown fields
// are skipped. Thread safety: none; one owner at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::sse {

struct Event {
  std::string type;  // "" when the event names none (a browser says "message").
  std::string data;  // Lines joined by LF.
  std::string id;    // The last id seen on the stream, as the standard has it.
};

class EventScanner {
 public:
  enum class State { kEvent, kNeedMore, kTooLong };

  // event_bytes_max bounds one line, and the data of one event.
  explicit EventScanner(size_t event_bytes_max) : bytes_max_(event_bytes_max) {}

  // Takes from the front of the input until an event is whole (kEvent; call again with what is
  // left) or the input is used up (kNeedMore). kTooLong is final.
  State Next(std::string_view& input);

  // After kEvent, until the next call of Next.
  const Event& event() const { return event_; }

  // The stream ended: an event without its empty line is dropped, as the standard has it. Ready for
  // another stream.
  void Reset();

 private:
  bool TakeLine(std::string_view line);  // True when it ends an event.

  size_t bytes_max_;
  Event event_;
  std::string line_;  // A line that began in an earlier piece.
  std::string data_, type_, id_;
  bool has_data_ = false;
  bool skip_lf_ = false;    // The last byte was a CR: an LF right after it ends no line.
  bool first_line_ = true;  // A byte order mark may stand before it.
  bool too_long_ = false;
};

}  // namespace weir::sse
