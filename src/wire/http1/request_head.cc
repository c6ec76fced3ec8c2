#include "wire/http1/request_head.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "wire/http1/authority.h"
#include "wire/http1/field_line.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace weir::http1 {
namespace {

constexpr ptrdiff_t kMethodBytesMax = 32;

Method IdentifyMethod(std::string_view method) {
  switch (method.size()) {
    case 3:
      if (method == "GET") return Method::kGet;
      if (method == "PUT") return Method::kPut;
      break;
    case 4:
      if (method == "POST") return Method::kPost;
      if (method == "HEAD") return Method::kHead;
      break;
    case 5:
      if (method == "PATCH") return Method::kPatch;
      if (method == "TRACE") return Method::kTrace;
      break;
    case 6:
      if (method == "DELETE") return Method::kDelete;
      break;
    case 7:
      if (method == "OPTIONS") return Method::kOptions;
      if (method == "CONNECT") return Method::kConnect;
      break;
    default:
      break;
  }
  return Method::kOther;
}

// The first byte that cannot stand in a target: white space, '#', control or beyond ASCII.
const char* SkipTargetBytes(const char* at, const char* end) {
#if defined(__SSE2__)
  const __m128i space = _mm_set1_epi8(' ');
  const __m128i del = _mm_set1_epi8(0x7f);
  const __m128i hash = _mm_set1_epi8('#');
  for (; end - at >= 16; at += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    // Signed: bytes beyond ASCII are below the space as well.
    const __m128i good = _mm_cmpgt_epi8(bytes, space);
    const __m128i bad = _mm_or_si128(_mm_cmpeq_epi8(bytes, del), _mm_cmpeq_epi8(bytes, hash));
    const unsigned mask = static_cast<unsigned>(_mm_movemask_epi8(_mm_andnot_si128(bad, good)));
    if (mask != 0xffff) return at + std::countr_one(mask);
  }
#endif
  while (at != end && *at > ' ' && *at != 0x7f && *at != '#') ++at;
  return at;
}

void SplitQuery(std::string_view text, RequestHead& out) {
  const size_t mark = text.find('?');
  out.path = text.substr(0, mark);
  out.has_query = mark != std::string_view::npos;
  out.query = out.has_query ? text.substr(mark + 1) : std::string_view();
}

// Tells the forms of a target apart; what is wrong with it, or nullptr.
const char* ReadTarget(std::string_view target, RequestHead& out) {
  out.target = target;
  out.path = out.query = out.host = std::string_view();
  out.has_query = false;
  if (out.method_id == Method::kConnect) {
    if (!IsAuthorityWithPort(target)) return "a CONNECT target that is not host:port";
    out.target_form = TargetForm::kAuthority;
    out.host = target;
    return nullptr;
  }
  if (target.front() == '/') [[likely]] {
    out.target_form = TargetForm::kOrigin;
    SplitQuery(target, out);
    return nullptr;
  }
  if (target == "*") {
    if (out.method_id != Method::kOptions) return "a target of * with a method other than OPTIONS";
    out.target_form = TargetForm::kAsterisk;
    return nullptr;
  }
  const size_t colon = target.find("://");
  if (colon == std::string_view::npos || !(EqualIgnoreCase(target.substr(0, colon), "http") ||
                                           EqualIgnoreCase(target.substr(0, colon), "https"))) {
    return "a target that is neither a path nor an http URI";
  }
  const std::string_view rest = target.substr(colon + 3);
  const size_t authority_end = std::min(rest.find_first_of("/?"), rest.size());
  if (!IsAuthority(rest.substr(0, authority_end))) return "a target with a bad authority";
  out.target_form = TargetForm::kAbsolute;
  out.host = rest.substr(0, authority_end);
  SplitQuery(rest.substr(authority_end), out);
  if (out.path.empty()) out.path = "/";
  return nullptr;
}

// Reads "HTTP/1.x\r\n". Complete(consumed) counts from `at`.
ParseOutcome ReadVersionAndEnd(const char* at, const char* end, int& minor_version) {
  constexpr std::string_view kPattern = "HTTP/d.d\r\n";
  const size_t available = static_cast<size_t>(end - at);
  if (available >= kPattern.size() && std::memcmp(at, "HTTP/1.1\r\n", kPattern.size()) == 0)
      [[likely]] {
    minor_version = 1;
    return ParseOutcome::Complete(kPattern.size());
  }
  for (size_t i = 0; i < kPattern.size(); ++i) {
    if (i == available) return ParseOutcome::NeedMore();
    const bool matches = kPattern[i] == 'd' ? (at[i] >= '0' && at[i] <= '9') : at[i] == kPattern[i];
    if (!matches) return ParseOutcome::Fail(400, "a malformed request line");
    if (i == 7 && (at[5] != '1' || at[7] > '1')) {
      return ParseOutcome::Fail(505, "an HTTP version other than 1.0 and 1.1");
    }
  }
  minor_version = at[7] - '0';
  return ParseOutcome::Complete(kPattern.size());
}

// The request line, from `at`. Complete(consumed) counts from `at`.
ParseOutcome ReadRequestLine(const char* at, const char* end, size_t target_bytes_max,
                             RequestHead& out) {
  const char* const line = at;
  const char* const method_end = at + std::min<ptrdiff_t>(end - at, kMethodBytesMax + 1);
  while (at != method_end && internal::IsTokenByte(*at)) ++at;
  if (at - line > kMethodBytesMax) return ParseOutcome::Fail(501, "a method that is too long");
  if (at == end) return ParseOutcome::NeedMore();
  if (*at != ' ' || at == line) return ParseOutcome::Fail(400, "a malformed request line");
  out.method = std::string_view(line, static_cast<size_t>(at - line));
  out.method_id = IdentifyMethod(out.method);

  const char* const target = ++at;
  const size_t room = static_cast<size_t>(end - at);
  at = SkipTargetBytes(at, at + std::min(room, target_bytes_max + 1));
  const size_t target_bytes = static_cast<size_t>(at - target);
  if (target_bytes > target_bytes_max) return ParseOutcome::Fail(414, "a target that is too long");
  if (at == end) return ParseOutcome::NeedMore();
  if (*at != ' ') return ParseOutcome::Fail(400, "a character that no target can hold");
  if (target_bytes == 0) return ParseOutcome::Fail(400, "an empty target");
  if (const char* wrong = ReadTarget(std::string_view(target, target_bytes), out)) {
    return ParseOutcome::Fail(400, wrong);
  }
  ++at;
  const ParseOutcome version = ReadVersionAndEnd(at, end, out.minor_version);
  if (!version.complete()) return version;
  return ParseOutcome::Complete(static_cast<size_t>(at - line) + version.consumed);
}

// What the fields say together, once all are read; what is wrong, or nullptr.
const char* Conclude(const Framing& framing, bool has_host, std::string_view host,
                     bool expect_continue, RequestHead& out) {
  if (!has_host && out.minor_version == 1) return "no Host";
  if (out.target_form == TargetForm::kAbsolute || out.target_form == TargetForm::kAuthority) {
    if (has_host && !EqualIgnoreCase(host, out.host)) return "a Host at odds with the target";
  } else {
    out.host = host;
  }
  out.has_content_length = framing.has_content_length;
  out.content_length = framing.content_length;
  out.body = framing.chunked              ? BodyKind::kChunked
             : framing.content_length > 0 ? BodyKind::kLength
                                          : BodyKind::kNone;
  out.keep_alive = !framing.close && (out.minor_version == 1 || framing.keep_alive);
  out.expect_continue = expect_continue && out.minor_version == 1 && out.body != BodyKind::kNone;
  out.upgrade = framing.upgrade_field && framing.upgrade_named && out.minor_version == 1;
  return nullptr;
}

ParseOutcome Parse(std::string_view head, const HeadLimits& limits, RequestHead& out) {
  const char* const begin = head.data();
  const char* const end = begin + head.size();
  const char* at = begin;
  if (at != end && *at == '\r') {  // One empty line before a request is forgiven (RFC 9112, 2.2).
    if (end - at < 2) return ParseOutcome::NeedMore();
    if (at[1] != '\n') return ParseOutcome::Fail(400, "a malformed request line");
    at += 2;
  }
  const ParseOutcome line = ReadRequestLine(at, end, limits.target_bytes_max, out);
  if (!line.complete()) return line;
  at += line.consumed;

  out.headers.Clear();
  const size_t fields_max = std::min(limits.fields_max, FixedHeaders::kCapacity);
  Framing framing;
  HeaderField field;
  bool has_host = false;
  bool expect_continue = false;
  std::string_view host;
  for (;;) {
    const FieldLine read = ReadFieldLine(at, end, out.headers.empty(), field);
    if (read.kind != FieldLine::Kind::kField) {
      if (read.kind == FieldLine::Kind::kNeedMore) return ParseOutcome::NeedMore();
      if (read.kind == FieldLine::Kind::kError) return ParseOutcome::Fail(400, read.reason);
      at = read.next;
      break;
    }
    at = read.next;
    if (out.headers.size() == fields_max) return ParseOutcome::Fail(431, "too many fields");
    out.headers.Add(field.name, field.value, field.id);
    switch (field.id) {
      case FieldId::kHost:
        if (has_host) return ParseOutcome::Fail(400, "more than one Host");
        if (!field.value.empty() && !IsAuthority(field.value)) {
          return ParseOutcome::Fail(400, "a bad Host");
        }
        has_host = true;
        host = field.value;
        break;
      case FieldId::kExpect:
        if (!EqualIgnoreCase(field.value, "100-continue")) {
          return ParseOutcome::Fail(417, "an Expect other than 100-continue");
        }
        expect_continue = true;
        break;
      case FieldId::kContentLength:
      case FieldId::kTransferEncoding:
      case FieldId::kConnection:
      case FieldId::kUpgrade:
        if (const char* wrong = framing.Take(field, out.minor_version)) {
          return ParseOutcome::Fail(400, wrong);
        }
        break;
      default:
        break;
    }
  }
  if (const char* wrong = Conclude(framing, has_host, host, expect_continue, out)) {
    return ParseOutcome::Fail(400, wrong);
  }
  return ParseOutcome::Complete(static_cast<size_t>(at - begin));
}

}  // namespace

ParseOutcome ParseRequestHead(std::string_view buffer, const HeadLimits& limits, RequestHead& out,
                              HeadProgress* progress) {
  const std::string_view head = buffer.substr(0, limits.bytes_max);
  if (progress == nullptr || head.size() == limits.bytes_max || WorthParsing(head, *progress)) {
    const ParseOutcome outcome = Parse(head, limits, out);
    if (!outcome.need_more()) return outcome;
  }
  // A head of bytes_max bytes that is not whole is longer than that.
  if (head.size() == limits.bytes_max) {
    const bool in_first_line = head.find('\n', 2) == std::string_view::npos;
    return in_first_line ? ParseOutcome::Fail(414, "a request line that is too long")
                         : ParseOutcome::Fail(431, "a head that is too large");
  }
  if (progress != nullptr) progress->scanned_bytes = head.size();
  return ParseOutcome::NeedMore();
}

}  // namespace weir::http1
