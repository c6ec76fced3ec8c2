#include "cli/listen_endpoint.h"

#include <gtest/gtest.h>

namespace weir::cli {
namespace {

TEST(ListenEndpoint, LiteralsAndUnixPathsAreTakenAsTheyAre) {
  EXPECT_EQ(ListenEndpoint("127.0.0.1:8080")->ToString(), "127.0.0.1:8080");
  EXPECT_EQ(ListenEndpoint("[::1]:0")->ToString(), "[::1]:0");
  EXPECT_EQ(ListenEndpoint("unix:/tmp/weir.sock")->ToString(), "unix:/tmp/weir.sock");
}

TEST(ListenEndpoint, APortAloneIsEveryInterface) {
  const std::string all = ListenEndpoint(":8080")->ToString();
  EXPECT_TRUE(all == "[::]:8080" || all == "0.0.0.0:8080") << all;
}

TEST(ListenEndpoint, NamesAreLookedUp) {
  const Result<net::Endpoint> endpoint = ListenEndpoint("localhost:8080");
  ASSERT_TRUE(endpoint.has_value());
  EXPECT_EQ(endpoint->port(), 8080);
}

TEST(ListenEndpoint, WhatIsNoAddressIsNamed) {
  for (const char* text : {"", "8080", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:99999"}) {
    EXPECT_FALSE(ListenEndpoint(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace weir::cli
