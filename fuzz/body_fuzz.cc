// Bodies: pieces of any size give the payload and the end of the whole; what was read can be
// written and read again.
#include <algorithm>
#include <string>

#include "fuzz/check.h"
#include "wire/http1/body.h"

using namespace weir;

namespace {

struct Outcome {
  std::string payload;
  size_t consumed = 0;
  http1::BodyReader::State state = http1::BodyReader::State::kNeedMore;
  int status = 0;
};

Outcome Read(http1::BodyReader& reader, std::string_view input, size_t piece) {
  Outcome outcome;
  while (outcome.state == http1::BodyReader::State::kNeedMore) {
    std::string_view part = input.substr(outcome.consumed, piece);
    if (part.empty()) break;
    for (;;) {
      const http1::BodyReader::Step step = reader.Feed(part);
      fuzz::Check(step.consumed <= part.size() && fuzz::Within(step.payload, part));
      outcome.payload += step.payload;
      outcome.consumed += step.consumed;
      outcome.state = step.state;
      outcome.status = step.status;
      part.remove_prefix(step.consumed);
      if (step.state != http1::BodyReader::State::kPayload) break;
      fuzz::Check(!step.payload.empty());
    }
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = fuzz::Input(data, size);
  const size_t piece = 1 + fuzz::TakeByte(input);
  const http1::BodyKind kind = static_cast<http1::BodyKind>(fuzz::TakeByte(input) % 4);
  const http1::BodyLimits limits{.body_bytes_max = 4096,
                                 .extension_bytes_max = 64,
                                 .trailer_bytes_max = 256,
                                 .trailer_fields_max = 8};
  http1::BodyReader reader, again;
  reader.Start(kind, 100, limits);
  again.Start(kind, 100, limits);
  const Outcome whole = Read(reader, input, std::max<size_t>(input.size(), 1));
  const Outcome pieces = Read(again, input, piece);
  fuzz::Check(whole.payload == pieces.payload && whole.consumed == pieces.consumed);
  fuzz::Check(whole.state == pieces.state && whole.status == pieces.status);
  fuzz::Check(whole.payload.size() <= 4096);
  if (kind == http1::BodyKind::kChunked && whole.state == http1::BodyReader::State::kDone) {
    wire::Buffer out;
    http1::ChunkedWriter::AppendChunk(out, whole.payload);
    http1::ChunkedWriter::AppendEnd(out, reader.trailers());
    http1::BodyReader third;
    third.Start(kind, 0);
    const Outcome rewritten = Read(third, out.View(), out.size());
    fuzz::Check(rewritten.payload == whole.payload && rewritten.consumed == out.size());
    fuzz::Check(third.trailers().size() == reader.trailers().size());
  }
  return 0;
}
