#include "net/http2_answer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "wire/http1/hop_by_hop.h"
#include "wire/http1/response_head.h"

namespace weir::net {
namespace {

// Less than libnghttp2 sends in one header block (64 KiB), with what it adds to each field.
constexpr http1::HeadLimits kHeadLimits = {.bytes_max = 56 * 1024,
                                           .fields_max = http1::FixedHeaders::kCapacity};

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

}  // namespace

// A copy in lower case, as names of HTTP/2 are (RFC 9113, 8.2). REQUIRES: room in names_.
std::string_view Http2Answer::Lowered(std::string_view name) {
  char* const copy = names_.Prepare(name.size());
  std::ranges::transform(name, copy, Lower);
  names_.Commit(name.size());
  return {copy, name.size()};
}

size_t Http2Answer::Append(std::string_view bytes) {
  if (complete()) return bytes.size();  // Nothing can follow; nobody reads it.
  bytes_.Consume(std::exchange(head_bytes_, 0));
  const std::string_view taken = bytes.substr(0, room());
  bytes_.Append(taken);
  return taken.size();
}

Http2Answer::Head Http2Answer::TakeHead(std::vector<http2::Header>& fields) {
  fields.clear();
  bytes_.Consume(std::exchange(head_bytes_, 0));
  if (has_head_ || bytes_.empty()) return Head::kNone;
  http1::ResponseHead head;
  const http1::ParseOutcome parsed =
      http1::ParseResponseHead(bytes_.View(), kHeadLimits, method_, head, &progress_);
  if (parsed.need_more()) return Head::kNone;
  if (parsed.error() || head.switching_protocols) return Head::kMalformed;
  progress_ = {};
  head_bytes_ = parsed.consumed;
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  fields.push_back({":status", bytes_.View().substr(kVersion.size(), 3)});
  names_.Clear();
  names_.Reserve(parsed.consumed);
  const http1::HopByHop hop(head.headers);
  for (const http1::HeaderField& field : head.headers) {
    if (!hop.Stops(field)) fields.push_back({Lowered(field.name), field.value});
  }
  if (head.interim()) return Head::kInterim;
  has_head_ = true;
  reader_.Start(head.body, head.content_length);
  return Head::kFinal;
}

// What of the body fits. Stops early where the bytes or the body end.
size_t Http2Answer::FillFrom(std::span<char> room) {
  size_t filled = 0;
  while (!reader_.done() && !bytes_.empty() && filled < room.size()) {
    const http1::BodyReader::Step step =
        reader_.Feed(bytes_.View().substr(0, room.size() - filled));
    if (step.state == http1::BodyReader::State::kError) break;
    if (!step.payload.empty())
      std::memcpy(room.data() + filled, step.payload.data(), step.payload.size());
    filled += step.payload.size();
    bytes_.Consume(step.consumed);
  }
  return filled;
}

http2::Piece Http2Answer::Read(std::span<char> room) {
  using Then = http2::Piece::Then;
  bytes_.Consume(std::exchange(head_bytes_, 0));
  http2::Piece piece{.bytes = FillFrom(room), .then = Then::kMore};
  if (reader_.done()) {
    piece.then = reader_.trailers().empty() ? Then::kEnd : Then::kTrailers;
  } else if (piece.bytes > 0) {
    return piece;
  } else if (reader_.Feed({}).state == http1::BodyReader::State::kError) {
    piece.then = Then::kAbort;
  } else if (!input_ended_ || !bytes_.empty()) {
    piece.then = Then::kLater;
  } else if (reader_.FinishInput().state == http1::BodyReader::State::kDone) {
    piece.then = Then::kEnd;
  } else {
    piece.then = Then::kAbort;
  }
  return piece;
}

std::vector<http2::Header> Http2Answer::trailers() {
  std::vector<http2::Header> fields;
  size_t name_bytes = 0;
  for (const http1::HeaderField& field : reader_.trailers()) name_bytes += field.name.size();
  names_.Clear();
  names_.Reserve(name_bytes);
  for (const http1::HeaderField& field : reader_.trailers()) {
    fields.push_back({Lowered(field.name), field.value});
  }
  return fields;
}

}  // namespace weir::net
