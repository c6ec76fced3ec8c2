#include "identity/client_identity.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "identity/token_maker.h"

namespace weir::identity {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kNowNs = 1'796'068'800 * kSecondNs;

class ClientIdentityTest : public ::testing::Test {
 protected:
  void Use(std::vector<std::string> client, std::string_view require = "", bool jwt = false) {
    IdentityOptions options;
    for (const std::string& source : client)
      options.client.push_back(ParseClientSource(source).value());
    if (!require.empty()) options.require = ParseClientSource(require).value();
    if (jwt)
      options.jwt = JwtOptions{.keys = std::string(TokenMaker::kSecret),
                               .algorithms = {JwtAlgorithm::kHs256}};
    options.trusted_proxies = CidrSet::Create(std::vector<std::string>{"127.0.0.1"}).value();
    resolver_ = IdentityResolver::Create(std::move(options)).value();
  }

  Identity Of(const Headers& headers, std::string_view peer = "203.0.113.7",
              int64_t wall_ns = kNowNs) {
    IdentityRequest request(*resolver_, *IpAddress::Parse(peer));
    for (const auto& [name, value] : headers) request.Offer(name, value);
    return resolver_->Resolve(request, cache_, wall_ns);
  }

  // "key", "jwt", "header" or "ip" when the client is that kind of id of `credential`; else what
  // went wrong.
  std::string Named(const Headers& headers, std::string_view peer = "203.0.113.7") {
    const Identity who = Of(headers, peer);
    if (who.outcome != IdentityOutcome::kOk) return "refused: " + std::string(who.reason);
    return std::string(who.client.view().substr(0, who.client.view().find(':')));
  }

  static std::string Token(std::string_view subject, int64_t expires_s = 1'796'069'000) {
    return TokenMaker::Hs256(
        R"({"alg":"HS256"})",
        R"({"sub":")" + std::string(subject) + R"(","exp":)" + std::to_string(expires_s) + "}");
  }

