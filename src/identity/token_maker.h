// Makes tokens for tests: signed with keys made here, with any header and claims, right or wrong.
//
//   TokenMaker maker;
//   std::string token = maker.Hs256(R"({"alg":"HS256"})", R"({"sub":"alice","exp":1796069000})");
#pragma once

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <string>
#include <string_view>

namespace weir::identity {

inline std::string EncodeBase64Url(std::string_view bytes) {
  constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string text;
  uint32_t bits = 0;
  int pending = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (pending += 8; pending >= 6; pending -= 6) text += kAlphabet[bits >> (pending - 6) & 63];
  }
  if (pending > 0) text += kAlphabet[bits << (6 - pending) & 63];
  return text;
}

inline std::string HmacSha256(std::string_view key, std::string_view text) {
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac, &size);
  return {reinterpret_cast<const char*>(mac), size};
}

class TokenMaker {
 public:
  static constexpr std::string_view kSecret = "a secret of at least 32 bytes, for tests";

  TokenMaker() : rsa_(EVP_RSA_gen(2048)), ec_(EVP_EC_gen("P-256")) {}
  ~TokenMaker() {
    EVP_PKEY_free(rsa_);
    EVP_PKEY_free(ec_);
  }
  TokenMaker(const TokenMaker&) = delete;

  static std::string Hs256(std::string_view header, std::string_view claims,
                           std::string_view secret = kSecret) {
    const std::string text = Signed(header, claims);
    return text + "." + EncodeBase64Url(HmacSha256(secret, text));
  }

  std::string Rs256(std::string_view header, std::string_view claims) const {
    const std::string text = Signed(header, claims);
    return text + "." + EncodeBase64Url(Sign(rsa_, text));
  }

  std::string Es256(std::string_view header, std::string_view claims) const {
    const std::string text = Signed(header, claims);
    const std::string der = Sign(ec_, text);
    const auto* at = reinterpret_cast<const unsigned char*>(der.data());
    ECDSA_SIG* signature = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()));
    unsigned char raw[64];
    BN_bn2binpad(ECDSA_SIG_get0_r(signature), raw, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(signature), raw + 32, 32);
    ECDSA_SIG_free(signature);
    return text + "." + EncodeBase64Url({reinterpret_cast<const char*>(raw), 64});
  }

  std::string RsaPem() const { return PublicPem(rsa_); }
  std::string EcPem() const { return PublicPem(ec_); }
  std::string RsaPrivatePem() const {
    BIO* file = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(file, rsa_, nullptr, nullptr, 0, nullptr, nullptr);
    return Taken(file);
  }

 private:
  static std::string Signed(std::string_view header, std::string_view claims) {
    return EncodeBase64Url(header) + "." + EncodeBase64Url(claims);
  }

  static std::string Sign(EVP_PKEY* key, std::string_view text) {
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    size_t size = 0;
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, key);
    EVP_DigestSign(context, nullptr, &size, bytes, text.size());
    std::string signature(size, '\0');
    EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()), &size, bytes,
                   text.size());
    signature.resize(size);
    EVP_MD_CTX_free(context);
    return signature;
  }

  static std::string PublicPem(EVP_PKEY* key) {
    BIO* file = BIO_new(BIO_s_mem());
    PEM_write_bio_PUBKEY(file, key);
    return Taken(file);
  }

  static std::string Taken(BIO* file) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(file, &data);
    std::string text(data, static_cast<size_t>(size));
    BIO_free(file);
    return text;
  }

  EVP_PKEY* rsa_;
  EVP_PKEY* ec_;
};

}  // namespace weir::identity
