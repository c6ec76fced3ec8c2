// A strict parser for HTTP/1.x request heads (RFC 9110, 9112). It copies and allocates nothing:
// everything in RequestHead is a view into the buffer. What two implementations could read
// differently is refused: see ParseRequestHead.
//
//   http1::RequestHead head;               // about 4 KiB; keep one per connection
//   http1::HeadProgress progress;          // fresh for each head
//   http1::ParseOutcome outcome = http1::ParseRequestHead(in.View(), limits, head, &progress);
//   if (outcome.need_more()) return ReadMore();
//   if (outcome.error()) return AnswerAndClose(outcome.status, outcome.reason);
//
// Thread safety: pure functions over plain values.
#pragma once

#include <cstdint>
#include <string_view>

#include "wire/http1/fields.h"

namespace weir::http1 {

enum class Method : uint8_t {
  kOther,
  kGet,
  kHead,
  kPost,
  kPut,
  kDelete,
  kConnect,
  kOptions,
  kTrace,
  kPatch
};

enum class TargetForm : uint8_t {
  kOrigin,     // /path?query
  kAbsolute,   // http://host/path?query
  kAuthority,  // host:port, with CONNECT only
  kAsterisk,   // *, with OPTIONS only
};

struct RequestHead {
  Method method_id = Method::kOther;
  std::string_view method;  // As written; methods are case-sensitive.
  std::string_view target;  // As written.
  TargetForm target_form = TargetForm::kOrigin;
  std::string_view
      path;  // The raw path of the target: "/" at least for origin and absolute form, else empty.
  std::string_view query;  // What follows the '?', which it does not hold.
  bool has_query = false;
  // The authority of an absolute-form or authority-form target, else the Host field. As written,
  // port included; may be empty (and is when an HTTP/1.0 request names none).
  std::string_view host;
  int minor_version = 1;  // 0 or 1.

  FixedHeaders headers;

  bool keep_alive = true;  // What the client asks for: Connection, or the version's default.
  BodyKind body = BodyKind::kNone;
  int64_t content_length =
      0;  // When body is kLength; more than 0. 0 with an explicit Content-Length: 0.
  bool has_content_length = false;
  bool expect_continue = false;  // Expect: 100-continue, and a body is announced, and HTTP/1.1.
  bool upgrade = false;          // An Upgrade field, and Connection names it, and HTTP/1.1.
};

// Parses one head from the start of the buffer; bytes after it are left alone. One empty line
// before it is skipped and counts as consumed. `progress`, when given, makes repeated calls with a
// longer buffer (same bytes first) linear. The views in `out` are valid only after kComplete.
//
// Errors (status, and close): 400 malformed, or a shape that two readers could frame differently:
// Content-Length twice, as a list, signed, or with Transfer-Encoding; any Transfer-Encoding but a
// single "chunked", or one on HTTP/1.0; Host missing in 1.1, twice, malformed, or at odds with an
// absolute-form target; folded lines; a bare CR or LF; NUL and other control characters; white
// space before a colon, in a name or before the first field; an empty name. 414 target too long;
// 417 an Expect that is not 100-continue; 431 head too large or too many fields; 501 a method of
// more than 32 bytes; 505 a version other than 1.0 and 1.1.
ParseOutcome ParseRequestHead(std::string_view buffer, const HeadLimits& limits, RequestHead& out,
                              HeadProgress* progress = nullptr);

}  // namespace weir::http1