  IdHasher hasher_ = IdHasher::Create("0123456789abcdef").value();
  IdentityCache cache_{hasher_};
  std::unique_ptr<IdentityResolver> resolver_;
};

TEST_F(ClientIdentityTest, TheFirstSourcePresentNamesTheClient) {
  Use({"api_key", "jwt.sub", "header.x-user-id", "ip"}, "", /*jwt=*/true);
  const std::string bearer = "Bearer " + Token("alice");
  EXPECT_EQ(Named({{"X-Api-Key", "K"}, {"Authorization", bearer}, {"X-User-Id", "u"}}, "127.0.0.1"),
            "key");
  EXPECT_EQ(Named({{"Authorization", bearer}, {"X-User-Id", "u"}}, "127.0.0.1"), "jwt");
  EXPECT_EQ(Named({{"X-User-Id", "u"}}, "127.0.0.1"), "header");
  EXPECT_EQ(Named({}, "127.0.0.1"), "ip");
  Use({"header.x-user-id", "api_key"});
  EXPECT_EQ(Named({{"X-Api-Key", "K"}, {"X-User-Id", "u"}}, "127.0.0.1"), "header");
  EXPECT_EQ(Named({}, "127.0.0.1"), "ip");  // ip ends every chain.
  EXPECT_EQ(Of({{"X-Api-Key", "K"}}).source, ClientSource::Kind::kApiKey);
}

TEST_F(ClientIdentityTest, IdsAreTheHashersAndOneKeyIsOneClient) {
  Use({"api_key", "jwt.sub", "ip"}, "", /*jwt=*/true);
  EXPECT_EQ(Of({{"Authorization", "Bearer K"}}).client, hasher_.Hash(IdKind::kKey, "K"));
  EXPECT_EQ(Of({{"authorization", "bearer K"}}).client, hasher_.Hash(IdKind::kKey, "K"));
  EXPECT_EQ(Of({{"X-API-KEY", "K"}}).client, hasher_.Hash(IdKind::kKey, "K"));
  EXPECT_EQ(Of({{"api-key", "K"}}).client, hasher_.Hash(IdKind::kKey, "K"));
  EXPECT_EQ(Of({{"Authorization", "Bearer " + Token("alice")}}).client,
            hasher_.Hash(IdKind::kJwt, "alice"));
  EXPECT_EQ(Of({}).client, hasher_.Hash(IdKind::kIp, "203.0.113.7"));
}

TEST_F(ClientIdentityTest, KindsNeverShareAnId) {
  Use({"api_key", "jwt.sub", "header.x-user-id", "header.x-team", "ip"}, "", /*jwt=*/true);
  const std::string_view same = "203.0.113.7";
  std::set<std::string> ids;
  ids.emplace(Of({{"x-api-key", std::string(same)}}).client.view());
  ids.emplace(Of({{"authorization", "Bearer " + Token(same)}}).client.view());
  ids.emplace(Of({{"x-user-id", std::string(same)}}, "127.0.0.1").client.view());
  ids.emplace(Of({{"x-team", std::string(same)}}, "127.0.0.1").client.view());
  ids.emplace(Of({}, same).client.view());
  EXPECT_EQ(ids.size(), 5u);
}

TEST_F(ClientIdentityTest, Case62_OnlyTrustedProxiesNameAddresses) {
  Use({"ip"});
  const ClientId real = hasher_.Hash(IdKind::kIp, "198.51.100.9");
  for (int i = 0; i < 12; ++i) {
    const std::string invented = "192.0.2." + std::to_string(i);
    EXPECT_EQ(Of({{"X-Forwarded-For", invented + ", 198.51.100.9"}}, "127.0.0.1").client, real);
    EXPECT_EQ(Of({{"X-Forwarded-For", invented}, {"x-forwarded-for", "198.51.100.9"}}, "127.0.0.1")
                  .client,
              real);
    EXPECT_EQ(Of({{"X-Forwarded-For", invented + ", 198.51.100.9"}}, "203.0.113.50").client,
              hasher_.Hash(IdKind::kIp, "203.0.113.50"));
  }
  EXPECT_EQ(Of({{"Forwarded", "for=198.51.100.9"}}, "127.0.0.1").ip.view(), "198.51.100.9");
}

TEST_F(ClientIdentityTest, Case63_PortsAndMappedAddressesAreOneClient) {
  Use({"ip"});
  std::set<std::string> ids;
  for (int port = 52241; port <= 52252; ++port) {
    ids.emplace(Of({{"X-Forwarded-For", "203.0.113.7:" + std::to_string(port)}}, "127.0.0.1")
                    .client.view());
  }
  ids.emplace(Of({}, "::ffff:203.0.113.7").client.view());
  EXPECT_EQ(ids.size(), 1u);
  EXPECT_EQ(Of({{"X-Forwarded-For", "[2001:db8::1]:443"}}, "127.0.0.1").client,
            Of({{"X-Forwarded-For", "2001:db8::1"}}, "127.0.0.1").client);
}

TEST_F(ClientIdentityTest, Case65_OneSixtyFourIsOneClient) {
  Use({"ip"});
  std::set<std::string> ids;
  for (int i = 0; i < 20; ++i)
    ids.emplace(Of({}, "2001:db8:1:2::" + std::to_string(i)).client.view());
  EXPECT_EQ(ids.size(), 1u);
  EXPECT_EQ(Of({}, "2001:db8:1:2::9").ip.view(), "2001:db8:1:2::/64");
  EXPECT_EQ(Of({}, "2001:db8:1:2::9").address.Text().view(), "2001:db8:1:2::9");
  EXPECT_NE(Of({}, "2001:db8:1:3::9").client.view(), *ids.begin());
}

TEST_F(ClientIdentityTest, Case66_AnonymousCallersAreOneClientPerAddress) {
  Use({"jwt.sub", "ip"}, "", /*jwt=*/true);
  std::set<std::string> ids;
  for (int i = 0; i < 10; ++i) {
    const Identity who = Of({{"Authorization", "Bearer " + Token("user-" + std::to_string(i))}});
    EXPECT_EQ(who.outcome, IdentityOutcome::kOk);
    ids.emplace(who.client.view());
  }
  for (int i = 0; i < 6; ++i) ids.emplace(Of({}, "198.51.100.1").client.view());
  ids.emplace(Of({}, "198.51.100.2").client.view());
  EXPECT_EQ(ids.size(), 12u);
  EXPECT_FALSE(ids.contains(""));
}

TEST_F(ClientIdentityTest, Case66_UnknownSourcesAreRefusedAtLoad) {
  for (const char* bad : {"", "apikey", "jwt", "jwt.email", "header.", "header.x y", "API_KEY",
                          "header.x:y", "ip "}) {
    const auto source = ParseClientSource(bad);
    ASSERT_FALSE(source.has_value()) << bad;
    EXPECT_EQ(source.error().message,
              "\"" + std::string(bad) +
                  "\" names no client: api_key, jwt.sub, header.NAME or ip is meant");
  }
  EXPECT_EQ(ParseClientSource("header.X-User-Id").value().header, "x-user-id");
  EXPECT_FALSE(ParseClientSource("header." + std::string(65, 'x')).has_value());
}

TEST_F(ClientIdentityTest, Case67_ForgedTokensNameNobody) {
  Use({"api_key", "jwt.sub", "ip"}, "", /*jwt=*/true);
  const std::string good = Token("someone");
  for (int i = 0; i < 20; ++i) {
    const std::string other = Token("user-" + std::to_string(i));
    const std::string forged = other.substr(0, other.rfind('.')) + good.substr(good.rfind('.'));
    const Identity who = Of({{"Authorization", "Bearer " + forged}});
    EXPECT_EQ(who.outcome, IdentityOutcome::kInvalid);
    EXPECT_EQ(who.reason, "the token's signature does not verify");
    EXPECT_EQ(who.client, hasher_.Hash(IdKind::kIp, "203.0.113.7"));  // Charged to the address.
    EXPECT_EQ(who.ip.view(), "203.0.113.7");
  }
}

TEST_F(ClientIdentityTest, Case67_AnInvalidCredentialNeverFallsThrough) {
  Use({"api_key", "jwt.sub", "header.x-user-id", "ip"}, "", /*jwt=*/true);
  EXPECT_EQ(Named({{"Authorization", "Bearer  K"}}), "refused: the credential is malformed");
  EXPECT_EQ(Named({{"Authorization", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0."}}),
            "refused: the token's algorithm is not accepted");
  EXPECT_EQ(Named({{"Authorization", "Bearer " + Token("a", 1'000)}, {"x-api-key", "K"}}),
            "refused: the token has expired");
  EXPECT_EQ(Named({{"x-api-key", ""}}), "refused: the credential is malformed");
  EXPECT_EQ(Named({{"x-api-key", "a"}, {"X-API-Key", "b"}}),
            "refused: the credential is given more than once");
  EXPECT_EQ(Named({{"api-key", std::string(8193, 'k')}}), "refused: the credential is too long");
}

TEST_F(ClientIdentityTest, Case68_SpellingsOfOneKeyAreOneClientOrRefused) {
  Use({"api_key", "ip"}, "api_key");
  std::set<std::string> ids;
  for (const char* good : {"Bearer K", "bearer K"})
    ids.emplace(Of({{"Authorization", good}}).client.view());
  EXPECT_EQ(ids.size(), 1u);
  EXPECT_EQ(Named({{"Authorization", "Bearer  K"}}), "refused: the credential is malformed");
  EXPECT_EQ(Named({{"Authorization", "x Bearer K"}}), "refused: an API key is required");
}

TEST_F(ClientIdentityTest, Case71_HeaderIdentitiesAreBounded) {
  Use({"header.x-user-id", "ip"});
  EXPECT_EQ(Named({{"x-user-id", std::string(1024, 'u')}}, "127.0.0.1"), "header");
  EXPECT_EQ(Named({{"x-user-id", std::string(1025, 'u')}}, "127.0.0.1"),
            "refused: the identity header is too long");
  EXPECT_EQ(Named({{"x-user-id", "a"}, {"x-user-id", "b"}}, "127.0.0.1"),
            "refused: the identity header is given more than once");
  EXPECT_EQ(Named({{"x-user-id", ""}}, "127.0.0.1"), "ip");
  EXPECT_NE(Of({{"x-user-id", "\xc3\xa9"}}, "127.0.0.1").client,
            Of({{"x-user-id", "e\xcc\x81"}}, "127.0.0.1").client);
}

TEST_F(ClientIdentityTest, Case87_RandomKeysShareOneAddress) {
  Use({"api_key", "ip"});
  std::set<std::string> clients, ips;
  for (int i = 0; i < 1000; ++i) {
    const Identity who = Of({{"Authorization", "Bearer random-" + std::to_string(i)}});
    clients.emplace(who.client.view());
    ips.emplace(who.ip.view());
  }
  EXPECT_EQ(clients.size(), 1000u);
  EXPECT_EQ(ips, std::set<std::string>{"203.0.113.7"});  // What a per-ip limit counts under.
}

TEST_F(ClientIdentityTest, HeaderIdentitiesComeFromTrustedProxiesOnly) {
  Use({"header.x-user-id", "ip"}, "header.x-user-id");
  EXPECT_EQ(Named({{"X-User-Id", "alice"}}, "127.0.0.1"), "header");
  EXPECT_EQ(Named({{"X-User-Id", "alice"}}, "203.0.113.7"),
            "refused: a client identity is required");
  // The proxy is trusted, whoever stands behind it.
  EXPECT_EQ(Named({{"X-User-Id", "alice"}, {"X-Forwarded-For", "203.0.113.7"}}, "127.0.0.1"),
            "header");
}

TEST_F(ClientIdentityTest, RequiredSourcesThatAreAbsent) {
  Use({"api_key", "jwt.sub", "ip"}, "api_key", /*jwt=*/true);
  const Identity who = Of({{"Authorization", "Bearer " + Token("alice")}});
  EXPECT_EQ(who.outcome, IdentityOutcome::kMissing);
  EXPECT_EQ(who.reason, "an API key is required");
  EXPECT_EQ(who.client, hasher_.Hash(IdKind::kIp, "203.0.113.7"));
  Use({"api_key", "jwt.sub", "ip"}, "jwt.sub", /*jwt=*/true);
  EXPECT_EQ(Named({{"x-api-key", "K"}}), "refused: a token is required");
  EXPECT_EQ(Named({{"x-api-key", "K"}, {"Authorization", "Bearer " + Token("alice")}}), "key");
}

TEST_F(ClientIdentityTest, VerifiedTokensAreRememberedUntilTheyExpire) {
  Use({"jwt.sub", "ip"}, "", /*jwt=*/true);
  const Headers headers = {{"Authorization", "Bearer " + Token("alice")}};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Of(headers).outcome, IdentityOutcome::kOk);
  EXPECT_EQ(cache_.token_misses(), 1u);
  EXPECT_EQ(Of(headers, "203.0.113.7", 1'796'069'059 * kSecondNs).outcome, IdentityOutcome::kOk);
  EXPECT_EQ(cache_.token_misses(), 1u);
  EXPECT_EQ(Of(headers, "203.0.113.7", 1'796'069'060 * kSecondNs).reason, "the token has expired");
  EXPECT_EQ(cache_.token_misses(), 2u);
}

// A signature costs up to 80 µs to refuse: one token costs it once, not with every call.
TEST_F(ClientIdentityTest, Case67_RefusedTokensAreRememberedToo) {
  Use({"jwt.sub", "ip"}, "", /*jwt=*/true);
  const std::string good = Token("alice");
  const Headers forged = {{"Authorization", "Bearer " + good.substr(0, good.size() - 4) + "AAAA"}};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Of(forged).reason, "the token's signature does not verify");
  EXPECT_EQ(cache_.token_misses(), 1u);
  // More forgeries than there is room for displace one another, and no valid token.
  const Headers valid = {{"Authorization", "Bearer " + good}};
  EXPECT_EQ(Of(valid).outcome, IdentityOutcome::kOk);
  EXPECT_EQ(cache_.token_misses(), 2u);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(Of({{"Authorization", "Bearer " + Token("eve" + std::to_string(i)) + "A"}}).outcome,
              IdentityOutcome::kInvalid);
  }
  EXPECT_EQ(cache_.token_misses(), 1002u);
  EXPECT_EQ(Of(valid).outcome, IdentityOutcome::kOk);
  EXPECT_EQ(cache_.token_misses(), 1002u);
  // Another policy's keys may verify it.
  Use({"jwt.sub", "ip"}, "", /*jwt=*/true);
  EXPECT_EQ(Of(forged).outcome, IdentityOutcome::kInvalid);
  EXPECT_EQ(cache_.token_misses(), 1003u);
}

TEST_F(ClientIdentityTest, ARefusalThatTimeOrAClockMendsIsLookedAtAgain) {
  Use({"jwt.sub", "ip"}, "", /*jwt=*/true);
  const auto at = [&](const Headers& headers, int64_t wall_s) {
    return Of(headers, "203.0.113.7", wall_s * kSecondNs).reason;
  };
  const Headers early = {
      {"Authorization",
       "Bearer " + TokenMaker::Hs256(R"({"alg":"HS256"})",
                                     R"({"sub":"alice","nbf":1796070000,"exp":1796080000})")}};
  EXPECT_EQ(at(early, 1'796'069'000), "the token is not valid yet");
  EXPECT_EQ(at(early, 1'796'070'000), "");
  EXPECT_EQ(at(early, 1'796'080'060), "the token has expired");
  const Headers late = {
      {"Authorization",
       "Bearer " + TokenMaker::Hs256(R"({"alg":"HS256"})", R"({"sub":"bob","exp":1796070000})")}};
  EXPECT_EQ(at(late, 1'796'070'060), "the token has expired");
  EXPECT_EQ(at(late, 1'796'070'061), "the token has expired");
  EXPECT_EQ(at(late, 1'796'070'000), "");  // The clock was set back.
}

TEST_F(ClientIdentityTest, AnotherPolicyVerifiesAgain) {
  Use({"jwt.sub", "ip"}, "", /*jwt=*/true);
  const Headers headers = {{"Authorization", "Bearer " + Token("alice")}};
  EXPECT_EQ(Of(headers).outcome, IdentityOutcome::kOk);
  IdentityOptions options;
  options.client = {ParseClientSource("jwt.sub").value()};
  options.jwt = JwtOptions{.keys = std::string(32, 'n'), .algorithms = {JwtAlgorithm::kHs256}};
  resolver_ =
      IdentityResolver::Create(std::move(options)).value();  // A reload that changed the key.
  EXPECT_EQ(Of(headers).reason, "the token's signature does not verify");
}

std::string CreateError(IdentityOptions options) {
  const auto resolver = IdentityResolver::Create(std::move(options));
  return resolver ? "accepted" : resolver.error().message;
}

TEST(IdentityResolver, ImpossibleOptionsAreRefused) {
  const auto source = [](const char* text) { return ParseClientSource(text).value(); };
  const CidrSet loopback = CidrSet::Create(std::vector<std::string>{"127.0.0.1"}).value();
  EXPECT_EQ(CreateError({}), "accepted");
  EXPECT_EQ(CreateError({.client = {source("api_key"), source("api_key")}}),
            "identity.client: names one source twice");
  EXPECT_EQ(CreateError({.client = {source("ip"), source("api_key")}}),
            "identity.client: ip always applies, so nothing can follow it");
  EXPECT_EQ(CreateError({.client = {source("jwt.sub")}}), "identity: jwt.sub needs identity.jwt");
  EXPECT_EQ(CreateError({.client = {source("header.x-user-id")}}),
            "identity: header.x-user-id needs identity.trusted_proxies, which alone may name "
            "clients by headers");
  EXPECT_EQ(CreateError({.client = {source("header.a"), source("header.b"), source("header.c"),
                                    source("header.d"), source("header.e")},
                         .trusted_proxies = loopback}),
            "identity: at most 4 headers can name clients");
  EXPECT_EQ(CreateError({.ipv6_prefix = 0}), "identity.ipv6_prefix: must be 1 to 128");
  EXPECT_EQ(CreateError({.ipv6_prefix = 129}), "identity.ipv6_prefix: must be 1 to 128");
  EXPECT_EQ(CreateError({.jwt = JwtOptions{.keys = "x", .algorithms = {JwtAlgorithm::kHs256}}}),
            "identity.jwt.keys: an HS256 secret needs at least 32 bytes");
}

}  // namespace
}  // namespace weir::identity
