// TlsContext: the certificates and rules that streams start TLS with. TLS 1.2 and later.
//
// Thread safety: immutable after creation; many threads may start streams from one context.
//
//   auto context = TlsContext::Client({.ca_file = ""}).value();     // the system's certificates
//   co_await stream->StartTlsClient(*context, "api.example.com", deadline_ns);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weir/result.h"

struct ssl_ctx_st;

namespace weir::net {

class TlsContext {
 public:
  struct ClientOptions {
    std::string ca_file;              // PEM; "" means the system's store.
    std::string cert_file, key_file;  // A client certificate; "" means none.
    bool verify = true;               // The peer's chain and name.
    std::vector<std::string> alpn;    // Protocols offered, most wanted first.
  };
  struct ServerOptions {
    std::string cert_file, key_file;  // PEM; the chain in the certificate's file.
    std::string client_ca_file;  // Set: client certificates are required and verified against it.
    std::vector<std::string> alpn;  // Protocols accepted, most wanted first.
  };
  // kInvalidArgument names the file that cannot be used and why.
  static Result<std::unique_ptr<TlsContext>> Client(const ClientOptions& options);
  static Result<std::unique_ptr<TlsContext>> Server(const ServerOptions& options);
  ~TlsContext();

  ssl_ctx_st* native() const { return context_; }
  bool verifies() const { return verify_; }

 private:
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* context_;
  std::string alpn_wire_;
  bool verify_ = true;
};

}  // namespace weir::net
