// Requests of HTTP/2 said in HTTP/1.1: whatever the fields hold, what is given out is one request
// to the parser that serves it, the same in pieces of any size, and no byte of the body is lost.
//
// The input: a byte for the size of pieces, then lines "name\0value\n" of the head; an empty line;
// then the body.
#include <string>

#include "fuzz/check.h"
#include "net/http2_request.h"
#include "wire/http1/body.h"

using namespace weir;

namespace {

std::string_view TakeUntil(std::string_view& input, char end) {
  const size_t at = input.find(end);
  const std::string_view part = input.substr(0, at);
  input.remove_prefix(at == std::string_view::npos ? input.size() : at + 1);
  return part;
}

struct Given {
  bool valid = false;
  bool exhausted = false;
  std::string text;
  size_t body_bytes = 0;
};

Given Run(std::string_view input, size_t piece) {
  Given all;
  net::Http2Request request;
  for (std::string_view line; !(line = TakeUntil(input, '\n')).empty();) {
    const std::string_view name = TakeUntil(line, '\0');
    request.AddField(name, line);
  }
  all.valid = request.FinishHead(/*ends=*/input.empty());
  if (!all.valid) {
    fuzz::Check(!request.readable());
    return all;
  }
  std::string room(piece, '\0');
  const auto read = [&] {
    for (;;) {
      const net::Http2Request::Given given = request.Read(room);
      fuzz::Check(given.bytes <= room.size() && given.body_bytes <= given.bytes);
      if (given.bytes == 0) break;
      all.text.append(room, 0, given.bytes);
      all.body_bytes += given.body_bytes;
    }
    fuzz::Check(!request.readable());
  };
  if (!input.empty()) {
    request.AppendBody(input);
    request.Finish();
  }
  read();
  all.exhausted = request.exhausted();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = fuzz::Input(data, size);
  const size_t piece = 1 + fuzz::TakeByte(input);
  const Given given = Run(input, piece);
  const Given whole = Run(input, 1 << 16);
  fuzz::Check(given.valid == whole.valid && given.text == whole.text);
  if (!given.valid) return 0;
  fuzz::Check(given.exhausted);

  http1::RequestHead head;
  const http1::ParseOutcome parsed = http1::ParseRequestHead(given.text, {}, head);
  if (!parsed.complete()) return 0;  // Refused, and the stream ends with it.
  http1::BodyReader reader;
  reader.Start(head.body, head.content_length);
  std::string_view rest = std::string_view(given.text).substr(parsed.consumed);
  size_t payload_bytes = 0;
  http1::BodyReader::Step step;
  do {
    step = reader.Feed(rest);
    rest.remove_prefix(step.consumed);
    payload_bytes += step.payload.size();
  } while (step.state == http1::BodyReader::State::kPayload);
  // Nothing is left that could be another request.
  fuzz::Check(rest.empty() || step.state == http1::BodyReader::State::kError);
  fuzz::Check(step.state == http1::BodyReader::State::kError || payload_bytes == given.body_bytes);
  return 0;
}
