#include "wire/http1/request_head.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace weir::http1 {
namespace {

ParseOutcome Parse(std::string_view text, RequestHead& head) {
  return ParseRequestHead(text, HeadLimits(), head);
}

// The status that a head is refused with; 0 when it is accepted, -1 when more is wanted.
int Refusal(std::string_view text) {
  RequestHead head;
  const ParseOutcome outcome = Parse(text, head);
  if (outcome.complete()) return 0;
  return outcome.error() ? outcome.status : -1;
}

std::string Reason(std::string_view text) {
  RequestHead head;
  const ParseOutcome outcome = Parse(text, head);
  return outcome.error() ? outcome.reason : "";
}

std::string Get(std::string_view fields) {
  return "GET / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}

TEST(RequestHead, ReadsATypicalRequest) {
  const std::string text =
      "POST /v1/chat/completions?x=1&y=? HTTP/1.1\r\n"
      "Host: api.example.com:8080\r\n"
      "authorization:Bearer k \t\r\n"
      "Content-Length: 12\r\n"
      "X-Empty:\r\n"
      "\r\n"
      "{\"model\":1}!";
  RequestHead head;
  const ParseOutcome outcome = Parse(text, head);
  ASSERT_TRUE(outcome.complete()) << outcome.reason;
  EXPECT_EQ(outcome.consumed, text.size() - 12);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.method_id, Method::kPost);
  EXPECT_EQ(head.target, "/v1/chat/completions?x=1&y=?");
  EXPECT_EQ(head.target_form, TargetForm::kOrigin);
  EXPECT_EQ(head.path, "/v1/chat/completions");
  EXPECT_TRUE(head.has_query);
  EXPECT_EQ(head.query, "x=1&y=?");
  EXPECT_EQ(head.host, "api.example.com:8080");
  EXPECT_EQ(head.minor_version, 1);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_EQ(head.body, BodyKind::kLength);
  EXPECT_EQ(head.content_length, 12);
  ASSERT_EQ(head.headers.size(), 4u);
  EXPECT_EQ(head.headers[1].name, "authorization");
  EXPECT_EQ(head.headers[1].value, "Bearer k");
  EXPECT_EQ(head.headers[1].id, FieldId::kAuthorization);
  EXPECT_EQ(head.headers.Find("X-EMPTY")->value, "");
  EXPECT_EQ(head.headers.Value(FieldId::kHost), "api.example.com:8080");
  EXPECT_EQ(head.headers.Find("absent"), nullptr);
}

TEST(RequestHead, TellsFramingAndConnectionApart) {
  RequestHead head;
  ASSERT_TRUE(Parse(Get(""), head).complete());
  EXPECT_EQ(head.body, BodyKind::kNone);
  EXPECT_FALSE(head.has_content_length);
  ASSERT_TRUE(Parse(Get("Content-Length: 0\r\n"), head).complete());
  EXPECT_EQ(head.body, BodyKind::kNone);
  EXPECT_TRUE(head.has_content_length);
  ASSERT_TRUE(Parse(Get("transfer-encoding: Chunked\r\n"), head).complete());
  EXPECT_EQ(head.body, BodyKind::kChunked);
  ASSERT_TRUE(Parse(Get("Connection: x, Close\r\n"), head).complete());
  EXPECT_FALSE(head.keep_alive);
  ASSERT_TRUE(Parse("GET / HTTP/1.0\r\n\r\n", head).complete());
  EXPECT_FALSE(head.keep_alive);
  EXPECT_EQ(head.host, "");
  ASSERT_TRUE(Parse("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", head).complete());
  EXPECT_TRUE(head.keep_alive);
  ASSERT_TRUE(Parse(Get("Upgrade: websocket\r\nConnection: Upgrade\r\n"), head).complete());
  EXPECT_TRUE(head.upgrade);
  ASSERT_TRUE(Parse(Get("Upgrade: websocket\r\n"), head).complete());
  EXPECT_FALSE(head.upgrade);
  ASSERT_TRUE(Parse(Get("Expect: 100-Continue\r\nContent-Length: 3\r\n"), head).complete());
  EXPECT_TRUE(head.expect_continue);
  ASSERT_TRUE(Parse(Get("Expect: 100-continue\r\n"), head).complete());
  EXPECT_FALSE(head.expect_continue);
  EXPECT_EQ(Refusal(Get("Expect: a-pony\r\n")), 417);
  EXPECT_EQ(Reason(Get("Connection: keep alive\r\n")), "a bad Connection");
  EXPECT_EQ(Refusal(Get("Connection: , close,,x\r\n")), 0);
}

TEST(RequestHead, KnowsTheFourFormsOfATarget) {
  RequestHead head;
  ASSERT_TRUE(
      Parse("GET http://Example.com/a?b HTTP/1.1\r\nHost: example.COM\r\n\r\n", head).complete());
  EXPECT_EQ(head.target_form, TargetForm::kAbsolute);
  EXPECT_EQ(head.host, "Example.com");
  EXPECT_EQ(head.path, "/a");
  EXPECT_EQ(head.query, "b");
  ASSERT_TRUE(Parse("GET http://a?b HTTP/1.1\r\nHost: a\r\n\r\n", head).complete());
  EXPECT_EQ(head.path, "/");
  EXPECT_EQ(head.query, "b");
  ASSERT_TRUE(Parse("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", head).complete());
  EXPECT_EQ(head.target_form, TargetForm::kAuthority);
  EXPECT_EQ(head.path, "");
  ASSERT_TRUE(Parse("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", head).complete());
  EXPECT_EQ(head.target_form, TargetForm::kAsterisk);

  EXPECT_EQ(Reason("GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
            "a target of * with a method other than OPTIONS");
  EXPECT_EQ(Reason("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
            "a target that is neither a path nor an http URI");
  EXPECT_EQ(Reason("GET a/b HTTP/1.1\r\nHost: a\r\n\r\n"),
            "a target that is neither a path nor an http URI");
  EXPECT_EQ(Reason("GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n"), "a target with a bad authority");
  EXPECT_EQ(Reason("CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n"),
            "a CONNECT target that is not host:port");
  EXPECT_EQ(Reason("CONNECT /a HTTP/1.1\r\nHost: a\r\n\r\n"),
            "a CONNECT target that is not host:port");
}

TEST(RequestHead, Case86_ContentLengthTwice) {
  EXPECT_EQ(Reason(Get("Content-Length: 1\r\nContent-Length: 1\r\n")),
            "more than one Content-Length");
  EXPECT_EQ(Reason(Get("Content-Length: 1\r\nContent-Length: 2\r\n")),
            "more than one Content-Length");
  EXPECT_EQ(Refusal(Get("Content-Length: 1\r\nContent-Length: 1\r\n")), 400);
}

TEST(RequestHead, Case86_ContentLengthAsAListOrMalformed) {
  for (const char* value : {"1, 1", "1,1", "+1", "-1", "0x1", "1 1", "", "1.0", "1;a",
                            "\x0b"
                            "1",
                            "9999999999999999999"}) {
    EXPECT_EQ(Refusal(Get("Content-Length: " + std::string(value) + "\r\n")), 400) << value;
  }
}

TEST(RequestHead, Case86_ContentLengthWithTransferEncoding) {
  const char* const kReason = "both Transfer-Encoding and Content-Length";
  EXPECT_EQ(Reason(Get("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n")), kReason);
  EXPECT_EQ(Reason(Get("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n")), kReason);
  EXPECT_EQ(Reason(Get("Transfer-Encoding: chunked\r\nContent-Length: 0\r\n")), kReason);
}

TEST(RequestHead, Case86_TransferEncodingOtherThanChunked) {
  for (const char* value :
       {"xchunked", "chunked, chunked", "gzip, chunked", "identity", "chunked;q=1", "\"chunked\"",
        "", "chunked,", ", chunked", "chunke d", "chunked identity"}) {
    EXPECT_EQ(Reason(Get("Transfer-Encoding: " + std::string(value) + "\r\n")),
              "a Transfer-Encoding other than chunked")
        << value;
  }
  EXPECT_EQ(Reason(Get("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")),
            "more than one Transfer-Encoding");
  EXPECT_EQ(Refusal(Get("Transfer-Encoding: \x0b"
                        "chunked\r\n")),
            400);
}

TEST(RequestHead, Case86_TransferEncodingInHttp10) {
  EXPECT_EQ(Reason("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
            "Transfer-Encoding in HTTP/1.0");
}

TEST(RequestHead, Case86_TwoHosts) {
  EXPECT_EQ(Reason(Get("Host: a\r\n")), "more than one Host");
  EXPECT_EQ(Reason(Get("hOST: b\r\n")), "more than one Host");
  EXPECT_EQ(Reason("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"), "more than one Host");
}

TEST(RequestHead, Case86_NoHost) {
  EXPECT_EQ(Reason("GET / HTTP/1.1\r\nAccept: x\r\n\r\n"), "no Host");
  EXPECT_EQ(Reason("GET http://a/ HTTP/1.1\r\n\r\n"), "no Host");
}

TEST(RequestHead, Case86_BadHost) {
  for (const char* value : {"a b", "a,b", "a@b", "a/b", "a:b", "a:0", "a:65536", "a:", ":80",
                            "[::1", "[]", "[::g]", "[::1]x", "a?b", "a\\b"}) {
    EXPECT_EQ(Reason("GET / HTTP/1.1\r\nHost: " + std::string(value) + "\r\n\r\n"), "a bad Host")
        << value;
  }
  for (const char* value : {"", "a", "a:80", "a:65535", "127.0.0.1:1", "[::1]", "[2001:db8::1]:443",
                            "xn--a_b.example"}) {
    EXPECT_EQ(Refusal("GET / HTTP/1.1\r\nHost: " + std::string(value) + "\r\n\r\n"), 0) << value;
  }
}

TEST(RequestHead, Case86_HostAtOddsWithTheTarget) {
  EXPECT_EQ(Reason("GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n"), "a Host at odds with the target");
  EXPECT_EQ(Reason("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n"), "a Host at odds with the target");
}

TEST(RequestHead, Case86_FoldedLine) {
  EXPECT_EQ(Reason(Get("X: a\r\n b\r\n")), "a folded field line");
  EXPECT_EQ(Reason(Get("X: a\r\n\tb\r\n")), "a folded field line");
  EXPECT_EQ(Reason(Get("X: a\r\n \r\n")), "a folded field line");
}

TEST(RequestHead, Case86_BareLineFeed) {
  EXPECT_EQ(Refusal("GET / HTTP/1.1\nHost: a\n\n"), 400);
  EXPECT_EQ(Refusal("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400);
  EXPECT_EQ(Refusal("GET / HTTP/1.1\r\nHost: a\r\n\n"), 400);
  EXPECT_EQ(Refusal("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(Refusal("GET /\n HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
}

TEST(RequestHead, Case86_BareCarriageReturn) {
  EXPECT_EQ(Refusal("GET / HTTP/1.1\rHost: a\r\n\r\n"), 400);
  EXPECT_EQ(Refusal(Get("X: a\rb\r\n")), 400);
  EXPECT_EQ(Refusal(Get("X: a\r\r\n")), 400);
  EXPECT_EQ(Refusal(Get("\rX: a\r\n")), 400);
}

TEST(RequestHead, Case86_ControlCharacters) {
  for (int c = 0; c < 0x20; ++c) {
    if (c == '\t') continue;
    const std::string control(1, static_cast<char>(c));
    EXPECT_EQ(Refusal(Get("X: a" + control + "b\r\n")), 400) << c;
    EXPECT_EQ(Refusal(Get("X: a value of more than sixteen " + control + " bytes\r\n")), 400) << c;
    EXPECT_EQ(Refusal(Get("X" + control + ": a\r\n")), 400) << c;
    EXPECT_EQ(Refusal("GET /" + control + " HTTP/1.1\r\nHost: a\r\n\r\n"), 400) << c;
  }
  EXPECT_EQ(Refusal(Get("X: a\x7f\r\n")), 400);
  EXPECT_EQ(Refusal(Get("X: tab\there \xC3\xA4 and beyond ASCII\r\n")), 0);
}

TEST(RequestHead, Case86_SpaceBeforeTheColon) {
  EXPECT_EQ(Reason(Get("Content-Length : 1\r\n")), "white space before the colon of a field");
  EXPECT_EQ(Reason(Get("Transfer-Encoding\t: chunked\r\n")),
            "white space before the colon of a field");
}

TEST(RequestHead, Case86_MalformedNames) {
  EXPECT_EQ(Reason(Get(": a\r\n")), "an empty field name");
  EXPECT_EQ(Reason(Get("X Y: a\r\n")), "white space before the colon of a field");
  EXPECT_EQ(Reason(Get("X\r\n")), "a field line without a colon");
  for (const char* name : {"X(", "X\"", "X/", "X[", "X{", "X@", "X\xC3\xA4", "X,", "X;"}) {
    EXPECT_EQ(Reason(Get(std::string(name) + ": a\r\n")), "a character that no field name can hold")
        << name;
  }
}

TEST(RequestHead, Case86_WhiteSpaceBeforeTheFirstField) {
  EXPECT_EQ(Reason("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), "white space before the first field");
  EXPECT_EQ(Reason("GET / HTTP/1.1\r\n\tHost: a\r\n\r\n"), "white space before the first field");
}

TEST(RequestHead, Case86_MalformedRequestLines) {
  for (const char* line :
       {"GET  / HTTP/1.1", "GET /  HTTP/1.1", "GET / HTTP/1.1 ", " GET / HTTP/1.1",
        "GET\t/ HTTP/1.1", "GET /", "GET / http/1.1", "GET / HTTP/1.", "G(T / HTTP/1.1",
        "GET / HTTP/1.10", "GET / HTTP/01.1", "GET / HTTP 1.1", "GET /a#b HTTP/1.1",
        "GET /\xC3\xA4 HTTP/1.1", "GET  HTTP/1.1", ""}) {
    EXPECT_EQ(Refusal(std::string(line) + "\r\nHost: a\r\n\r\n"), line[0] == '\0' ? 400 : 400)
        << line;
  }
  for (const char* version : {"HTTP/0.9", "HTTP/1.2", "HTTP/2.0", "HTTP/3.0", "HTTP/9.9"}) {
    EXPECT_EQ(Refusal("GET / " + std::string(version) + "\r\nHost: a\r\n\r\n"), 505) << version;
  }
}

TEST(RequestHead, ForgivesOneEmptyLineBeforeTheRequest) {
  RequestHead head;
  const std::string text = "\r\n" + Get("");
  const ParseOutcome outcome = Parse(text, head);
  ASSERT_TRUE(outcome.complete());
  EXPECT_EQ(outcome.consumed, text.size());
  EXPECT_EQ(Refusal("\r\n\r\n" + Get("")), 400);
}

TEST(RequestHead, HoldsItsLimits) {
  RequestHead head;
  HeadLimits limits{.bytes_max = 200, .target_bytes_max = 50, .fields_max = 3};
  const auto status = [&](const std::string& text) {
    return ParseRequestHead(text, limits, head).status;
  };
  EXPECT_EQ(status("GET /" + std::string(49, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
  EXPECT_EQ(status("GET /" + std::string(50, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
  EXPECT_EQ(status("GET /" + std::string(50, 'a')), 414);
  EXPECT_EQ(status(Get("A: 1\r\nB: 2\r\n")), 0);
  EXPECT_EQ(status(Get("A: 1\r\nB: 2\r\nC: 3\r\n")), 431);
  EXPECT_EQ(status(std::string(32, 'M') + " / HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
  EXPECT_EQ(status(std::string(33, 'M')), 501);

  const size_t fixed_bytes = Get("A: \r\n").size();
  const std::string fits = Get("A: " + std::string(200 - fixed_bytes, 'v') + "\r\n");
  ASSERT_EQ(fits.size(), 200u);
  EXPECT_TRUE(ParseRequestHead(fits, limits, head).complete());
  EXPECT_EQ(status(Get("A: " + std::string(201 - fixed_bytes, 'v') + "\r\n")), 431);
  limits.target_bytes_max = 1000;
  EXPECT_EQ(status("GET /" + std::string(300, 'a')), 414);
}

TEST(RequestHead, LeavesPipelinedBytesAlone) {
  const std::string text = Get("") + Get("X: second\r\n");
  RequestHead head;
  const ParseOutcome first = Parse(text, head);
  ASSERT_EQ(first.consumed, Get("").size());
  const ParseOutcome second = Parse(std::string_view(text).substr(first.consumed), head);
  ASSERT_TRUE(second.complete());
  EXPECT_EQ(head.headers.Find("x")->value, "second");
}

// Whatever is fed, cut after every byte and fed again a byte at a time: the same end.
void ExpectSameInPieces(const std::string& text) {
  HeadLimits limits{.bytes_max = 300, .target_bytes_max = 100, .fields_max = 10};
  RequestHead whole, piecewise;
  const ParseOutcome expected = ParseRequestHead(text, limits, whole);
  for (const bool with_progress : {false, true}) {
    HeadProgress progress;
    ParseOutcome outcome;
    for (size_t bytes = 0; bytes <= text.size() && outcome.need_more(); ++bytes) {
      outcome = ParseRequestHead(std::string_view(text).substr(0, bytes), limits, piecewise,
                                 with_progress ? &progress : nullptr);
    }
    ASSERT_EQ(outcome.complete(), expected.complete()) << text;
    ASSERT_EQ(outcome.consumed, expected.consumed) << text;
    if (with_progress && expected.error()) {
      // Looking less often, it may see more of a bad head first, but never takes it for a good one.
      ASSERT_FALSE(outcome.complete());
      continue;
    }
    ASSERT_EQ(outcome.status, expected.status) << text;
    ASSERT_STREQ(outcome.reason, expected.reason) << text;
    if (expected.complete()) {
      ASSERT_EQ(piecewise.target, whole.target);
      ASSERT_EQ(piecewise.headers.size(), whole.headers.size());
      ASSERT_EQ(piecewise.content_length, whole.content_length);
    }
  }
}

TEST(RequestHead, IsTheSameAtEverySplit) {
  for (const std::string& text :
       {Get(""), Get("A: b\r\nContent-Length: 5\r\n") + "hello", "\r\n" + Get("X:\r\n"),
        Get("X: a\r\n b\r\n"), Get("X: a\nb\r\n"), std::string("GET / HTTP/2.0\r\n\r\n"),
        Get("Content-Length: 1\r\nContent-Length: 1\r\n"), Get("X: " + std::string(400, 'a')),
        "GET /" + std::string(400, 'a'), Get("X : a\r\n"), std::string("GET / HTTP/1.1\n\n"),
        std::string("GET / HTTP/1.0\r\n\r\n")}) {
    ExpectSameInPieces(text);
  }
}

TEST(RequestHead, AnyMixOfPiecesIsTheSameAtEverySplit) {
  const std::vector<std::string> parts = {"GET ",
                                          "/a",
                                          " HTTP/1.1",
                                          "\r\n",
                                          "\n",
                                          "\r",
                                          "Host: a",
                                          "Content-Length: 1",
                                          "Transfer-Encoding: chunked",
                                          " ",
                                          ":",
                                          "X: y",
                                          "\r\n\r\n",
                                          std::string(1, '\0')};
  const bool ok = rc::check("same at every split", [&] {
    std::string text = *rc::gen::element<std::string>("", "GET / HTTP/1.1\r\nHost: a\r\n");
    for (const std::string& part :
         *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(parts))) {
      text += part;
    }
    ExpectSameInPieces(text);
    RC_ASSERT(!::testing::Test::HasFatalFailure());
  });
  EXPECT_TRUE(ok);
}

TEST(RequestHead, ASlowHeadIsParsedTwiceAtMost) {
  // A head of 60 KiB a byte at a time: quadratic work would be 1.8 GB of parsing, seconds; linear
  // work is instant. Counted by what the progress allows rather than by a clock.
  const std::string text = Get("X: " + std::string(60'000, 'a') + "\r\n");
  RequestHead head;
  HeadProgress progress;
  for (size_t bytes = 1; bytes < text.size(); ++bytes) {
    ASSERT_TRUE(
        ParseRequestHead(std::string_view(text).substr(0, bytes), HeadLimits(), head, &progress)
            .need_more());
    ASSERT_EQ(progress.scanned_bytes, bytes);
  }
  EXPECT_TRUE(ParseRequestHead(text, HeadLimits(), head, &progress).complete());
}

}  // namespace
}  // namespace weir::http1
