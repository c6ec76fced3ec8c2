// A strict parser for HTTP/1.x response heads (RFC 9110, 9112), for what an upstream answers.
// Copies and allocates nothing.
//
//   http1::ResponseHead head;
//   http1::ParseOutcome outcome = http1::ParseResponseHead(in.View(), limits, http1::Method::kGet,
//   head, &progress); if (outcome.error()) return AnswerBadGateway(outcome.reason); if
//   (head.interim()) continue;  // 100, 103: another head follows
//
// Thread safety: pure functions over plain values.
#pragma once

#include <cstdint>
#include <string_view>

#include "wire/http1/fields.h"
#include "wire/http1/request_head.h"

namespace weir::http1 {

struct ResponseHead {
  int status = 0;           // 100 to 999.
  std::string_view reason;  // May be empty.
  int minor_version = 1;    // 0 or 1.

  FixedHeaders headers;

  bool keep_alive =
      true;  // The connection may be used again once the body is read (false with kUntilClose).
  BodyKind body = BodyKind::kNone;
  int64_t content_length = 0;  // As announced, also where no body follows (HEAD, 304).
  bool has_content_length = false;
  bool switching_protocols = false;  // 101: the connection is a tunnel from here on.

  // 1xx other than 101: the real answer follows.
  bool interim() const { return status < 200 && status != 101; }
};

// Parses one head from the start of the buffer. `request_method` is what it answers: after HEAD no
// body follows, after CONNECT with 2xx a tunnel does (kNone). Bodies of 1xx, 204 and 304 are kNone.
// Errors: always status 502: malformed, too large, or framed ambiguously (as in ParseRequestHead;
// also Transfer-Encoding on HTTP/1.0, or on 1xx or 204).
ParseOutcome ParseResponseHead(std::string_view buffer, const HeadLimits& limits,
                               Method request_method, ResponseHead& out,
                               HeadProgress* progress = nullptr);

}  // namespace weir::http1
