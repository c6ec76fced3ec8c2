#include "identity/credentials.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::identity {
namespace {

constexpr std::string_view kJwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln";

Credentials Bearer(std::string_view authorization, bool jwt_enabled = false) {
  CredentialLines lines;
  lines.authorization.Add(authorization);
  return ReadCredentials(lines, jwt_enabled);
}

TEST(ReadCredentials, Case68_OneSpellingOfABearerKey) {
  for (const char* good : {"Bearer K", "bearer K", "BEARER K"}) {
    EXPECT_EQ(Bearer(good).api_key, "K") << good;
    EXPECT_EQ(Bearer(good).error, CredentialError::kNone) << good;
  }
  for (const char* bad : {"Bearer  K", "Bearer", "Bearer ", "Bearer K K", "Bearer\tK", "Bearer K ",
                          "bearer \tK", ""}) {
    EXPECT_EQ(Bearer(bad).error, CredentialError::kMalformed) << bad;
    EXPECT_EQ(Bearer(bad).api_key, "") << bad;
  }
}

TEST(ReadCredentials, Case68_OtherSchemesAreNoKeys) {
  for (const char* other :
       {"x Bearer K", "Basic dXNlcjpwYXNz", "Bearerx K", "Digest username=\"a\"", "K"}) {
    EXPECT_EQ(Bearer(other).api_key, "") << other;
    EXPECT_EQ(Bearer(other).jwt, "") << other;
    EXPECT_EQ(Bearer(other).error, CredentialError::kNone) << other;
  }
}

TEST(ReadCredentials, KeysStandInThreeHeaders) {
  CredentialLines lines;
  lines.api_key.Add("third");
  EXPECT_EQ(ReadCredentials(lines, false).api_key, "third");
  lines.x_api_key.Add("second");
  EXPECT_EQ(ReadCredentials(lines, false).api_key, "second");
  lines.authorization.Add("Bearer first");
  EXPECT_EQ(ReadCredentials(lines, false).api_key, "first");
}

TEST(ReadCredentials, AnOtherSchemeLeavesTheKeyHeaders) {
  CredentialLines lines;
  lines.authorization.Add("Basic dXNlcjpwYXNz");
  lines.x_api_key.Add("K");
  EXPECT_EQ(ReadCredentials(lines, false).api_key, "K");
}

TEST(ReadCredentials, Case71_BytesThatNoKeyHasAreRefused) {
  const std::string bad[] = {
      "", "a\r\nb", std::string(1, '\0'), "\xff", "\xc3\xa9", "a b", "\x7f", " a", "a\t"};
  for (const std::string& key : bad) {
    CredentialLines lines;
    lines.x_api_key.Add(key);
    EXPECT_EQ(ReadCredentials(lines, false).error, CredentialError::kMalformed) << key;
  }
}

TEST(ReadCredentials, Case71_LengthIsBounded) {
  const std::string longest(kMaxCredentialBytes, 'k');
  EXPECT_EQ(Bearer("Bearer " + longest).api_key, longest);
  EXPECT_EQ(Bearer("Bearer " + longest + "k").error, CredentialError::kTooLong);
  CredentialLines lines;
  lines.api_key.Add(std::string_view(longest));
  EXPECT_EQ(ReadCredentials(lines, false).error, CredentialError::kNone);
}

TEST(ReadCredentials, TwoDifferentValuesOfOneHeaderAreRefused) {
  CredentialLines lines;
  lines.authorization.Add("Bearer a");
  lines.authorization.Add("Bearer a");
  EXPECT_EQ(ReadCredentials(lines, false).api_key, "a");
  lines.authorization.Add("Bearer b");
  EXPECT_EQ(ReadCredentials(lines, false).error, CredentialError::kConflicting);
  CredentialLines emptied;
  emptied.x_api_key.Add("");
  emptied.x_api_key.Add("k");
  EXPECT_EQ(ReadCredentials(emptied, false).error, CredentialError::kConflicting);
}

TEST(ReadCredentials, AJwtIsNeverAKeyWhereTokensAreVerified) {
  const std::string header = "Bearer " + std::string(kJwt);
  EXPECT_EQ(Bearer(header, /*jwt_enabled=*/true).jwt, kJwt);
  EXPECT_EQ(Bearer(header, /*jwt_enabled=*/true).api_key, "");
  EXPECT_EQ(Bearer(header, /*jwt_enabled=*/false).api_key, kJwt);
  EXPECT_EQ(Bearer("Bearer sk-1", /*jwt_enabled=*/true).api_key, "sk-1");
}

TEST(ReadCredentials, ATokenAndAKeyAreBothFound) {
  CredentialLines lines;
  lines.authorization.Add("Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln");
  lines.x_api_key.Add("K");
  EXPECT_EQ(ReadCredentials(lines, true).jwt, "eyJhbGciOiJIUzI1NiJ9.e30.c2ln");
  EXPECT_EQ(ReadCredentials(lines, true).api_key, "K");
}

TEST(LooksLikeJwt, GoesByShapeAlone) {
  EXPECT_TRUE(LooksLikeJwt(kJwt));
  EXPECT_TRUE(LooksLikeJwt("eyJhbGciOiJub25lIn0.e30."));  // No signature.
  EXPECT_TRUE(LooksLikeJwt("ewogImFsZyI6.e30.c2ln"));     // "{\n"
  EXPECT_TRUE(LooksLikeJwt("eyJ=.e30.c2ln"));             // Damaged, and still no key.
  EXPECT_TRUE(LooksLikeJwt("eyJ.e30.c2ln.x.y"));          // Encrypted.
  EXPECT_FALSE(LooksLikeJwt("sk.live.key"));
  EXPECT_FALSE(LooksLikeJwt("eA.live.key"));
  EXPECT_FALSE(LooksLikeJwt("eyJhbGciOiJIUzI1NiJ9.e30"));
  EXPECT_FALSE(LooksLikeJwt(""));
}

}  // namespace
}  // namespace weir::identity
