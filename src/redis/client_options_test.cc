#include "redis/client_options.h"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

using Kind = ClientOptions::Kind;

std::string Fault(std::string_view url) {
  const Result<ClientOptions> options = ParseUrl(url);
  if (options) return "";
  EXPECT_EQ(options.error().code, ErrorCode::kInvalidArgument);
  return options.error().message;
}

TEST(ParseUrl, ReadsAServer) {
  const ClientOptions options = ParseUrl("redis://127.0.0.1:6380/3").value();
  EXPECT_EQ(options.kind, Kind::kStandalone);
  EXPECT_EQ(options.addresses, (std::vector<Address>{{"127.0.0.1", 6380}}));
  EXPECT_EQ(options.database, 3);
  EXPECT_FALSE(options.tls.enabled);
  EXPECT_EQ(ParseUrl("redis://store.example.com")->addresses[0],
            (Address{"store.example.com", 6379}));
  EXPECT_EQ(ParseUrl("redis://[::1]:7000")->addresses[0], (Address{"::1", 7000}));
  EXPECT_EQ(ParseUrl("redis://[::1]")->addresses[0].ToString(), "[::1]:6379");
  EXPECT_EQ(ParseUrl("redis://localhost/")->database, 0);
}

TEST(ParseUrl, ReadsCredentials) {
  const ClientOptions options = ParseUrl("rediss://weir:p%40ss%2F%25@store:6379/0").value();
  EXPECT_TRUE(options.tls.enabled);
  EXPECT_EQ(options.credentials.user, "weir");
  EXPECT_EQ(options.credentials.password, "p@ss/%");
  EXPECT_EQ(ParseUrl("rediss://:secret@store")->credentials.user, "");
  EXPECT_EQ(ParseUrl("rediss://:secret@store")->credentials.password, "secret");
  EXPECT_EQ(ParseUrl("redis://weir@store")->credentials.user, "weir");
  EXPECT_EQ(ParseUrl("redis://:a:b@localhost")->credentials.password, "a:b");
}

TEST(ParseUrl, ReadsUnixSockets) {
  const ClientOptions options = ParseUrl("unix://weir:secret@/run/redis.sock?db=2").value();
  EXPECT_EQ(options.addresses, (std::vector<Address>{{"/run/redis.sock", 0}}));
  EXPECT_TRUE(options.addresses[0].is_unix());
  EXPECT_EQ(options.credentials.password, "secret");
  EXPECT_EQ(options.database, 2);
  EXPECT_EQ(ParseUrl("unix:///run/a@b.sock")->addresses[0].host, "/run/a@b.sock");
}

TEST(ParseUrl, ReadsSentinelsAndClusters) {
  const ClientOptions sentinel =
      ParseUrl("redis+sentinel://10.0.0.1,s2:26380,[fd00::1]/mymaster/4").value();
  EXPECT_EQ(sentinel.kind, Kind::kSentinel);
  EXPECT_EQ(sentinel.addresses,
            (std::vector<Address>{{"10.0.0.1", 26379}, {"s2", 26380}, {"fd00::1", 26379}}));
  EXPECT_EQ(sentinel.master_name, "mymaster");
  EXPECT_EQ(sentinel.database, 4);
  EXPECT_TRUE(ParseUrl("rediss+sentinel://h/m")->tls.enabled);
  const ClientOptions cluster = ParseUrl("redis+cluster://h1,h2:7001").value();
  EXPECT_EQ(cluster.kind, Kind::kCluster);
  EXPECT_EQ(cluster.addresses, (std::vector<Address>{{"h1", 6379}, {"h2", 7001}}));
  EXPECT_TRUE(ParseUrl("rediss+cluster://h1/0")->tls.enabled);
}

