#include "net/tls.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace weir::net {
namespace {

// Why the file cannot be read, "" when it can: of that OpenSSL says no more than "system lib".
std::string WhyUnreadable(const std::string& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::strerror(errno);
  char byte;
  const std::string reason = read(fd, &byte, 1) < 0 ? std::strerror(errno) : "";
  close(fd);
  return reason;
}

std::unexpected<Error> Unusable(std::string_view what, const std::string& file) {
  std::string reason = WhyUnreadable(file);
  if (reason.empty()) {
    const char* const said = ERR_reason_error_string(ERR_peek_error());  // The first knows most.
    reason = said != nullptr ? said : "cannot be used";
  }
  return InvalidArgument(std::string(what) + " " + file + ": " + reason);
}

// The protocols as ALPN sends them: each after a byte with its length (RFC 7301 section 3.1).
std::string AlpnWire(const std::vector<std::string>& protocols) {
  std::string wire;
  for (const std::string& protocol : protocols) {
    wire.push_back(static_cast<char>(protocol.size()));
    wire += protocol;
  }
  return wire;
}

int SelectAlpn(SSL*, const unsigned char** chosen, unsigned char* chosen_length,
               const unsigned char* offered, unsigned int offered_length, void* wire) {
  const auto& accepted = *static_cast<const std::string*>(wire);
  unsigned char* selected = nullptr;
  const int outcome = SSL_select_next_proto(
      &selected, chosen_length, reinterpret_cast<const unsigned char*>(accepted.data()),
      static_cast<unsigned int>(accepted.size()), offered, offered_length);
  if (outcome != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_NOACK;
  *chosen = selected;
  return SSL_TLSEXT_ERR_OK;
}

Result<void> UseCertificate(SSL_CTX* context, const std::string& cert_file,
                            const std::string& key_file) {
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context, cert_file.c_str()) != 1)
    return Unusable("certificate", cert_file);
  if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    return Unusable("private key", key_file);
  if (SSL_CTX_check_private_key(context) != 1)
    return Unusable("private key does not belong to the certificate:", key_file);
  return {};
}

}  // namespace

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

Result<std::unique_ptr<TlsContext>> TlsContext::Client(const ClientOptions& options) {
  std::unique_ptr<TlsContext> tls(new TlsContext(SSL_CTX_new(TLS_client_method())));
  SSL_CTX* context = tls->native();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  tls->verify_ = options.verify;
  SSL_CTX_set_verify(context, options.verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  ERR_clear_error();
  if (options.ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(context);
  } else if (SSL_CTX_load_verify_locations(context, options.ca_file.c_str(), nullptr) != 1) {
    return Unusable("CA certificates", options.ca_file);
  }
  if (!options.cert_file.empty()) {
    if (auto used = UseCertificate(context, options.cert_file, options.key_file); !used) {
      return std::unexpected(used.error());
    }
  }
  tls->alpn_wire_ = AlpnWire(options.alpn);
  if (!tls->alpn_wire_.empty()) {
    SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(tls->alpn_wire_.data()),
                            static_cast<unsigned int>(tls->alpn_wire_.size()));
  }
  return tls;
}

Result<std::unique_ptr<TlsContext>> TlsContext::Server(const ServerOptions& options) {
  std::unique_ptr<TlsContext> tls(new TlsContext(SSL_CTX_new(TLS_server_method())));
  SSL_CTX* context = tls->native();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  if (auto used = UseCertificate(context, options.cert_file, options.key_file); !used) {
    return std::unexpected(used.error());
  }
  if (!options.client_ca_file.empty()) {
    ERR_clear_error();
    if (SSL_CTX_load_verify_locations(context, options.client_ca_file.c_str(), nullptr) != 1) {
      return Unusable("client CA certificates", options.client_ca_file);
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    // Without a name OpenSSL breaks off when a client that was verified resumes its session.
    constexpr unsigned char kSessions[] = "weir";
    SSL_CTX_set_session_id_context(context, kSessions, sizeof kSessions - 1);
  }
  tls->alpn_wire_ = AlpnWire(options.alpn);
  if (!tls->alpn_wire_.empty()) SSL_CTX_set_alpn_select_cb(context, SelectAlpn, &tls->alpn_wire_);
  return tls;
}

}  // namespace weir::net
