#include "base/hmac_key.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <array>
#include <cstdlib>
#include <utility>

namespace weir::base {
namespace {

struct FreeMac {
  void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};
using MacContext = std::unique_ptr<EVP_MAC_CTX, FreeMac>;
using Digest = std::array<unsigned char, 32>;

constexpr std::string_view kPurpose = "weir counter names 1";

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// A MAC under `key`, ready for its input; null when OpenSSL has none.
MacContext Keyed(std::string_view key) {
  const std::unique_ptr<EVP_MAC, FreeMac> mac(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  if (!mac) return nullptr;
  MacContext context(EVP_MAC_CTX_new(mac.get()));
  char digest[] = "SHA256";
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                               OSSL_PARAM_construct_end()};
  if (!context || EVP_MAC_init(context.get(), Bytes(key), key.size(), params) != 1) return nullptr;
  return context;
}

uint64_t BigEndian(const unsigned char* bytes) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

struct HmacKeys::State {
  MacContext keyed;
};

HmacKeys::HmacKeys(std::unique_ptr<State> state) : state_(std::move(state)) {}
HmacKeys::HmacKeys(HmacKeys&&) noexcept = default;
HmacKeys& HmacKeys::operator=(HmacKeys&&) noexcept = default;
HmacKeys::~HmacKeys() = default;

Result<HmacKeys> HmacKeys::Create(std::string_view secret) {
  auto state = std::make_unique<State>();
  Digest derived;
  size_t size = 0;
  if (MacContext once = Keyed(secret);
      once && EVP_MAC_update(once.get(), Bytes(kPurpose), kPurpose.size()) == 1 &&
      EVP_MAC_final(once.get(), derived.data(), &size, derived.size()) == 1) {
    state->keyed = Keyed({reinterpret_cast<const char*>(derived.data()), size});
  }
  if (!state->keyed) return MakeError(ErrorCode::kInternal, "OpenSSL gives no HMAC-SHA-256");
  return HmacKeys(std::move(state));
}

Key128 HmacKeys::Of(std::span<const std::string_view> parts) const {
  const MacContext mac(EVP_MAC_CTX_dup(state_->keyed.get()));
  bool ok = mac != nullptr;
  for (const std::string_view part : parts) {
    std::array<unsigned char, 8> length;
    for (size_t i = 0; i < 8; ++i)
      length[i] = static_cast<unsigned char>(uint64_t{part.size()} >> (56 - 8 * i));
    ok = ok && EVP_MAC_update(mac.get(), length.data(), length.size()) == 1 &&
         EVP_MAC_update(mac.get(), Bytes(part), part.size()) == 1;
  }
  Digest digest;
  size_t size = 0;
  if (!ok || EVP_MAC_final(mac.get(), digest.data(), &size, digest.size()) != 1) std::abort();
  return {BigEndian(digest.data()), BigEndian(digest.data() + 8)};
}

}  // namespace weir::base
