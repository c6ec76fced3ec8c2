#include "wire/http1/body.h"

#include <algorithm>
#include <charconv>

#include "wire/http1/field_line.h"
#include "wire/http1/response_writer.h"

namespace weir::http1 {
namespace {

constexpr int kSizeDigitsMax = 15;  // So that a chunk size always fits 63 bits.

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  if (lower >= 'a' && lower <= 'f') return lower - 'a' + 10;
  return -1;
}

// Fields that change framing, routing, identity or the handling of the content must not come
// after it (RFC 9110, 6.5.1).
bool MayTrail(const HeaderField& field) {
  switch (field.id) {
    case FieldId::kOther: {
      static constexpr std::string_view kForbidden[] = {"age",
                                                        "content-range",
                                                        "content-location",
                                                        "expires",
                                                        "if-match",
                                                        "if-none-match",
                                                        "if-modified-since",
                                                        "if-unmodified-since",
                                                        "if-range",
                                                        "location",
                                                        "max-forwards",
                                                        "pragma",
                                                        "range",
                                                        "vary",
                                                        "warning",
                                                        "www-authenticate",
                                                        "authentication-info",
                                                        "content-language",
                                                        "upgrade-insecure-requests"};
      return std::none_of(std::begin(kForbidden), std::end(kForbidden),
                          [&](std::string_view name) { return EqualIgnoreCase(field.name, name); });
    }
    case FieldId::kTraceparent:
    case FieldId::kXRequestId:
      return true;
    default:
      return false;
  }
}

}  // namespace

void BodyReader::Start(BodyKind kind, int64_t content_length, const BodyLimits& limits) {
  kind_ = kind;
  limits_ = limits;
  status_ = 0;
  reason_ = "";
  left_bytes_ = kind == BodyKind::kLength ? content_length : 0;
  size_digits_ = 0;
  payload_bytes_ = extension_bytes_ = 0;
  dropped_trailers_ = 0;
  trailer_block_.clear();
  trailers_.clear();
  switch (kind) {
    case BodyKind::kNone:
      phase_ = Phase::kDone;
      break;
    case BodyKind::kLength:
      phase_ = left_bytes_ > 0 ? Phase::kPayload : Phase::kDone;
      if (left_bytes_ > limits.body_bytes_max) Fail(413, "a body that is too large");
      break;
    case BodyKind::kChunked:
      phase_ = Phase::kSizeFirst;
      break;
    case BodyKind::kUntilClose:
      phase_ = Phase::kPayload;
      left_bytes_ = limits.body_bytes_max;
      break;
  }
}

BodyReader::Step BodyReader::Feed(std::string_view input) {
  size_t at = 0;
  while (phase_ != Phase::kPayload && at < input.size()) {
    if (phase_ == Phase::kDone || phase_ == Phase::kError) break;
    ++at;
    if (!TakeFramingByte(input[at - 1])) break;
  }
  switch (phase_) {
    case Phase::kPayload:
      return FeedPayload(input, at);
    case Phase::kDone:
      return {State::kDone, at};
    case Phase::kError:
      return {State::kError, at, {}, status_, reason_};
    default:
      return {State::kNeedMore, at};
  }
}

BodyReader::Step BodyReader::FeedPayload(std::string_view input, size_t framing_bytes) {
  const size_t available = input.size() - framing_bytes;
  if (available == 0) return {State::kNeedMore, framing_bytes};
  const size_t take =
      static_cast<size_t>(std::min<uint64_t>(available, static_cast<uint64_t>(left_bytes_)));
  if (take == 0) {  // kUntilClose only: every other kind leaves this phase at 0.
    Fail(413, "a body that is too large");
    return {State::kError, framing_bytes, {}, status_, reason_};
  }
  left_bytes_ -= static_cast<int64_t>(take);
  payload_bytes_ += static_cast<int64_t>(take);
  if (left_bytes_ == 0) {
    if (kind_ == BodyKind::kLength) phase_ = Phase::kDone;
    if (kind_ == BodyKind::kChunked) phase_ = Phase::kDataCr;
  }
  return {State::kPayload, framing_bytes + take, input.substr(framing_bytes, take)};
}

BodyReader::Step BodyReader::FinishInput() {
  if (kind_ == BodyKind::kUntilClose && phase_ == Phase::kPayload) phase_ = Phase::kDone;
  if (phase_ == Phase::kDone) return {State::kDone, 0};
  if (phase_ != Phase::kError) Fail(400, "a body that was cut short");
  return {State::kError, 0, {}, status_, reason_};
}

bool BodyReader::Fail(int status, const char* reason) {
  phase_ = Phase::kError;
  status_ = status;
  reason_ = reason;
  return false;
}

