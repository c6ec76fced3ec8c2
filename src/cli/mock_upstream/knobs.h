// Knobs: how the stand-in upstream is to misbehave, for all calls (flags) or for one (its headers
// or query).
//
//   x-mock-latency-ms: 100        a header of the request, or ?x-mock-latency-ms=100 in its target
//
// Thread safety: plain values and pure functions.
//
//   Result<Knobs> knobs = ReadKnobs(head, defaults);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weir/result.h"
#include "wire/http1/request_head.h"

namespace weir::mock {

struct Knobs {
  int64_t latency_ms = 0;      // Before the answer's head.
  int64_t pace_ms = 0;         // Between the events of a stream.
  int64_t events = 5;          // Pieces of text in a stream; words in an answer without one.
  int64_t status = 200;        // Other than 200: an error in the API's own shape.
  int64_t body_bytes = 0;      // Above 0: the text is that long instead of `events` words.
  int64_t prompt_tokens = 13;  // Usage is what is asked for here, whatever the text.
  int64_t completion_tokens = 33;
  int64_t abort_after = -1;  // 0 and above: the connection breaks after so many events.
  int64_t hang_after =
      -1;  // 0 and above: nothing more comes after so many events, and the stream stays open.
  int64_t endless_bytes = 0;  // Above 0: a stream of one line of so many bytes, without its end.
  bool missing_usage = false;
  bool close = false;    // Connection: close.
  bool chunked = false;  // Answers without a stream are chunked instead of having a length.
  std::string headers;   // "Name: value|Name: value", added to the answer.
  std::string trailers;  // The same, sent as trailer fields; makes the answer chunked.
};

// Sets the knob `name` ("latency-ms") from text. kInvalidArgument: no such knob, or no number.
Result<void> SetKnob(Knobs& knobs, std::string_view name, std::string_view value);
// "latency-ms=100"; a knob that is on or off may stand alone.
Result<void> SetKnob(Knobs& knobs, std::string_view name_and_value);

// The defaults, with what the request's query and x-mock-* headers say; the headers win.
Result<Knobs> ReadKnobs(const http1::RequestHead& head, const Knobs& defaults);

// Calls visit(name, value) for each "Name: value" of a list separated by '|'.
template <typename Visit>
void ForEachField(std::string_view list, Visit&& visit) {
  while (!list.empty()) {
    const size_t end = list.find('|');
    const std::string_view field = list.substr(0, end);
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
    const size_t colon = field.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view value = field.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    visit(field.substr(0, colon), value);
  }
}

}  // namespace weir::mock
