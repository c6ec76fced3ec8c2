#include "identity/forwarded.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::identity {
namespace {

const std::vector<std::string> kTrusted = {"127.0.0.1/32", "10.0.0.0/8", "2001:db8:f::/48"};

class ClientAddressTest : public ::testing::Test {
 protected:
  std::string For(std::vector<std::string> lines, std::string_view peer = "127.0.0.1") {
    ForwardedLines headers;
    for (const std::string& line : lines) headers.AddForwardedFor(line);
    return Text(headers, peer);
  }
  std::string Forwarded(std::vector<std::string> lines, std::string_view peer = "127.0.0.1") {
    ForwardedLines headers;
    for (const std::string& line : lines) headers.AddForwarded(line);
    return Text(headers, peer);
  }
  std::string Text(const ForwardedLines& headers, std::string_view peer = "127.0.0.1") {
    return std::string(ClientAddress(*IpAddress::Parse(peer), trusted_, headers).Text().view());
  }

  CidrSet trusted_ = CidrSet::Create(kTrusted).value();
};

TEST_F(ClientAddressTest, Case62_TheLeftmostEntryIsTheClientsOwnWord) {
  for (int i = 0; i < 12; ++i) {
    const std::string invented = "192.0.2." + std::to_string(i);
    EXPECT_EQ(For({invented + ", 198.51.100.9"}), "198.51.100.9");
    EXPECT_EQ(For({invented, "198.51.100.9"}), "198.51.100.9");  // Two header lines.
    EXPECT_EQ(For({invented + ", 198.51.100.9"}, "203.0.113.50"),
              "203.0.113.50");  // Not from a trusted proxy.
    EXPECT_EQ(Forwarded({"for=" + invented + ", for=198.51.100.9"}), "198.51.100.9");
    EXPECT_EQ(Forwarded({"for=" + invented, "for=198.51.100.9;proto=https"}), "198.51.100.9");
    EXPECT_EQ(Forwarded({"for=" + invented}, "203.0.113.50"), "203.0.113.50");
  }
  EXPECT_EQ(For({"rand_1, 198.51.100.9"}), "198.51.100.9");
}

TEST_F(ClientAddressTest, TrustedHopsAreWalkedOver) {
  EXPECT_EQ(For({"192.0.2.1, 198.51.100.9, 10.1.1.1, 10.2.2.2"}), "198.51.100.9");
  EXPECT_EQ(For({"192.0.2.1", "198.51.100.9, 10.1.1.1", "10.2.2.2"}), "198.51.100.9");
  EXPECT_EQ(For({"10.3.3.3, 10.1.1.1"}), "10.3.3.3");  // All trusted: the farthest one.
  EXPECT_EQ(For({}), "127.0.0.1");
  EXPECT_EQ(For({""}), "127.0.0.1");
  EXPECT_EQ(For({"198.51.100.9,,  ,10.1.1.1 ,"}), "198.51.100.9");
  EXPECT_EQ(For({"198.51.100.9\t,\t2001:db8:f::1"}), "198.51.100.9");
}

TEST_F(ClientAddressTest, Case63_PortsDoNotMakeNewClients) {
  for (int port = 52241; port <= 52252; ++port) {
    EXPECT_EQ(For({"203.0.113.7:" + std::to_string(port)}), "203.0.113.7");
    EXPECT_EQ(Forwarded({"for=\"203.0.113.7:" + std::to_string(port) + "\""}), "203.0.113.7");
  }
  EXPECT_EQ(For({"[2001:db8::1]:443"}), "2001:db8::1");
  EXPECT_EQ(For({"2001:db8::1"}), "2001:db8::1");
  EXPECT_EQ(For({"203.0.113.8:52241"}), "203.0.113.8");
  EXPECT_EQ(For({"::ffff:203.0.113.7"}), "203.0.113.7");
}

TEST_F(ClientAddressTest, AnEntryThatIsNoAddressEndsTheWalk) {
  EXPECT_EQ(For({"192.0.2.1, garbage, 10.1.1.1"}), "10.1.1.1");
  EXPECT_EQ(For({"192.0.2.1, unknown"}), "127.0.0.1");
  EXPECT_EQ(For({"192.0.2.1", "garbage", "10.1.1.1"}), "10.1.1.1");
  EXPECT_EQ(Forwarded({"for=192.0.2.1, for=unknown"}), "127.0.0.1");
  EXPECT_EQ(Forwarded({"for=192.0.2.1, for=_hidden, for=10.1.1.1"}), "10.1.1.1");
  EXPECT_EQ(Forwarded({"for=192.0.2.1, proto=https"}), "127.0.0.1");  // An element without `for`.
}

TEST_F(ClientAddressTest, ForwardedIsReadAsRfc7239HasIt) {
  EXPECT_EQ(Forwarded({"for=\"[2001:db8:cafe::17]:4711\""}), "2001:db8:cafe::17");
  EXPECT_EQ(Forwarded({"For=192.0.2.60;proto=http;by=203.0.113.43"}), "192.0.2.60");
  EXPECT_EQ(Forwarded({"by=\"a,b;for=1.1.1.1\";FOR=192.0.2.60"}), "192.0.2.60");
  EXPECT_EQ(Forwarded({"for=192.0.2.43, for=10.0.0.1 , for=10.0.0.2"}), "192.0.2.43");
  EXPECT_EQ(Forwarded({",, for=192.0.2.43 ,"}), "192.0.2.43");
}

TEST_F(ClientAddressTest, ALineThatIsNotRfc7239SaysNothing) {
  // The client opened a quote that swallows what the proxy appended.
  EXPECT_EQ(Forwarded({"for=\"192.0.2.1, for=198.51.100.9"}), "127.0.0.1");
  EXPECT_EQ(Forwarded({"for=192.0.2.1;for=192.0.2.2"}), "127.0.0.1");
  EXPECT_EQ(Forwarded({"for=192.0.2.1 x"}), "127.0.0.1");
  EXPECT_EQ(Forwarded({"192.0.2.1"}), "127.0.0.1");
  EXPECT_EQ(Forwarded({"for="}), "127.0.0.1");
  EXPECT_EQ(Forwarded({"=192.0.2.1"}), "127.0.0.1");
  EXPECT_EQ(Forwarded({"for=192.0.2.1;"}), "127.0.0.1");
  EXPECT_EQ(Forwarded({"for=\"192.0.2.\\1\""}), "127.0.0.1");
  EXPECT_EQ(Forwarded({"for=\"192.0.2.1, ", "for=10.1.1.1"}),
            "10.1.1.1");  // Nearer lines still count.
}

TEST_F(ClientAddressTest, XForwardedForComesBeforeForwarded) {
  ForwardedLines headers;
  headers.AddForwarded("for=192.0.2.1");
  headers.AddForwardedFor("198.51.100.9");
  EXPECT_EQ(Text(headers), "198.51.100.9");
}

TEST_F(ClientAddressTest, WalksAreBounded) {
  std::string hops = "198.51.100.9";
  for (int i = 0; i < 31; ++i) hops += ", 10.0.0." + std::to_string(i);
  EXPECT_EQ(For({hops}), "198.51.100.9");  // The 32nd entry.
  EXPECT_EQ(For({hops + ", 10.9.9.9"}), "10.0.0.0");
  std::string forwarded = "for=198.51.100.9";
  for (int i = 0; i < 31; ++i) forwarded += ", for=10.0.0." + std::to_string(i);
  EXPECT_EQ(Forwarded({forwarded}), "198.51.100.9");
  EXPECT_EQ(Forwarded({forwarded + ", for=10.9.9.9"}), "10.0.0.0");
  std::vector<std::string> lines = {"198.51.100.9"};
  for (int i = 0; i < 7; ++i) lines.push_back("10.0.0." + std::to_string(i));
  EXPECT_EQ(For(lines), "198.51.100.9");  // The eighth line from the right.
  lines.push_back("10.9.9.9");
  EXPECT_EQ(For(lines), "10.0.0.0");
}

}  // namespace
}  // namespace weir::identity
