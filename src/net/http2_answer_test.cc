#include "net/http2_answer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::net {
namespace {

using Then = http2::Piece::Then;
using Head = Http2Answer::Head;

std::string Text(const std::vector<http2::Header>& fields) {
  std::string text;
  for (const http2::Header& field : fields)
    text += std::string(field.name) + "=" + std::string(field.value) + " ";
  return text;
}

// The body as far as it is there, and how the last piece ended.
std::string Body(Http2Answer& answer, Then& then, size_t piece_bytes = 4096) {
  std::string text;
  std::string room(piece_bytes, '\0');
  for (;;) {
    const http2::Piece piece = answer.Read(room);
    text.append(room, 0, piece.bytes);
    then = piece.then;
    if (then != Then::kMore) return text;
    EXPECT_GT(piece.bytes, 0u);
  }
}

struct Taken {
  Head head = Head::kNone;
  std::string fields;
};

Taken Take(Http2Answer& answer) {
  std::vector<http2::Header> fields;
  const Head head = answer.TakeHead(fields);
  return {head, Text(fields)};
}

TEST(Http2Answer, TakesAHeadApart) {
  Http2Answer answer;
  answer.Append("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nX-A:  b \r\n");
  EXPECT_EQ(Take(answer).head, Head::kNone);
  answer.Append("Content-Length: 4\r\n\r\nbo");
  const Taken taken = Take(answer);
  EXPECT_EQ(taken.head, Head::kFinal);
  EXPECT_EQ(taken.fields, ":status=429 retry-after=3 x-a=b content-length=4 ");
  Then then;
  EXPECT_EQ(Body(answer, then), "bo");
  EXPECT_EQ(then, Then::kLater);
  answer.Append("dy");
  EXPECT_EQ(Body(answer, then), "dy");
  EXPECT_EQ(then, Then::kEnd);
  EXPECT_TRUE(answer.complete());
}

TEST(Http2Answer, WhatSpeaksOfTheConnectionStaysHere) {
  Http2Answer answer;
  answer.Append(
      "HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"
      "Transfer-Encoding: chunked\r\nUpgrade: h2c\r\nX-Stays: 1\r\n\r\n");
  EXPECT_EQ(Take(answer).fields, ":status=200 x-stays=1 ");
}

TEST(Http2Answer, InterimHeadsComeFirst) {
  Http2Answer answer;
  answer.Append("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n");
  Taken taken = Take(answer);
  EXPECT_EQ(taken.head, Head::kInterim);
  EXPECT_EQ(taken.fields, ":status=100 ");
  taken = Take(answer);
  EXPECT_EQ(taken.head, Head::kInterim);
  EXPECT_EQ(taken.fields, ":status=103 link=a ");
  EXPECT_EQ(Take(answer).head, Head::kNone);
  answer.Append("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(Take(answer).head, Head::kFinal);
  EXPECT_FALSE(answer.has_body());
}

TEST(Http2Answer, AnAnswerToHeadHasNoBody) {
  Http2Answer answer;
  answer.Start(http1::Method::kHead);
  answer.Append("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n");
  EXPECT_EQ(Take(answer).fields, ":status=200 content-length=500 ");
  EXPECT_FALSE(answer.has_body());
  EXPECT_TRUE(answer.complete());
}

TEST(Http2Answer, ChunksLoseTheirFraming) {
  for (size_t piece : {1, 2, 5, 4096}) {
    Http2Answer answer;
    answer.Append("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    EXPECT_EQ(Take(answer).head, Head::kFinal);
    answer.Append("6\r\nevents\r\n5\r\n come\r\n0\r\nX-Sum: 1\r\nX-Other: Two\r\n\r\n");
    Then then;
    EXPECT_EQ(Body(answer, then, piece), "events come") << piece;
    EXPECT_EQ(then, Then::kTrailers);
    EXPECT_EQ(Text(answer.trailers()), "x-sum=1 x-other=Two ");
  }
}

TEST(Http2Answer, ABodyUntilCloseEndsWithIt) {
  Http2Answer answer;
  answer.Append("HTTP/1.1 200 OK\r\n\r\nall of it");
  EXPECT_EQ(Take(answer).head, Head::kFinal);
  Then then;
  EXPECT_EQ(Body(answer, then), "all of it");
  EXPECT_EQ(then, Then::kLater);
  answer.FinishInput();
  EXPECT_EQ(Body(answer, then), "");
  EXPECT_EQ(then, Then::kEnd);
}

TEST(Http2Answer, WhatIsCutShortHasNoEnd) {
  for (const char* framing : {"Content-Length: 10", "Transfer-Encoding: chunked"}) {
    Http2Answer answer;
    answer.Append("HTTP/1.1 200 OK\r\n" + std::string(framing) + "\r\n\r\n3\r\nabc");
    EXPECT_EQ(Take(answer).head, Head::kFinal);
    answer.FinishInput();
    Then then;
    EXPECT_TRUE(Body(answer, then).ends_with("abc"));  // What there is goes out first.
    EXPECT_EQ(then, Then::kAbort);
  }
}

TEST(Http2Answer, FaultyFramingIsAnAbort) {
  Http2Answer answer;
  answer.Append("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX");
  EXPECT_EQ(Take(answer).head, Head::kFinal);
  Then then;
  EXPECT_EQ(Body(answer, then), "abc");
  EXPECT_EQ(then, Then::kAbort);
}

TEST(Http2Answer, MalformedHeads) {
  for (const char* text : {"HTTP/2 200\r\n\r\n", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n"}) {
    Http2Answer answer;
    answer.Append(text);
    EXPECT_EQ(Take(answer).head, Head::kMalformed) << text;
  }
  Http2Answer answer;
  answer.Append("HTTP/1.1 200 OK\r\nX: " + std::string(60 * 1024, 'x'));
  EXPECT_EQ(Take(answer).head, Head::kMalformed);
}

TEST(Http2Answer, MoreFieldsThanARequestMayHaveComeBack) {
  Http2Answer answer;
  std::string head = "HTTP/1.1 204 No Content\r\n";
  for (int i = 0; i < 120; ++i) head += "X-" + std::to_string(i) + ": v\r\n";
  answer.Append(head + "\r\n");
  EXPECT_EQ(Take(answer).head, Head::kFinal);
}

TEST(Http2Answer, TakesNoMoreThanItsBound) {
  Http2Answer answer;
  answer.Append("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(Take(answer).head, Head::kFinal);
  const std::string much(1000000, 'x');
  EXPECT_EQ(answer.Append(much), Http2Answer::kBytesMax);  // The head has gone.
  EXPECT_EQ(answer.room(), 0u);
  EXPECT_EQ(answer.Append("x"), 0u);
  std::string room(1000, '\0');
  EXPECT_EQ(answer.Read(room).bytes, 1000u);
  EXPECT_EQ(answer.room(), 1000u);
}

}  // namespace
}  // namespace weir::net
