#include "cli/http_call.h"

#include <gtest/gtest.h>

namespace weir::cli {
namespace {

TEST(ServerUrl, PartsAreTakenApart) {
  const ServerUrl plain = ServerUrl::Parse("http://127.0.0.1:8081").value();
  EXPECT_FALSE(plain.tls);
  EXPECT_EQ(plain.host, "127.0.0.1");
  EXPECT_EQ(plain.port, 8081);
  EXPECT_EQ(plain.base_path, "");

  const ServerUrl v6 = ServerUrl::Parse("https://[::1]:8443/base/").value();
  EXPECT_TRUE(v6.tls);
  EXPECT_EQ(v6.host, "::1");
  EXPECT_EQ(v6.port, 8443);
  EXPECT_EQ(v6.base_path, "/base");

  EXPECT_EQ(ServerUrl::Parse("https://weir.example.com")->port, 443);
  EXPECT_EQ(ServerUrl::Parse("http://[::1]")->port, 80);

  const ServerUrl socket = ServerUrl::Parse("unix:/run/weir.sock").value();
  EXPECT_TRUE(socket.is_unix);
  EXPECT_EQ(socket.host, "/run/weir.sock");
}

TEST(ServerUrl, OthersAreRefusedWithWhatIsMeant) {
  for (const char* text : {"", "127.0.0.1:8081", "ftp://a", "http://", "http://:80", "http://a:0",
                           "http://a:b", "unix:"}) {
    const Result<ServerUrl> url = ServerUrl::Parse(text);
    ASSERT_FALSE(url.has_value()) << text;
    EXPECT_NE(url.error().message.find("http://127.0.0.1:8081"), std::string::npos);
  }
}

TEST(HttpCall, ARefusedConnectionIsUnavailable) {
  const ServerUrl url = ServerUrl::Parse("unix:/nonexistent/weir.sock").value();
  const Result<HttpAnswer> answer =
      CallHttp(url, {.path = "/v1/check", .body = "{}"}, 1'000'000'000);
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace weir::cli
