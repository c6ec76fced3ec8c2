#include "net/http2_request.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "wire/http1/body.h"
#include "wire/http1/request_head.h"

namespace weir::net {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

const Fields kPost = {
    {":method", "POST"}, {":scheme", "https"}, {":path", "/v1?q"}, {":authority", "a.test"}};

Fields Get() {
  return {{":method", "GET"}, {":scheme", "https"}, {":path", "/"}, {":authority", "a.test"}};
}

void Add(Http2Request& request, const Fields& fields) {
  for (const auto& [name, value] : fields) request.AddField(name, value);
}

// What is there, in pieces of so many bytes.
std::string ReadAll(Http2Request& request, size_t piece = 4096, size_t* body_bytes = nullptr) {
  std::string text;
  std::string room(piece, '\0');
  for (;;) {
    const Http2Request::Given given = request.Read(room);
    if (body_bytes != nullptr) *body_bytes += given.body_bytes;
    if (given.bytes == 0) return text;
    text.append(room, 0, given.bytes);
  }
}

std::string Head(Fields fields, const Fields& more, bool ends = true) {
  Http2Request request;
  fields.insert(fields.end(), more.begin(), more.end());
  Add(request, fields);
  return request.FinishHead(ends) ? ReadAll(request) : "malformed";
}

TEST(Http2Request, SaysTheSameInHttp1) {
  EXPECT_EQ(Head(Get(), {{"accept", "*/*"}, {"te", "trailers"}}),
            "GET / HTTP/1.1\r\nHost: a.test\r\naccept: */*\r\nte: trailers\r\n\r\n");
}

TEST(Http2Request, JoinsCookies) {
  EXPECT_EQ(Head(Get(), {{"cookie", "a=1"}, {"x", "y"}, {"cookie", "b=2"}}),
            "GET / HTTP/1.1\r\nHost: a.test\r\nCookie: a=1; b=2\r\nx: y\r\n\r\n");
}

TEST(Http2Request, TakesTheHostFieldWithoutAnAuthority) {
  EXPECT_EQ(Head({{":method", "GET"}, {":path", "/"}}, {{"host", "b.test"}}),
            "GET / HTTP/1.1\r\nHost: b.test\r\n\r\n");
  EXPECT_EQ(Head(Get(), {{"host", "a.test"}}), "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
}

TEST(Http2Request, LeavesAHostAtOddsWithTheAuthorityToTheParser) {
  const std::string head = Head(Get(), {{"host", "b.test"}});
  EXPECT_EQ(head, "GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n");
  http1::RequestHead parsed;
  EXPECT_EQ(http1::ParseRequestHead(head, {}, parsed).status, 400);
}

TEST(Http2Request, ConnectNamesItsTarget) {
  EXPECT_EQ(Head({{":method", "CONNECT"}, {":authority", "b.test:443"}}, {}),
            "CONNECT b.test:443 HTTP/1.1\r\nHost: b.test:443\r\n\r\n");
}

TEST(Http2Request, RefusesWhatSpeaksOfTheConnection) {
  for (const char* name :
       {"connection", "transfer-encoding", "upgrade", "keep-alive", "proxy-connection"}) {
    EXPECT_EQ(Head(Get(), {{name, "x"}}), "malformed") << name;
  }
}

TEST(Http2Request, RefusesWhatCouldAddALine) {
  const std::string nul("a\0b", 3);
  for (const std::string& value : {std::string("a\r\nb: c"), std::string("a\nb"), nul}) {
    EXPECT_EQ(Head(Get(), {{"x", value}}), "malformed") << value;
    EXPECT_EQ(Head(Get(), {{"cookie", value}}), "malformed") << value;
    EXPECT_EQ(Head({{":method", "GET"}, {":path", "/"}, {":authority", value}}, {}), "malformed");
    EXPECT_EQ(Head({{":method", value}, {":path", "/"}, {":authority", "a"}}, {}), "malformed");
    EXPECT_EQ(Head({{":method", "GET"}, {":path", value}, {":authority", "a"}}, {}), "malformed");
  }
  EXPECT_EQ(Head({{":method", "GET"}, {":path", "/ HTTP/1.1"}, {":authority", "a"}}, {}),
            "malformed");
  EXPECT_EQ(Head(Get(), {{"x y", "a"}}), "malformed");
  EXPECT_EQ(Head(Get(), {{"", "a"}}), "malformed");
}

TEST(Http2Request, RefusesPseudoFieldsTwiceOrUnknown) {
  EXPECT_EQ(Head(Get(), {{":path", "/other"}}), "malformed");
  EXPECT_EQ(Head(Get(), {{":protocol", "websocket"}}), "malformed");
  EXPECT_EQ(Head(Get(), {{"content-length", "1"}, {"content-length", "1"}}), "malformed");
  EXPECT_EQ(Head(Get(), {{"content-length", "1, 1"}}), "malformed");
  EXPECT_EQ(Head(Get(), {{"host", "a.test"}, {"host", "a.test"}}), "malformed");
}

TEST(Http2Request, AnAnnouncedLengthStays) {
  Http2Request request;
  Add(request, kPost);
  request.AddField("content-length", "6");
  ASSERT_TRUE(request.FinishHead(/*ends=*/false));
  request.AppendBody("abc");
  size_t body_bytes = 0;
  EXPECT_EQ(ReadAll(request, 4096, &body_bytes),
            "POST /v1?q HTTP/1.1\r\nHost: a.test\r\ncontent-length: 6\r\n\r\nabc");
  EXPECT_EQ(body_bytes, 3u);
  EXPECT_FALSE(request.readable());
  request.AppendBody("def");
  EXPECT_TRUE(request.readable());
  request.Finish();
  EXPECT_EQ(ReadAll(request), "def");
  EXPECT_TRUE(request.exhausted());
}

TEST(Http2Request, NothingFollowsTheAnnouncedLength) {
  for (const char* length : {"3", "0", "-1"}) {
    Http2Request request;
    Add(request, kPost);
    request.AddField("content-length", length);
    ASSERT_TRUE(request.FinishHead(/*ends=*/false));
    request.AppendBody("abcGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
    request.Finish();
    const std::string text = ReadAll(request);
    EXPECT_EQ(text.find("smuggled"), std::string::npos) << text;
    EXPECT_TRUE(request.exhausted());
  }
}

TEST(Http2Request, ABodyOfUnknownLengthIsChunkedByWhatIsThere) {
  Http2Request request;
  Add(request, kPost);
  ASSERT_TRUE(request.FinishHead(/*ends=*/false));
  EXPECT_EQ(ReadAll(request),
            "POST /v1?q HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_FALSE(request.readable());
  for (int i = 0; i < 26; ++i) request.AppendBody("x");  // One chunk, not 26.
  EXPECT_EQ(ReadAll(request), "1a\r\n" + std::string(26, 'x') + "\r\n");
  request.AppendBody("yz");
  request.AddField("x-sum", "1");
  request.Finish();
  EXPECT_EQ(ReadAll(request), "2\r\nyz\r\n0\r\nx-sum: 1\r\n\r\n");
  EXPECT_TRUE(request.exhausted());
}

TEST(Http2Request, AnEmptyBodyOfUnknownLengthEnds) {
  Http2Request request;
  Add(request, kPost);
  ASSERT_TRUE(request.FinishHead(/*ends=*/false));
  request.Finish();
  EXPECT_TRUE(ReadAll(request).ends_with("\r\n\r\n0\r\n\r\n"));
}

TEST(Http2Request, TrailersThatAreNotValidAreLeftOut) {
  Http2Request request;
  Add(request, kPost);
  ASSERT_TRUE(request.FinishHead(/*ends=*/false));
  request.AddField("x", "a\r\ny: z");
  request.AddField("ok", "1");
  request.Finish();
  EXPECT_TRUE(ReadAll(request).ends_with("\r\n\r\n0\r\nok: 1\r\n\r\n"));
}

TEST(Http2Request, EveryPieceSizeGivesTheSame) {
  const std::string payload(1000, 'p');
  std::string whole;
  for (size_t piece : {4096, 1, 2, 3, 7, 64}) {
    Http2Request request;
    Add(request, kPost);
    ASSERT_TRUE(request.FinishHead(/*ends=*/false));
    request.AppendBody(payload);
    request.Finish();
    size_t body_bytes = 0;
    const std::string text = ReadAll(request, piece, &body_bytes);
    EXPECT_EQ(body_bytes, payload.size());
    if (whole.empty()) whole = text;
    EXPECT_EQ(text, whole) << piece;
  }
}

}  // namespace
}  // namespace weir::net
