// Whatever the token, the key file or the headers hold: no crash, and nothing verifies that was not
// signed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "identity/credentials.h"
#include "identity/jwt.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weir::identity;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const JwtVerifier verifier =
      JwtVerifier::Create({.keys = std::string(32, 'k'), .algorithms = {JwtAlgorithm::kHs256}})
          .value();
  if (verifier.Verify(text, 0).has_value()) std::abort();
  const auto created = JwtVerifier::Create(
      {.keys = std::string(text),
       .algorithms = {JwtAlgorithm::kHs256, JwtAlgorithm::kRs256, JwtAlgorithm::kEs256}});
  if (!created && created.error().message.empty()) std::abort();
  CredentialLines lines;
  lines.authorization.Add(text);
  const Credentials found = ReadCredentials(lines, /*jwt_enabled=*/true);
  if (found.error != CredentialError::kNone && !(found.api_key.empty() && found.jwt.empty()))
    std::abort();
  return 0;
}
