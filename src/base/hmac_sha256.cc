#include "base/hmac_sha256.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <cstdlib>
#include <utility>

namespace weir::base {
namespace {

struct FreeMac {
  void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};
using MacContext = std::unique_ptr<EVP_MAC_CTX, FreeMac>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

struct HmacSha256::State {
  MacContext keyed;
};

HmacSha256::HmacSha256(std::unique_ptr<State> state) : state_(std::move(state)) {}
HmacSha256::HmacSha256(HmacSha256&&) noexcept = default;
HmacSha256& HmacSha256::operator=(HmacSha256&&) noexcept = default;
HmacSha256::~HmacSha256() = default;

Result<HmacSha256> HmacSha256::Create(std::string_view key) {
  const std::unique_ptr<EVP_MAC, FreeMac> mac(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  auto state = std::make_unique<State>();
  if (mac) state->keyed.reset(EVP_MAC_CTX_new(mac.get()));
  char digest[] = "SHA256";
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                               OSSL_PARAM_construct_end()};
  if (!state->keyed || EVP_MAC_init(state->keyed.get(), Bytes(key), key.size(), params) != 1)
    return MakeError(ErrorCode::kInternal, "OpenSSL gives no HMAC-SHA-256");
  return HmacSha256(std::move(state));
}

HmacSha256::Digest HmacSha256::Of(std::span<const std::string_view> pieces) const {
  const MacContext mac(EVP_MAC_CTX_dup(state_->keyed.get()));
  bool ok = mac != nullptr;
  for (const std::string_view piece : pieces)
    ok = ok && EVP_MAC_update(mac.get(), Bytes(piece), piece.size()) == 1;
  Digest digest;
  size_t size = 0;
  if (!ok || EVP_MAC_final(mac.get(), digest.data(), &size, digest.size()) != 1) std::abort();
  return digest;
}

}  // namespace weir::base
