#include "wire/http1/response_head.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::http1 {
namespace {

ResponseHead Accepted(const std::string& text, Method method = Method::kGet) {
  ResponseHead head;
  const ParseOutcome outcome = ParseResponseHead(text, HeadLimits(), method, head);
  EXPECT_TRUE(outcome.complete()) << text << ": " << outcome.reason;
  return head;
}

std::string Reason(const std::string& text, Method method = Method::kGet) {
  ResponseHead head;
  const ParseOutcome outcome = ParseResponseHead(text, HeadLimits(), method, head);
  if (outcome.error()) {
    EXPECT_EQ(outcome.status, 502);
  }
  return outcome.error() ? outcome.reason : "";
}

TEST(ResponseHead, ReadsATypicalAnswer) {
  const std::string text =
      "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\nRetry-After: 3\r\n\r\nhi";
  ResponseHead head;
  const ParseOutcome outcome = ParseResponseHead(text, HeadLimits(), Method::kGet, head);
  ASSERT_TRUE(outcome.complete());
  EXPECT_EQ(outcome.consumed, text.size() - 2);
  EXPECT_EQ(head.status, 429);
  EXPECT_EQ(head.reason, "Too Many Requests");
  EXPECT_EQ(head.body, BodyKind::kLength);
  EXPECT_EQ(head.content_length, 2);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_EQ(head.headers.Value(FieldId::kRetryAfter), "3");
}

TEST(ResponseHead, TellsHowTheBodyIsFramed) {
  EXPECT_EQ(Accepted("HTTP/1.1 200 OK\r\n\r\n").body, BodyKind::kUntilClose);
  EXPECT_FALSE(Accepted("HTTP/1.1 200 OK\r\n\r\n").keep_alive);
  EXPECT_EQ(Accepted("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").body,
            BodyKind::kChunked);
  EXPECT_EQ(Accepted("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").body, BodyKind::kNone);
  const ResponseHead to_head =
      Accepted("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Method::kHead);
  EXPECT_EQ(to_head.body, BodyKind::kNone);
  EXPECT_EQ(to_head.content_length, 5);
  EXPECT_TRUE(to_head.keep_alive);
  EXPECT_EQ(Accepted("HTTP/1.1 200 OK\r\n\r\n", Method::kHead).body, BodyKind::kNone);
  EXPECT_EQ(Accepted("HTTP/1.1 204 No Content\r\n\r\n").body, BodyKind::kNone);
  EXPECT_EQ(Accepted("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n").body,
            BodyKind::kNone);
  EXPECT_EQ(Accepted("HTTP/1.1 200 OK\r\n\r\n", Method::kConnect).body, BodyKind::kNone);
  EXPECT_TRUE(Accepted("HTTP/1.1 100 Continue\r\n\r\n").interim());
  const ResponseHead tunnel =
      Accepted("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n");
  EXPECT_TRUE(tunnel.switching_protocols);
  EXPECT_FALSE(tunnel.interim());
  EXPECT_FALSE(tunnel.keep_alive);
}

TEST(ResponseHead, AcceptsAnAbsentReason) {
  EXPECT_EQ(Accepted("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n").reason, "");
  EXPECT_EQ(Accepted("HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n").reason, "");
  EXPECT_FALSE(Accepted("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n").keep_alive);
}

TEST(ResponseHead, Case86_AmbiguousFramingIsRefused) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  EXPECT_EQ(Reason(ok + "Content-Length: 1\r\nContent-Length: 1\r\n\r\n"),
            "more than one Content-Length");
  EXPECT_EQ(Reason(ok + "Content-Length: 1, 1\r\n\r\n"), "a bad Content-Length");
  EXPECT_EQ(Reason(ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "both Transfer-Encoding and Content-Length");
  EXPECT_EQ(Reason(ok + "Transfer-Encoding: gzip, chunked\r\n\r\n"),
            "a Transfer-Encoding other than chunked");
  EXPECT_EQ(Reason("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "Transfer-Encoding in HTTP/1.0");
  EXPECT_EQ(Reason("HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "Transfer-Encoding where no body can be");
  EXPECT_EQ(Reason("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"),
            "a Content-Length where no body can be");
  EXPECT_EQ(Reason("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"), "");
  EXPECT_EQ(Reason("HTTP/1.1 100 Continue\r\nContent-Length: 5\r\n\r\n"),
            "a Content-Length where no body can be");
  EXPECT_EQ(Reason(ok + "X: a\r\n b\r\n\r\n"), "a folded field line");
  EXPECT_EQ(Reason(ok + "X : a\r\n\r\n"), "white space before the colon of a field");
  EXPECT_EQ(Reason("HTTP/1.1 200 OK\nX: a\n\n"), "a malformed status line");
}

TEST(ResponseHead, RefusesMalformedStatusLines) {
  for (const char* line :
       {"HTTP/1.1  200 OK", "HTTP/1.1 99 OK", "HTTP/1.1 099 OK", "HTTP/2.0 200 OK",
        "HTTP/1.2 200 OK", "http/1.1 200 OK", "HTTP/1.1 2000 OK", "200 OK", "ICY 200",
        "HTTP/1.1 200 O\x01K", "HTTP/1.1 20x OK", "HTTP/1.1 200\tOK", ""}) {
    EXPECT_EQ(Reason(std::string(line) + "\r\n\r\n"), "a malformed status line") << line;
  }
}

TEST(ResponseHead, IsTheSameAtEverySplit) {
  for (const std::string text :
       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: y\r\n\r\nhello", "HTTP/1.1 200\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", "HTTP/1.1 200 OK\nX: y\r\n\r\n"}) {
    ResponseHead whole, piecewise;
    const ParseOutcome expected = ParseResponseHead(text, HeadLimits(), Method::kGet, whole);
    HeadProgress progress;
    ParseOutcome outcome;
    for (size_t bytes = 0; bytes <= text.size() && outcome.need_more(); ++bytes) {
      outcome = ParseResponseHead(std::string_view(text).substr(0, bytes), HeadLimits(),
                                  Method::kGet, piecewise, &progress);
    }
    EXPECT_EQ(outcome.complete(), expected.complete()) << text;
    EXPECT_EQ(outcome.error(), expected.error()) << text;
    EXPECT_EQ(outcome.consumed, expected.consumed) << text;
  }
}

TEST(ResponseHead, HoldsItsLimits) {
  const std::string text = "HTTP/1.1 200 OK\r\nA: b\r\nB: c\r\n\r\n";
  ResponseHead head;
  const auto reason = [&](const HeadLimits& limits) {
    return std::string(ParseResponseHead(text, limits, Method::kGet, head).reason);
  };
  EXPECT_EQ(reason({.fields_max = 2}), "");
  EXPECT_EQ(reason({.fields_max = 1}), "too many fields");
  EXPECT_EQ(reason({.bytes_max = text.size()}), "");
  EXPECT_EQ(reason({.bytes_max = text.size() - 1}), "a head that is too large");
}

}  // namespace
}  // namespace weir::http1
