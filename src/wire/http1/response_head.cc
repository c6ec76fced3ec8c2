#include "wire/http1/response_head.h"

#include <algorithm>

#include "wire/http1/field_line.h"

namespace weir::http1 {
namespace {

ParseOutcome Bad(const char* reason) { return ParseOutcome::Fail(502, reason); }

// "HTTP/1.x NNN reason\r\n"; the space and the reason may be absent, as some servers have it.
ParseOutcome ReadStatusLine(std::string_view head, ResponseHead& out) {
  constexpr std::string_view kPattern = "HTTP/1.d ddd";
  for (size_t i = 0; i < kPattern.size(); ++i) {
    if (i == head.size()) return ParseOutcome::NeedMore();
    const char c = head[i];
    const bool matches = kPattern[i] == 'd' ? (c >= '0' && c <= '9') : c == kPattern[i];
    if (!matches || (i == 7 && c > '1') || (i == 9 && c == '0')) {
      return Bad("a malformed status line");
    }
  }
  out.minor_version = head[7] - '0';
  out.status = (head[9] - '0') * 100 + (head[10] - '0') * 10 + (head[11] - '0');
  const char* const end = head.data() + head.size();
  const char* at = head.data() + kPattern.size();
  if (at == end) return ParseOutcome::NeedMore();
  if (*at != ' ' && *at != '\r') return Bad("a malformed status line");
  const char* const reason = *at == ' ' ? ++at : at;
  at = internal::SkipValueBytes(at, end);
  if (at == end || (*at == '\r' && end - at < 2)) return ParseOutcome::NeedMore();
  if (at[0] != '\r' || at[1] != '\n') return Bad("a malformed status line");
  out.reason = std::string_view(reason, static_cast<size_t>(at - reason));
  return ParseOutcome::Complete(static_cast<size_t>(at + 2 - head.data()));
}

// How the body is framed; what is wrong, or nullptr.
const char* Conclude(const Framing& framing, Method request_method, ResponseHead& out) {
  const bool informational = out.status < 200;
  const bool tunnel = request_method == Method::kConnect && out.status / 100 == 2;
  if (informational || out.status == 204) {
    if (framing.chunked) return "Transfer-Encoding where no body can be";
    if (framing.content_length > 0) return "a Content-Length where no body can be";
  }
  out.has_content_length = framing.has_content_length;
  out.content_length = framing.content_length;
  out.switching_protocols = out.status == 101;
  if (informational || out.status == 204 || out.status == 304 || tunnel ||
      request_method == Method::kHead) {
    out.body = BodyKind::kNone;
  } else if (framing.chunked) {
    out.body = BodyKind::kChunked;
  } else if (framing.has_content_length) {
    out.body = framing.content_length > 0 ? BodyKind::kLength : BodyKind::kNone;
  } else {
    out.body = BodyKind::kUntilClose;
  }
  out.keep_alive = out.body != BodyKind::kUntilClose && !tunnel && !out.switching_protocols &&
                   !framing.close && (out.minor_version == 1 || framing.keep_alive);
  return nullptr;
}

ParseOutcome Parse(std::string_view head, const HeadLimits& limits, Method request_method,
                   ResponseHead& out) {
  const ParseOutcome line = ReadStatusLine(head, out);
  if (!line.complete()) return line;
  const char* const end = head.data() + head.size();
  const char* at = head.data() + line.consumed;

  out.headers.Clear();
  const size_t fields_max = std::min(limits.fields_max, FixedHeaders::kCapacity);
  Framing framing;
  HeaderField field;
  for (;;) {
    const FieldLine read = ReadFieldLine(at, end, out.headers.empty(), field);
    if (read.kind == FieldLine::Kind::kNeedMore) return ParseOutcome::NeedMore();
    if (read.kind == FieldLine::Kind::kError) return Bad(read.reason);
    at = read.next;
    if (read.kind == FieldLine::Kind::kEnd) break;
    if (out.headers.size() == fields_max) return Bad("too many fields");
    out.headers.Add(field.name, field.value, field.id);
    if (const char* wrong = framing.Take(field, out.minor_version)) return Bad(wrong);
  }
  if (const char* wrong = Conclude(framing, request_method, out)) return Bad(wrong);
  return ParseOutcome::Complete(static_cast<size_t>(at - head.data()));
}

}  // namespace

ParseOutcome ParseResponseHead(std::string_view buffer, const HeadLimits& limits,
                               Method request_method, ResponseHead& out, HeadProgress* progress) {
  const std::string_view head = buffer.substr(0, limits.bytes_max);
  if (progress == nullptr || head.size() == limits.bytes_max || WorthParsing(head, *progress)) {
    const ParseOutcome outcome = Parse(head, limits, request_method, out);
    if (!outcome.need_more()) return outcome;
  }
  if (head.size() == limits.bytes_max) return Bad("a head that is too large");
  if (progress != nullptr) progress->scanned_bytes = head.size();
  return ParseOutcome::NeedMore();
}

}  // namespace weir::http1
