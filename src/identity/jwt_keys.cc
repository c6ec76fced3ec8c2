#include "identity/jwt_keys.h"

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "identity/base64url.h"

namespace weir::identity {
namespace {

constexpr size_t kMinSecretBytes = 32;  // RFC 7518, section 3.2.
constexpr int kMinRsaBits = 2048;       // RFC 7518, section 3.3.
constexpr size_t kMaxFileBytes = 1 << 20;

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
template <typename T, auto Free>
using Owned = std::unique_ptr<T, Freed<Free>>;
using OwnedKey = Owned<EVP_PKEY, EVP_PKEY_free>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// r and s of 32 bytes each as the DER that OpenSSL takes. Empty when that cannot be done.
std::string DerOf(std::string_view raw) {
  const Owned<ECDSA_SIG, ECDSA_SIG_free> signature(ECDSA_SIG_new());
  Owned<BIGNUM, BN_free> r(BN_bin2bn(Bytes(raw), 32, nullptr));
  Owned<BIGNUM, BN_free> s(BN_bin2bn(Bytes(raw) + 32, 32, nullptr));
  if (!signature || !r || !s || ECDSA_SIG_set0(signature.get(), r.get(), s.get()) != 1) return {};
  r.release();
  s.release();
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &der);
  if (size <= 0) return {};
  std::string text(reinterpret_cast<const char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return text;
}

Error NoUsableKey(std::span<const JwtAlgorithm> algorithms) {
  std::string names;
  for (const JwtAlgorithm algorithm : algorithms) {
    if (!names.empty()) names += ", ";
    names += JwtAlgorithmName(algorithm);
  }
  return {ErrorCode::kInvalidArgument, "identity.jwt.keys: no key for " + names + " in the file"};
}

bool Accepts(std::span<const JwtAlgorithm> algorithms, JwtAlgorithm algorithm) {
  return std::ranges::find(algorithms, algorithm) != algorithms.end();
}

Result<std::vector<JwtKey>> ReadPem(std::string_view text,
                                    std::span<const JwtAlgorithm> algorithms) {
  const Owned<BIO, BIO_free> file(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  std::vector<JwtKey> keys;
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  while (file && PEM_read_bio(file.get(), &name, &header, &data, &size) == 1) {
    const std::string kind = name;
    const unsigned char* at = data;
    OwnedKey key;
    if (kind == PEM_STRING_PUBLIC) {
      key.reset(d2i_PUBKEY(nullptr, &at, size));
    } else if (kind == PEM_STRING_X509) {
      const Owned<X509, X509_free> certificate(d2i_X509(nullptr, &at, size));
      if (certificate) key.reset(X509_get_pubkey(certificate.get()));
    }
    OPENSSL_cleanse(data, static_cast<size_t>(size));
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_free(data);
    name = header = nullptr;
    data = nullptr;
    if (kind.find("PRIVATE KEY") != std::string::npos) {
      return InvalidArgument(
          "identity.jwt.keys: the file holds a private key; give the public key");
    }
    if (!key)
      return InvalidArgument("identity.jwt.keys: cannot read the PEM block \"" + kind +
                             "\" as a public key");
    Result<JwtKey> read = JwtKey::FromPublicKey("", key.release());
    if (!read) return std::unexpected(read.error());
    if (Accepts(algorithms, read->algorithm())) keys.push_back(*std::move(read));
  }
  ERR_clear_error();  // The end of the file is an error to OpenSSL.
  if (keys.empty()) return std::unexpected(NoUsableKey(algorithms));
  return keys;
}

// One member of a JWK as text; nothing when absent. A member of another type reads as an impossible
// value.
std::optional<std::string> Member(simdjson::dom::object jwk, std::string_view name) {
  const auto value = jwk.at_key(name);
  if (value.error() != simdjson::SUCCESS) return std::nullopt;
  std::string_view text;
  return value.get_string().get(text) == simdjson::SUCCESS ? std::string(text) : std::string("\n");
}

// A public key of `type` from OpenSSL parameters.
OwnedKey BuildKey(const char* type, OSSL_PARAM_BLD* build) {
  const Owned<OSSL_PARAM, OSSL_PARAM_free> params(OSSL_PARAM_BLD_to_param(build));
  const Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> context(
      EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    ERR_clear_error();
    return nullptr;
  }
  return OwnedKey(key);
}

OwnedKey RsaKey(simdjson::dom::object jwk) {
  const auto n_text = DecodeBase64Url(Member(jwk, "n").value_or("\n"));
  const auto e_text = DecodeBase64Url(Member(jwk, "e").value_or("\n"));
  if (!n_text || !e_text || n_text->empty() || e_text->empty() || n_text->size() > 2048 ||
      e_text->size() > 8) {
    return nullptr;
  }
  const Owned<BIGNUM, BN_free> n(
      BN_bin2bn(Bytes(*n_text), static_cast<int>(n_text->size()), nullptr));
  const Owned<BIGNUM, BN_free> e(
      BN_bin2bn(Bytes(*e_text), static_cast<int>(e_text->size()), nullptr));
  const Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free> build(OSSL_PARAM_BLD_new());
  if (!n || !e || !build ||
      OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(build.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1) {
    return nullptr;
  }
  return BuildKey("RSA", build.get());
}

OwnedKey EcKey(simdjson::dom::object jwk) {
  const auto x = DecodeBase64Url(Member(jwk, "x").value_or("\n"));
  const auto y = DecodeBase64Url(Member(jwk, "y").value_or("\n"));
  if (!x || !y || x->size() != 32 || y->size() != 32) return nullptr;
  const std::string point = "\x04" + *x + *y;
  const Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free> build(OSSL_PARAM_BLD_new());
  if (!build ||
      OSSL_PARAM_BLD_push_utf8_string(build.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) !=
          1 ||
      OSSL_PARAM_BLD_push_octet_string(build.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) != 1) {
    return nullptr;
  }
  return BuildKey("EC", build.get());
}

// What a JWK is for. Nothing: for no algorithm of ours.
std::optional<JwtAlgorithm> AlgorithmOf(simdjson::dom::object jwk) {
  const std::string type = Member(jwk, "kty").value_or("");
  std::optional<JwtAlgorithm> algorithm;
  if (type == "oct") algorithm = JwtAlgorithm::kHs256;
  if (type == "RSA") algorithm = JwtAlgorithm::kRs256;
  if (type == "EC" && Member(jwk, "crv") == "P-256") algorithm = JwtAlgorithm::kEs256;
  if (!algorithm || Member(jwk, "use").value_or("sig") != "sig") return std::nullopt;
  const std::optional<std::string> stated = Member(jwk, "alg");
  if (stated && *stated != JwtAlgorithmName(*algorithm)) return std::nullopt;
  return algorithm;
}

Result<JwtKey> ReadJwk(simdjson::dom::object jwk, JwtAlgorithm algorithm,
                       const std::string& place) {
  std::string id = Member(jwk, "kid").value_or("");
  if (algorithm == JwtAlgorithm::kHs256) {
    std::optional<std::string> secret = DecodeBase64Url(Member(jwk, "k").value_or("\n"));
    if (!secret) return InvalidArgument(place + ": k must be base64url");
    if (secret->size() < kMinSecretBytes)
      return InvalidArgument(place + ": an HS256 secret needs at least 32 bytes");
    return JwtKey::FromSecret(std::move(id), *std::move(secret));
  }
  if (Member(jwk, "d")) return InvalidArgument(place + ": is a private key; give the public key");
  OwnedKey key = algorithm == JwtAlgorithm::kRs256 ? RsaKey(jwk) : EcKey(jwk);
  if (!key) return InvalidArgument(place + ": is no valid public key");
  Result<JwtKey> read = JwtKey::FromPublicKey(std::move(id), key.release());
  if (!read) return InvalidArgument(place + ": " + read.error().message);
  return read;
}

Result<std::vector<JwtKey>> ReadJwks(std::string_view text,
                                     std::span<const JwtAlgorithm> algorithms) {
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(text);
  simdjson::dom::array list;
  if (parser.parse(padded)["keys"].get_array().get(list) != simdjson::SUCCESS) {
    return InvalidArgument(
        "identity.jwt.keys: is JSON, but no JWKS: an object with an array \"keys\" is meant");
  }
  std::vector<JwtKey> keys;
  size_t index = 0;
  for (const simdjson::dom::element element : list) {
    const std::string place = "identity.jwt.keys: keys[" + std::to_string(index++) + "]";
    simdjson::dom::object jwk;
    if (element.get_object().get(jwk) != simdjson::SUCCESS)
      return InvalidArgument(place + ": must be an object");
    const std::optional<JwtAlgorithm> algorithm = AlgorithmOf(jwk);
    if (!algorithm || !Accepts(algorithms, *algorithm)) continue;
    Result<JwtKey> key = ReadJwk(jwk, *algorithm, place);
    if (!key) return std::unexpected(key.error());
    const auto same = [&](const JwtKey& other) {
      return !other.id().empty() && other.id() == key->id();
    };
    if (std::ranges::any_of(keys, same))
      return InvalidArgument(place + ": another key has the same kid");
    if (keys.size() == JwtVerifier::kMaxKeys)
      return InvalidArgument("identity.jwt.keys: more than 64 keys");
    keys.push_back(*std::move(key));
  }
  if (keys.empty()) return std::unexpected(NoUsableKey(algorithms));
  return keys;
}

Result<std::vector<JwtKey>> ReadSecret(std::string_view text,
                                       std::span<const JwtAlgorithm> algorithms) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (algorithms.size() != 1 || algorithms[0] != JwtAlgorithm::kHs256) {
    return InvalidArgument(
        "identity.jwt.keys: is neither PEM nor a JWKS; a plain secret goes with algorithms: "
        "[HS256]");
  }
  if (text.size() < kMinSecretBytes) {
    return InvalidArgument("identity.jwt.keys: an HS256 secret needs at least 32 bytes");
  }
  std::vector<JwtKey> keys;
  keys.push_back(JwtKey::FromSecret("", std::string(text)));
  return keys;
}

}  // namespace

JwtKey JwtKey::FromSecret(std::string id, std::string secret) {
  JwtKey key(std::move(id), JwtAlgorithm::kHs256);
  key.secret_ = std::move(secret);
  return key;
}

Result<JwtKey> JwtKey::FromPublicKey(std::string id, EVP_PKEY* key) {
  std::shared_ptr<EVP_PKEY> owned(key, EVP_PKEY_free);
  if (EVP_PKEY_is_a(key, "RSA") == 1) {
    if (EVP_PKEY_get_bits(key) < kMinRsaBits)
      return InvalidArgument("an RSA key needs at least 2048 bits");
    JwtKey result(std::move(id), JwtAlgorithm::kRs256);
    result.key_ = std::move(owned);
    return result;
  }
  char group[64] = {};
  size_t size = 0;
  if (EVP_PKEY_is_a(key, "EC") == 1 &&
      EVP_PKEY_get_group_name(key, group, sizeof(group), &size) == 1 &&
      std::string_view(group, size) == "prime256v1") {
    JwtKey result(std::move(id), JwtAlgorithm::kEs256);
    result.key_ = std::move(owned);
    return result;
  }
  return InvalidArgument("only RSA keys and EC keys on P-256 are usable");
}

bool JwtKey::Verifies(std::string_view signed_text, std::string_view signature) const {
  if (algorithm_ == JwtAlgorithm::kHs256) {
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned int size = 0;
    if (HMAC(EVP_sha256(), secret_.data(), static_cast<int>(secret_.size()), Bytes(signed_text),
             signed_text.size(), mac, &size) == nullptr) {
      return false;
    }
    return signature.size() == size && CRYPTO_memcmp(mac, signature.data(), size) == 0;
  }
  std::string der;
  if (algorithm_ == JwtAlgorithm::kEs256) {
    if (signature.size() != 64) return false;
    der = DerOf(signature);
    signature = der;
  }
  const Owned<EVP_MD_CTX, EVP_MD_CTX_free> context(EVP_MD_CTX_new());
  const bool good =
      context &&
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) == 1 &&
      EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(signed_text),
                       signed_text.size()) == 1;
  if (!good) ERR_clear_error();  // The queue is the thread's; TLS reads it too.
  return good;
}

Result<std::vector<JwtKey>> ReadJwtKeys(std::string_view text,
                                        std::span<const JwtAlgorithm> algorithms) {
  if (text.size() > kMaxFileBytes)
    return InvalidArgument("identity.jwt.keys: the file is larger than 1 MiB");
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start != std::string_view::npos && text[start] == '{') return ReadJwks(text, algorithms);
  if (text.find("-----BEGIN ") != std::string_view::npos) return ReadPem(text, algorithms);
  return ReadSecret(text, algorithms);
}

}  // namespace weir::identity
