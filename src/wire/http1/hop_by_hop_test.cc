#include "wire/http1/hop_by_hop.h"

#include <gtest/gtest.h>

#include <string>

#include "wire/http1/request_head.h"

namespace weir::http1 {
namespace {

std::string Forwarded(const std::string& fields) {
  const std::string text = "GET / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
  RequestHead head;
  EXPECT_TRUE(ParseRequestHead(text, HeadLimits(), head).complete()) << text;
  const HopByHop hop(head.headers);
  std::string names;
  for (const HeaderField& field : head.headers) {
    if (!hop.Stops(field)) names += std::string(field.name) + " ";
  }
  return names;
}

TEST(HopByHop, StopsTheFieldsOfTheHop) {
  EXPECT_EQ(Forwarded("Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\n"
                      "Trailer: X\r\nTransfer-Encoding: chunked\r\nUpgrade: h2c\r\n"
                      "Proxy-Connection: close\r\nProxy-Authorization: x\r\n"
                      "proxy-authenticate: y\r\nAccept: z\r\n"),
            "Host Accept ");
}

TEST(HopByHop, StopsWhatConnectionNames) {
  EXPECT_EQ(Forwarded("Connection: close, X-Mine\r\nx-mine: 1\r\nX-Other: 2\r\n"), "Host X-Other ");
  EXPECT_EQ(Forwarded("X-Mine: 1\r\nConnection: close\r\nConnection: x-mine\r\n"), "Host ");
}

TEST(HopByHop, ConnectionCannotStripWhatMattersEndToEnd) {
  EXPECT_EQ(
      Forwarded("Connection: host, content-length, authorization, x-forwarded-for, x-api-key, "
                "cookie\r\nContent-Length: 1\r\nAuthorization: a\r\nX-Forwarded-For: b\r\n"
                "X-Api-Key: c\r\nCookie: d\r\n"),
      "Host Content-Length Authorization X-Forwarded-For X-Api-Key Cookie ");
}

}  // namespace
}  // namespace weir::http1
