// Where the shared store is and how to talk to it; usually read from a URL.
//
//   redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]          one server; rediss:// with TLS
//   unix://[USER:PASSWORD@]/PATH[?db=N]                 one server on a unix socket
//   redis+sentinel://[…@]HOST[:PORT],HOST…/NAME[/DB]    the master that Sentinels name;
//   rediss+sentinel:// with TLS redis+cluster://[…@]HOST[:PORT],HOST…               a Cluster, by
//   any of its nodes; rediss+cluster:// with TLS
//
//   Result<ClientOptions> options = ParseUrl("rediss://weir:secret@store.example.com/2");
//
// Thread safety: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/result.h"

namespace weir::redis {

// A server as configured or as announced by other servers.
struct Address {
  std::string host;  // A name, an IPv4 or IPv6 literal without brackets, or a unix socket's path.
  int port = 6379;   // 0: `host` is a path.

  bool is_unix() const { return port == 0; }
  // Whether what is sent there stays on this machine: a unix socket, 127.0.0.0/8, ::1, localhost.
  bool IsLocal() const;
  std::string ToString() const;  // "127.0.0.1:6379", "[::1]:6379", "unix:/run/redis.sock"
  friend bool operator==(const Address&, const Address&) = default;
  friend auto operator<=>(const Address&, const Address&) = default;
};

struct TlsOptions {
  bool enabled = false;
  std::string ca_file;              // PEM; "" means the system's store.
  std::string cert_file, key_file;  // A client certificate; "" means none.
  std::string server_name;          // For SNI and verification; "" means the address's host.
  bool verify = true;
};

struct Credentials {
  std::string user;      // "" means the default user.
  std::string password;  // "" means none. Never appears in an error or a log line.
};

struct ClientOptions {
  enum class Kind : uint8_t { kStandalone, kSentinel, kCluster };
  Kind kind = Kind::kStandalone;
  std::vector<Address> addresses;  // At least one: the server, the Sentinels or some nodes.
  std::string master_name;         // kSentinel.
  Credentials credentials;
  Credentials sentinel_credentials;  // The URL's credentials are for the servers alone.
  int database = 0;                  // Always 0 in a Cluster.
  TlsOptions tls;
  bool insecure = false;  // A password may cross the network without TLS.
  std::string client_name = "weir";

  int connections = 2;                         // For each loop and node. 1 to 64.
  int64_t connect_timeout_ns = 1'000'000'000;  // Socket, TLS and handshake together.
  int64_t stall_ns = 500'000'000;              // A reply this long past its deadline: a dead peer.
  int64_t backoff_min_ns = 10'000'000;         // Between failed connects, doubling, with jitter …
  int64_t backoff_max_ns = 400'000'000;        // … up to this: return is noticed within it.
  size_t queue_calls_max = 16'384;             // Calls that wait or are under way, for each loop.
  size_t queue_bytes_max = 32 << 20;           // Their commands' bytes.
  uint64_t seed = 1;                           // Of the jitter; give each loop its own.

  // Told in one sentence, on the loop's thread, when a connection is lost or cannot be made, and
  // when the master or the Cluster's map changes. Never holds a secret. May be empty.
  std::function<void(std::string_view sentence)> on_notice;
};

// kInvalidArgument names the part of the URL that is wrong and what is meant, and never repeats the
// password. A password without TLS for a host that is not this one is refused unless `insecure`.
Result<ClientOptions> ParseUrl(std::string_view url, bool insecure = false);

// The URL without its password, for logs: "redis://weir:***@store:6379/0".
std::string RedactedUrl(std::string_view url);

}  // namespace weir::redis
