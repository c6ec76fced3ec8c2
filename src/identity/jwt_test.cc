#include "identity/jwt.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "identity/base64url.h"
#include "identity/token_maker.h"

namespace weir::identity {
namespace {

using enum JwtAlgorithm;

constexpr int64_t kNowS = 1'796'068'800;
constexpr std::string_view kGoodClaims = R"({"sub":"alice","exp":1796068900})";

const TokenMaker& Maker() {
  static const TokenMaker maker;
  return maker;
}

JwtVerifier Verifier(std::string keys, std::vector<JwtAlgorithm> algorithms,
                     std::string issuer = "", std::string audience = "") {
  return JwtVerifier::Create(
             {std::move(keys), std::move(algorithms), std::move(issuer), std::move(audience)})
      .value();
}

JwtVerifier HsVerifier() { return Verifier(std::string(TokenMaker::kSecret), {kHs256}); }

// "ok alice 1796068960", or the error's text.
std::string Result(const JwtVerifier& verifier, const std::string& token, int64_t now_s = kNowS) {
  const auto claims = verifier.Verify(token, now_s * 1'000'000'000);
  if (!claims) return std::string(JwtErrorText(claims.error()));
  return "ok " + claims->subject + " " + std::to_string(claims->expires_s);
}

std::string HsResult(std::string_view header, std::string_view claims, int64_t now_s = kNowS) {
  return Result(HsVerifier(), TokenMaker::Hs256(header, claims), now_s);
}

std::string HsClaims(std::string_view claims, int64_t now_s = kNowS) {
  return HsResult(R"({"alg":"HS256"})", claims, now_s);
}

TEST(JwtVerifier, AcceptsEachAlgorithm) {
  EXPECT_EQ(HsClaims(kGoodClaims), "ok alice 1796068960");
  EXPECT_EQ(Result(Verifier(Maker().RsaPem(), {kRs256}),
                   Maker().Rs256(R"({"alg":"RS256","typ":"JWT"})", kGoodClaims)),
            "ok alice 1796068960");
  EXPECT_EQ(
      Result(Verifier(Maker().EcPem(), {kEs256}), Maker().Es256(R"({"alg":"ES256"})", kGoodClaims)),
      "ok alice 1796068960");
  const JwtVerifier both = Verifier(Maker().EcPem() + Maker().RsaPem(), {kRs256, kEs256});
  EXPECT_EQ(Result(both, Maker().Rs256(R"({"alg":"RS256"})", kGoodClaims)), "ok alice 1796068960");
  EXPECT_EQ(Result(both, Maker().Es256(R"({"alg":"ES256"})", kGoodClaims)), "ok alice 1796068960");
}

// The examples of RFC 7515, appendix A.1 to A.3. Their claims have no subject, which is only said
// of good signatures.
constexpr std::string_view kRfcClaims =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlf"
    "Q";
constexpr int64_t kRfcNowS = 1'300'000'000;

void ExpectRfcSignature(const std::string& jwk, JwtAlgorithm algorithm, std::string header,
                        std::string signature) {
  const JwtVerifier verifier = Verifier("{\"keys\":[" + jwk + "]}", {algorithm});
  const std::string signed_text = header + "." + std::string(kRfcClaims) + ".";
  EXPECT_EQ(Result(verifier, signed_text + signature, kRfcNowS), "the token has no subject");
  signature[10] = signature[10] == 'A' ? 'B' : 'A';
  EXPECT_EQ(Result(verifier, signed_text + signature, kRfcNowS),
            "the token's signature does not verify");
}

TEST(JwtVerifier, Rfc7515ExampleHs256) {
  ExpectRfcSignature(
      R"({"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"})",
      kHs256, "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9",
      "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
}

TEST(JwtVerifier, Rfc7515ExampleRs256) {
  ExpectRfcSignature(
      R"({"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJ)"
      R"(PMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBY)"
      R"(UsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9ia)"
      R"(GNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"})",
      kRs256, "eyJhbGciOiJSUzI1NiJ9",
      "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_"
      "O8W2Fp5jujGbds9uJdbF9CUAr7"
      "t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_"
      "eSN9383LcOLn6_dO--xi1"
      "2jzDwusC-"
      "eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0i"
      "gcN_IoypGlU"
      "PQGe77Rw");
}

TEST(JwtVerifier, Rfc7515ExampleEs256) {
  ExpectRfcSignature(
      R"({"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
      R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"})",
      kEs256, "eyJhbGciOiJFUzI1NiJ9",
      "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q");
}

TEST(JwtVerifier, Case67_UnsignedAndForgedTokensAreRefused) {
  EXPECT_EQ(HsResult(R"({"alg":"none"})", kGoodClaims), "the token's algorithm is not accepted");
  EXPECT_EQ(HsResult(R"({"alg":"None"})", kGoodClaims), "the token's algorithm is not accepted");
  EXPECT_EQ(HsResult(R"({"alg":"hs256"})", kGoodClaims), "the token's algorithm is not accepted");
  EXPECT_EQ(HsResult(R"({"alg":""})", kGoodClaims), "the token's algorithm is not accepted");
  EXPECT_EQ(HsResult(R"({})", kGoodClaims), "the token is malformed");
  EXPECT_EQ(Result(HsVerifier(), TokenMaker::Hs256(R"({"alg":"HS256"})", kGoodClaims,
                                                   "some other secret of 32 bytes..")),
            "the token's signature does not verify");
  const std::string good = TokenMaker::Hs256(R"({"alg":"HS256"})", kGoodClaims);
  EXPECT_EQ(Result(HsVerifier(), good.substr(0, good.rfind('.') + 1)),
            "the token's signature does not verify");
  for (int i = 0; i < 20; ++i) {  // Another subject under the signature of the first.
    const std::string claims = R"({"sub":"user-)" + std::to_string(i) + R"(","exp":1796068900})";
    const std::string forged = TokenMaker::Hs256(R"({"alg":"HS256"})", claims);
    EXPECT_EQ(
        Result(HsVerifier(), forged.substr(0, forged.rfind('.')) + good.substr(good.rfind('.'))),
        "the token's signature does not verify");
  }
}

TEST(JwtVerifier, Case67_APublicKeyIsNoHmacSecret) {
  const std::string pem = Maker().RsaPem();
  const std::string forged = TokenMaker::Hs256(R"({"alg":"HS256"})", kGoodClaims, pem);
  EXPECT_EQ(Result(Verifier(pem, {kRs256}), forged), "the token's algorithm is not accepted");
  EXPECT_EQ(Result(Verifier(pem, {kRs256, kHs256}), forged), "the token's key is not known");
  EXPECT_FALSE(JwtVerifier::Create({.keys = pem, .algorithms = {kHs256}}).has_value());
  // And the other way: the RSA key's signature under another algorithm's name.
  EXPECT_EQ(
      Result(Verifier(pem, {kRs256, kEs256}), Maker().Rs256(R"({"alg":"ES256"})", kGoodClaims)),
      "the token's key is not known");
}

TEST(JwtVerifier, TimesAreJudgedWithLeeway) {
  EXPECT_EQ(HsClaims(kGoodClaims, 1796068959), "ok alice 1796068960");
  EXPECT_EQ(HsClaims(kGoodClaims, 1796068960), "the token has expired");
  EXPECT_EQ(HsClaims(R"({"sub":"a","exp":1796068900.9})", 1796068959), "ok a 1796068960");
  EXPECT_EQ(HsClaims(R"({"sub":"a","exp":1796069900,"nbf":1796068860})"), "ok a 1796069960");
  EXPECT_EQ(HsClaims(R"({"sub":"a","exp":1796069900,"nbf":1796068861})"),
            "the token is not valid yet");
  EXPECT_EQ(HsClaims(R"({"sub":"a"})"), "the token has no expiry");
  EXPECT_EQ(HsClaims(R"({"sub":"a","exp":"1796069900"})"), "the token is malformed");
  EXPECT_EQ(HsClaims(R"({"sub":"a","exp":null})"), "the token is malformed");
  EXPECT_EQ(HsClaims(R"({"sub":"a","exp":1e300})"), "ok a 9007199254741052");
  EXPECT_EQ(HsClaims(R"({"sub":"a","exp":9223372036854775807})"), "ok a 9007199254741052");
  EXPECT_EQ(HsClaims(R"({"sub":"a","exp":-9223372036854775808})"), "the token has expired");
  EXPECT_EQ(HsClaims(R"({"sub":"a","exp":18446744073709551615})"), "ok a 9007199254741052");
}

TEST(JwtVerifier, IssuerAndAudienceMustBeTheConfiguredOnes) {
  const JwtVerifier verifier =
      Verifier(std::string(TokenMaker::kSecret), {kHs256}, "https://issuer", "weir");
  const auto result = [&](std::string_view rest) {
    return Result(verifier,
                  TokenMaker::Hs256(R"({"alg":"HS256"})",
                                    R"({"sub":"a","exp":1796069900)" + std::string(rest) + "}"));
  };
  EXPECT_EQ(result(R"(,"iss":"https://issuer","aud":"weir")"), "ok a 1796069960");
  EXPECT_EQ(result(R"(,"iss":"https://issuer","aud":["x","weir"])"), "ok a 1796069960");
  EXPECT_EQ(result(R"(,"iss":"https://other","aud":"weir")"), "the token's issuer is not accepted");
  EXPECT_EQ(result(R"(,"aud":"weir")"), "the token's issuer is not accepted");
  EXPECT_EQ(result(R"(,"iss":"https://issuer","aud":"weir2")"),
            "the token is for another audience");
  EXPECT_EQ(result(R"(,"iss":"https://issuer","aud":[])"), "the token is for another audience");
  EXPECT_EQ(result(R"(,"iss":"https://issuer")"), "the token is for another audience");
  EXPECT_EQ(result(R"(,"iss":"https://issuer","aud":["weir",1])"), "the token is malformed");
  EXPECT_EQ(result(R"(,"iss":["https://issuer"],"aud":"weir")"), "the token is malformed");
}

TEST(JwtVerifier, SubjectsMustBeNames) {
  EXPECT_EQ(HsClaims(R"({"exp":1796069900})"), "the token has no subject");
  EXPECT_EQ(HsClaims(R"({"sub":"","exp":1796069900})"), "the token has no subject");
  EXPECT_EQ(HsClaims(R"({"sub":7,"exp":1796069900})"), "the token is malformed");
  EXPECT_EQ(HsClaims(R"({"sub":")" + std::string(1025, 'a') + R"(","exp":1796069900})"),
            "the token is malformed");
}

TEST(JwtVerifier, JsonIsStrict) {
  EXPECT_EQ(HsClaims(R"({"sub":"a","exp":1796069900,"sub":"b"})"), "the token is malformed");
  EXPECT_EQ(HsClaims(R"({"sub":"a","exp":1796069900,"s\u0075b":"b"})"), "the token is malformed");
  EXPECT_EQ(HsClaims(R"({"sub":"a","exp":1796069900} {})"), "the token is malformed");
  EXPECT_EQ(HsClaims(R"({"sub":"a","exp":1796069900,})"), "the token is malformed");
  EXPECT_EQ(HsClaims("{\"sub\":\"\xff\",\"exp\":1796069900}"), "the token is malformed");
  EXPECT_EQ(HsClaims(R"(["sub"])"), "the token is malformed");
  EXPECT_EQ(HsClaims(""), "the token is malformed");
  EXPECT_EQ(HsResult(R"({"alg":"HS256","alg":"HS256"})", kGoodClaims), "the token is malformed");
  EXPECT_EQ(HsResult(R"({"alg":"HS256","crit":["exp"],"exp":1})", kGoodClaims),
            "the token is malformed");
  EXPECT_EQ(HsResult(R"({"alg":"HS256","b64":false})", kGoodClaims), "the token is malformed");
  EXPECT_EQ(HsResult(R"({"alg":256})", kGoodClaims), "the token is malformed");
}

TEST(JwtVerifier, OneTokenHasOneSpelling) {
  const std::string good = TokenMaker::Hs256(R"({"alg":"HS256"})", kGoodClaims);
  const JwtVerifier verifier = HsVerifier();
  EXPECT_EQ(Result(verifier, good + "="), "the token is malformed");
  EXPECT_EQ(Result(verifier, good + "."), "the token is malformed");
  EXPECT_EQ(Result(verifier, "." + good), "the token is malformed");
  EXPECT_EQ(Result(verifier, good + " "), "the token is malformed");
  EXPECT_EQ(Result(verifier, ""), "the token is malformed");
  EXPECT_EQ(Result(verifier, ".."), "the token is malformed");
  EXPECT_EQ(Result(verifier, "a.b"), "the token is malformed");
  EXPECT_EQ(Result(verifier, std::string(8193, 'e')), "the token is malformed");
  std::string same_bytes = good;  // 32 bytes leave two unused bits in the last character.
  const size_t last =
      std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
          .find(good.back());
  same_bytes.back() = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[last | 1];
  ASSERT_NE(same_bytes, good);
  EXPECT_EQ(Result(verifier, same_bytes), "the token is malformed");
}

TEST(JwtVerifier, JwksKeysAreChosenByKid) {
  const std::string one(32, '1'), two(32, '2');
  const std::string jwks =
      R"({"keys":[{"kty":"oct","kid":"one","k":")" + EncodeBase64Url(one) +
      R"("},{"kty":"oct","kid":"two","alg":"HS256","use":"sig","k":")" + EncodeBase64Url(two) +
      R"("},{"kty":"OKP","crv":"Ed25519","x":"AA"},{"kty":"oct","use":"enc","k":"AA"}]})";
  const JwtVerifier verifier = Verifier(jwks, {kHs256});
  EXPECT_EQ(Result(verifier, TokenMaker::Hs256(R"({"alg":"HS256","kid":"two"})", kGoodClaims, two)),
            "ok alice 1796068960");
  EXPECT_EQ(Result(verifier, TokenMaker::Hs256(R"({"alg":"HS256","kid":"one"})", kGoodClaims, two)),
            "the token's signature does not verify");
  EXPECT_EQ(
      Result(verifier, TokenMaker::Hs256(R"({"alg":"HS256","kid":"three"})", kGoodClaims, two)),
      "the token's key is not known");
  EXPECT_EQ(Result(verifier, TokenMaker::Hs256(R"({"alg":"HS256"})", kGoodClaims, two)),
            "ok alice 1796068960");
}

std::string CreateError(std::string keys, std::vector<JwtAlgorithm> algorithms) {
  const auto verifier =
      JwtVerifier::Create({.keys = std::move(keys), .algorithms = std::move(algorithms)});
  return verifier ? "accepted" : verifier.error().message;
}

TEST(JwtVerifier, UnusableKeysAreRefusedAtLoad) {
  EXPECT_EQ(CreateError("short", {kHs256}),
            "identity.jwt.keys: an HS256 secret needs at least 32 bytes");
  EXPECT_EQ(CreateError(std::string(31, 'x') + "\n", {kHs256}),
            "identity.jwt.keys: an HS256 secret needs at least 32 bytes");
  EXPECT_EQ(CreateError(std::string(32, 'x') + "\n", {kHs256}), "accepted");
  EXPECT_EQ(
      CreateError(std::string(32, 'x'), {kRs256}),
      "identity.jwt.keys: is neither PEM nor a JWKS; a plain secret goes with algorithms: [HS256]");
  EXPECT_EQ(CreateError(std::string(32, 'x'), {}), "identity.jwt.algorithms: name at least one");
  EXPECT_EQ(CreateError(Maker().RsaPem(), {kEs256}),
            "identity.jwt.keys: no key for ES256 in the file");
  EXPECT_EQ(CreateError(Maker().RsaPrivatePem(), {kRs256}),
            "identity.jwt.keys: the file holds a private key; give the public key");
  EXPECT_EQ(CreateError("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", {kRs256}),
            "identity.jwt.keys: cannot read the PEM block \"PUBLIC KEY\" as a public key");
  EXPECT_EQ(CreateError("{}", {kRs256}),
            "identity.jwt.keys: is JSON, but no JWKS: an object with an array \"keys\" is meant");
  EXPECT_EQ(CreateError(R"({"keys":[]})", {kRs256, kEs256}),
            "identity.jwt.keys: no key for RS256, ES256 in the file");
  EXPECT_EQ(CreateError(R"({"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]})", {kRs256}),
            "identity.jwt.keys: keys[0]: an RSA key needs at least 2048 bits");
  EXPECT_EQ(CreateError(R"({"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]})", {kEs256}),
            "identity.jwt.keys: keys[0]: is no valid public key");
  EXPECT_EQ(CreateError(R"({"keys":[{"kty":"oct","k":"AA"}]})", {kHs256}),
            "identity.jwt.keys: keys[0]: an HS256 secret needs at least 32 bytes");
  const std::string k = EncodeBase64Url(std::string(32, 'k'));
  EXPECT_EQ(CreateError(R"({"keys":[{"kty":"oct","kid":"a","k":")" + k +
                            R"("},{"kty":"oct","kid":"a","k":")" + k + R"("}]})",
                        {kHs256}),
            "identity.jwt.keys: keys[1]: another key has the same kid");
}

TEST(DecodeBase64Url, IsStrict) {
  EXPECT_EQ(DecodeBase64Url(""), "");
  EXPECT_EQ(DecodeBase64Url("AQAB"), std::string("\x01\x00\x01", 3));
  EXPECT_EQ(DecodeBase64Url("_-8"), "\xff\xef");
  EXPECT_EQ(DecodeBase64Url("Zg"), "f");
  EXPECT_EQ(DecodeBase64Url("Zh"), std::nullopt);  // Leftover bits.
  for (const char* bad : {"Z", "Zg==", "Z+", "Z/", "Zg\n", "Z g", "ZZZZZ"})
    EXPECT_EQ(DecodeBase64Url(bad), std::nullopt);
}

}  // namespace
}  // namespace weir::identity
