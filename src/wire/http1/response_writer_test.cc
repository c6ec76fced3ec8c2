#include "wire/http1/response_writer.h"

#include <gtest/gtest.h>

#include <string>

#include "wire/http1/dates.h"

namespace weir::http1 {
namespace {

TEST(ResponseWriter, BuildsAWholeAnswer) {
  wire::Buffer out;
  ResponseWriter answer(out);
  answer.Begin(429);
  EXPECT_TRUE(answer.Field("Content-Type", "application/json"));
  answer.Field("Retry-After", 3);
  answer.Date(FormatHttpDate(1'796'068'803).view());
  answer.TrustedFields("X-A: b\r\n");
  answer.Connection(/*keep_alive=*/false, 1);
  answer.Body("{}");
  EXPECT_EQ(out.View(),
            "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 3\r\n"
            "Date: Mon, 30 Nov 2026 20:00:03 GMT\r\nX-A: b\r\nConnection: close\r\n"
            "Content-Length: 2\r\n\r\n{}");
}

TEST(ResponseWriter, ClosesTheGapAfterABodyOfUnknownLength) {
  for (const size_t bytes : {0, 1, 9, 10, 99, 100, 12'345, 1'000'000}) {
    wire::Buffer out;
    out.Append("an earlier answer;");
    ResponseWriter answer(out);
    answer.Begin(200);
    answer.BeginBody();
    out.Append(std::string(bytes, 'x'));
    answer.EndBody();
    out.Append("NEXT");
    EXPECT_EQ(out.View(),
              "an earlier answer;HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(bytes) +
                  "\r\n\r\n" + std::string(bytes, 'x') + "NEXT");
  }
}

TEST(ResponseWriter, LeavesOutWhatCouldAddAField) {
  wire::Buffer out;
  ResponseWriter answer(out);
  answer.Begin(200);
  EXPECT_FALSE(answer.Field("X", "a\r\nSet-Cookie: b"));
  EXPECT_FALSE(answer.Field("X", "a\nb"));
  EXPECT_FALSE(answer.Field("X", std::string_view("a\0b", 3)));
  EXPECT_FALSE(answer.Field("X\r\nY", "a"));
  EXPECT_FALSE(answer.Field("", "a"));
  EXPECT_TRUE(answer.Field("X", ""));
  answer.EndChunked();
  EXPECT_EQ(out.View(), "HTTP/1.1 200 OK\r\nX: \r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST(ResponseWriter, KeepsAGoodReasonOnly) {
  wire::Buffer out;
  ResponseWriter answer(out);
  answer.Begin(404, "Nothing Here");
  answer.Begin(404, "a\r\nb");
  answer.Begin(599);
  EXPECT_EQ(out.View(), "HTTP/1.1 404 Nothing Here\r\nHTTP/1.1 404 Not Found\r\nHTTP/1.1 599 \r\n");
}

TEST(ResponseWriter, TellsHttp10ThatTheConnectionStays) {
  wire::Buffer out;
  ResponseWriter answer(out);
  answer.Connection(true, 1);
  answer.Connection(true, 0);
  answer.EndHeadOnly(7);
  EXPECT_EQ(out.View(), "Connection: keep-alive\r\nContent-Length: 7\r\n\r\n");
}

TEST(RequestLine, IsGuarded) {
  wire::Buffer out;
  EXPECT_TRUE(AppendRequestLine(out, "POST", "/a?b"));
  EXPECT_FALSE(AppendRequestLine(out, "PO ST", "/"));
  EXPECT_FALSE(AppendRequestLine(out, "GET", "/a b"));
  EXPECT_FALSE(AppendRequestLine(out, "GET", "/\r\nX: y"));
  EXPECT_FALSE(AppendRequestLine(out, "GET", ""));
  EXPECT_EQ(out.View(), "POST /a?b HTTP/1.1\r\n");
}

}  // namespace
}  // namespace weir::http1
