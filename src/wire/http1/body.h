// Reads and writes the bodies of HTTP/1.x messages, piece by piece and without copying.
//
//   http1::BodyReader reader;
//   reader.Start(head.body, head.content_length);
//   for (;;) {
//     http1::BodyReader::Step step = reader.Feed(in.View());
//     Forward(step.payload);              // a view into what was fed; may be empty
//     in.Consume(step.consumed);
//     if (step.state != http1::BodyReader::State::kPayload) break;  // more input needed, done, or
//     an error
//   }
//
// Thread safety: none; one owner at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/buffer.h"
#include "wire/http1/fields.h"

namespace weir::http1 {

struct BodyLimits {
  int64_t body_bytes_max = INT64_MAX;  // Payload; beyond: 413.
  int64_t extension_bytes_max =
      16 * 1024;  // Chunk extensions of one body, all together; beyond: 400.
  int64_t trailer_bytes_max = 16 * 1024;  // Beyond: 431.
  size_t trailer_fields_max = 64;         // Beyond: 431.
};

class BodyReader {
 public:
  enum class State : uint8_t {
    kPayload,   // A piece of payload (never empty); call again with the rest of the input.
    kNeedMore,  // All input is consumed and the body goes on.
    kDone,      // The body ended; input after `consumed` belongs to the next message.
    kError,     // Answer with `status` and close (as a client: drop the connection).
  };
  struct Step {
    State state = State::kNeedMore;
    size_t consumed = 0;
    std::string_view payload;
    int status = 0;           // On an error: 400, 413 or 431.
    const char* reason = "";  // On an error; static storage.
  };

  // Begins a body; forgets the one before. content_length counts for kLength only.
  void Start(BodyKind kind, int64_t content_length, const BodyLimits& limits = {});

  // Takes a prefix of the input and says what it was. Ask again until it says other than kPayload.
  // After kDone or kError it repeats that answer and consumes nothing.
  Step Feed(std::string_view input);

  // The other side closed: kDone if that is how this body ends or it had ended, else kError ("body
  // cut short").
  Step FinishInput();

  bool done() const { return phase_ == Phase::kDone; }
  BodyKind kind() const { return kind_; }
  int64_t payload_bytes() const { return payload_bytes_; }  // Payload given out so far.

  // After kDone: the trailer fields, without those that a trailer must not carry (framing, routing,
  // authentication, content and cache control; RFC 9110, 6.5.1). The views live until the next
  // Start.
  const std::vector<HeaderField>& trailers() const { return trailers_; }
  size_t dropped_trailers() const { return dropped_trailers_; }

 private:
  enum class Phase : uint8_t {
    kPayload,    // Of the body or of a chunk.
    kSizeFirst,  // Before the first digit of a chunk size.
    kSize,       // Within the digits.
    kExtension,  // After a ';'.
    kSizeLf,     // After the CR that ends a size line.
    kDataCr,     // After a chunk's payload.
    kDataLf,
    kTrailer,
    kDone,
    kError,
  };

  // One byte of framing. False when the machine stops here: done or failed.
  bool TakeFramingByte(char byte);
  bool EndSizeLine();
  bool TakeTrailerByte(char byte);
  bool FinishTrailer();
  bool Fail(int status, const char* reason);  // Always false.
  Step FeedPayload(std::string_view input, size_t framing_bytes);

  BodyKind kind_ = BodyKind::kNone;
  Phase phase_ = Phase::kDone;
  int status_ = 0;
  const char* reason_ = "";
  BodyLimits limits_;
  int64_t left_bytes_ = 0;  // Of the body or of the chunk.
  int size_digits_ = 0;
  int64_t payload_bytes_ = 0;
  int64_t extension_bytes_ = 0;
  size_t dropped_trailers_ = 0;
  std::string trailer_block_;
  std::vector<HeaderField> trailers_;
};

// Encodes chunked bodies into an output buffer.
class ChunkedWriter {
 public:
  // The size line of a chunk of that many bytes, for callers that write the payload themselves;
  // then AppendChunkEnd. payload_bytes > 0: a size of 0 would end the body.
  static void AppendChunkBegin(wire::Buffer& out, size_t payload_bytes);
  static void AppendChunkEnd(wire::Buffer& out) { out.Append("\r\n"); }
  // A whole chunk; nothing for an empty payload.
  static void AppendChunk(wire::Buffer& out, std::string_view payload);
  // The last chunk, trailers and the empty line. Fields that are not valid are left out.
  static void AppendEnd(wire::Buffer& out, const std::vector<HeaderField>& trailers = {});
};

}  // namespace weir::http1