TEST(ParseUrl, NamesThePartThatIsWrong) {
  EXPECT_TRUE(Fault("127.0.0.1:6379").starts_with("url: no scheme; meant is redis://, "));
  EXPECT_TRUE(Fault("http://h").starts_with("url: the scheme is not known; meant is redis://, "));
  EXPECT_TRUE(Fault("redis+pool://h").starts_with("url: the scheme is not known"));
  EXPECT_TRUE(Fault("unix+cluster:///x").starts_with("url: the scheme is not known"));
  EXPECT_TRUE(Fault("redis+://h").starts_with("url: the scheme is not known"));
  EXPECT_EQ(Fault("redis://"), "url: the host is missing");
  EXPECT_EQ(Fault("redis://:6379"), "url: the host is missing");
  EXPECT_EQ(Fault("redis+cluster://h1,,h2"), "url: the host is missing");
  EXPECT_EQ(Fault("redis://h:0"), "url: the port must be a number from 1 to 65535");
  EXPECT_EQ(Fault("redis://h:65536"), "url: the port must be a number from 1 to 65535");
  EXPECT_EQ(Fault("redis://h:"), "url: the port must be a number from 1 to 65535");
  EXPECT_EQ(Fault("redis://::1:6379"), "url: the host: an IPv6 address must stand in [ ]");
  EXPECT_EQ(Fault("redis://[::1"), "url: the host: a [ without its ]");
  EXPECT_EQ(Fault("redis://[x]"), "url: the host: what stands in [ ] must be an IPv6 address");
  EXPECT_EQ(Fault("redis://[::1]6379"), "url: the port must follow the host after a colon");
  EXPECT_EQ(Fault("redis://h/x"), "url: the database must be a number from 0");
  EXPECT_EQ(Fault("redis://h/-1"), "url: the database must be a number from 0");
  EXPECT_EQ(Fault("redis://h1,h2"),
            "url: several hosts need redis+sentinel:// or redis+cluster://");
  EXPECT_EQ(Fault("redis+sentinel://h"),
            "url: the master's name is missing; meant is redis+sentinel://HOST,HOST/NAME");
  EXPECT_EQ(Fault("redis+cluster://h/1"),
            "url: a Cluster has no databases, so nothing may follow its hosts");
  EXPECT_EQ(Fault("unix://run/redis.sock"),
            "url: the socket must be an absolute path; meant is unix:///run/redis.sock");
  EXPECT_EQ(Fault("unix:///run/redis.sock?x=1"),
            "url: the only parameter that unix:// takes is ?db=N");
  EXPECT_EQ(Fault("unix:///" + std::string(107, 'x')),
            "url: the path of a unix socket has at most 107 bytes");
  EXPECT_EQ(Fault("redis://h?timeout=1"),
            "url: parameters (?…) are not known here; the configuration has keys for them");
  EXPECT_EQ(Fault("redis://h \n"), "url: it holds a blank or a control character");
}

TEST(ParseUrl, NeverRepeatsThePassword) {
  for (const std::string_view url :
       {"redis://u:hush/hush@h", "redis://u:hush?@h", "redis://u:hush#hush@h", "redis://:hush",
        "redis://u:hush%@localhost", "redis://u:hush%zz@h", "redis://hush%:x@h", "hush://x",
        "redis://u:hush@h:port", "redis://u:hush@h/db", "redis://u:hush@", "redis://u:hush@far",
        "redis+sentinel://u:hush@h", "redis+cluster://u:hush@h/7", "redis://u:hush@h1,h2",
        "unix://u:hush@nowhere", "unix://u:hush%@/x", "redis://u:hu sh@h", "hush"}) {
    const std::string fault = Fault(url);
    EXPECT_FALSE(fault.empty()) << url;
    EXPECT_EQ(fault.find("hush"), std::string::npos) << fault;
    EXPECT_EQ(fault.find("hu sh"), std::string::npos) << fault;
    if (!url.starts_with("hush")) {
      EXPECT_EQ(RedactedUrl(url).find("hush"), std::string::npos) << RedactedUrl(url);
    }
  }
}

TEST(ParseUrl, RefusesAPasswordInTheClearOffThisHost) {
  EXPECT_EQ(
      Fault("redis://:secret@10.0.0.1"),
      "url: a password would cross the network unencrypted; use rediss://, or insecure: true");
  EXPECT_TRUE(Fault("redis+sentinel://:secret@127.0.0.1,10.0.0.1/m")
                  .ends_with("use rediss+sentinel://, or insecure: true"));
  EXPECT_TRUE(
      Fault("redis+cluster://:secret@h").ends_with("use rediss+cluster://, or insecure: true"));
  for (const std::string_view url :
       {"redis://:secret@127.0.0.1", "redis://:secret@127.9.9.9", "redis://:secret@[::1]",
        "redis://:secret@localhost", "unix://:secret@/run/redis.sock", "rediss://:secret@10.0.0.1",
        "redis://user@10.0.0.1"}) {
    EXPECT_EQ(Fault(url), "") << url;
  }
  EXPECT_TRUE(ParseUrl("redis://:secret@10.0.0.1", /*insecure=*/true).has_value());
}

TEST(RedactedUrl, HidesThePasswordAlone) {
  EXPECT_EQ(RedactedUrl("rediss://weir:secret@store:6379/0"), "rediss://weir:***@store:6379/0");
  EXPECT_EQ(RedactedUrl("rediss://:se:cr@store"), "rediss://:***@store");
  EXPECT_EQ(RedactedUrl("redis://10.0.0.1/0"), "redis://10.0.0.1/0");
  EXPECT_EQ(RedactedUrl("unix://u:secret@/run/a@b.sock"), "unix://u:***@/run/a@b.sock");
  EXPECT_EQ(RedactedUrl("secret"), "(no url)");
}

}  // namespace
}  // namespace weir::redis