bool BodyReader::TakeFramingByte(char byte) {
  switch (phase_) {
    case Phase::kSizeFirst:
    case Phase::kSize: {
      const int digit = HexDigit(byte);
      if (digit >= 0) {
        if (++size_digits_ > kSizeDigitsMax) return Fail(400, "a chunk size that is too large");
        left_bytes_ = left_bytes_ * 16 + digit;
        phase_ = Phase::kSize;
        return true;
      }
      if (phase_ == Phase::kSizeFirst) return Fail(400, "a bad chunk size");
      if (byte == '\r') {
        phase_ = Phase::kSizeLf;
        return true;
      }
      // White space before a ';' is grammar that only lenient readers need; it has been used to
      // smuggle, so it is refused.
      if (byte != ';') return Fail(400, "a bad chunk size");
      phase_ = Phase::kExtension;
      [[fallthrough]];
    }
    case Phase::kExtension:
      if (byte == '\r') {
        phase_ = Phase::kSizeLf;
        return true;
      }
      if (!internal::IsValueByte(byte)) return Fail(400, "a bad chunk extension");
      if (++extension_bytes_ > limits_.extension_bytes_max) {
        return Fail(400, "chunk extensions that are too large");
      }
      return true;
    case Phase::kSizeLf:
      if (byte != '\n') return Fail(400, "a bad chunk size line");
      return EndSizeLine();
    case Phase::kDataCr:
      if (byte != '\r') return Fail(400, "a chunk that does not end where its size says");
      phase_ = Phase::kDataLf;
      return true;
    case Phase::kDataLf:
      if (byte != '\n') return Fail(400, "a chunk that does not end where its size says");
      phase_ = Phase::kSizeFirst;
      size_digits_ = 0;
      return true;
    case Phase::kTrailer:
      return TakeTrailerByte(byte);
    default:
      return false;
  }
}

bool BodyReader::EndSizeLine() {
  if (left_bytes_ == 0) {
    phase_ = Phase::kTrailer;
    return true;
  }
  if (left_bytes_ > limits_.body_bytes_max - payload_bytes_) {
    return Fail(413, "a body that is too large");
  }
  phase_ = Phase::kPayload;
  return true;
}

bool BodyReader::TakeTrailerByte(char byte) {
  // The empty line that ends the trailers is no part of them, so it does not count.
  if (static_cast<int64_t>(trailer_block_.size()) >= limits_.trailer_bytes_max + 2) {
    return Fail(431, "trailers that are too large");
  }
  trailer_block_.push_back(byte);
  if (byte != '\n') return true;
  const size_t size = trailer_block_.size();
  if (size < 2 || trailer_block_[size - 2] != '\r') {
    return Fail(400, "a line feed without a carriage return");
  }
  if (size == 2 || trailer_block_[size - 3] == '\n') return FinishTrailer();
  return true;
}

bool BodyReader::FinishTrailer() {
  const char* at = trailer_block_.data();
  const char* const end = at + trailer_block_.size();
  HeaderField field;
  for (size_t fields = 0;; ++fields) {
    const FieldLine line = ReadFieldLine(at, end, fields == 0, field);
    if (line.kind == FieldLine::Kind::kEnd) break;
    if (line.kind != FieldLine::Kind::kField) {
      return Fail(400, line.kind == FieldLine::Kind::kError ? line.reason : "a malformed trailer");
    }
    if (fields == limits_.trailer_fields_max) return Fail(431, "too many trailers");
    at = line.next;
    if (MayTrail(field)) {
      trailers_.push_back(field);
    } else {
      ++dropped_trailers_;
    }
  }
  phase_ = Phase::kDone;
  return false;
}

void ChunkedWriter::AppendChunkBegin(wire::Buffer& out, size_t payload_bytes) {
  char* const to = out.Prepare(18);
  char* const end = std::to_chars(to, to + 16, payload_bytes, 16).ptr;
  end[0] = '\r';
  end[1] = '\n';
  out.Commit(static_cast<size_t>(end - to) + 2);
}

void ChunkedWriter::AppendChunk(wire::Buffer& out, std::string_view payload) {
  if (payload.empty()) return;
  AppendChunkBegin(out, payload.size());
  out.Append(payload);
  AppendChunkEnd(out);
}

void ChunkedWriter::AppendEnd(wire::Buffer& out, const std::vector<HeaderField>& trailers) {
  out.Append("0\r\n");
  for (const HeaderField& field : trailers) AppendField(out, field.name, field.value);
  out.Append("\r\n");
}

}  // namespace weir::http1
