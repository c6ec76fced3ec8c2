// The whole configuration as plain structs: what the YAML says, checked and with its defaults
// filled in.
//
//   auto policy = policy::Policy::Load("weir.yaml", policy::ProcessEnv());
//   const policy::Config& config = (*policy)->config();
//   if (config.listen.gateway) Listen(config.listen.gateway->address);
//
// Thread safety: plain values. Nothing here reads a clock, the network or the environment.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::policy {

// A text that must not be shown. Prints as "[redacted]"; only Reveal gives it away.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}

  // For handing the secret to what needs it; never to a log, a key or a message.
  const std::string& Reveal() const { return value_; }
  bool empty() const { return value_.empty(); }
  friend bool operator==(const Secret&, const Secret&) = default;

 private:
  std::string value_;
};
inline constexpr std::string_view kRedacted = "[redacted]";
std::ostream& operator<<(std::ostream& out, const Secret& secret);

// Where something stands in the configuration; lines and columns count from 1, 0 means "nowhere".
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

// "FILE:LINE:COL"
std::string ToString(const Place& place);

// Where a value was written, for faults that are found later. No part of what the configuration
// means: all are equal.
struct WrittenAt {
  Place place;
  friend bool operator==(const WrittenAt&, const WrittenAt&) { return true; }
};

// The server's side of TLS. Paths are relative to the configuration file that names them, already
// joined here.
struct TlsConfig {
  std::string cert;  // PEM chain. Required.
  std::string key;   // PEM key. Required.
  std::string
      client_ca;  // When set, clients must show a certificate signed by it (mTLS). Default: none.
  friend bool operator==(const TlsConfig&, const TlsConfig&) = default;
};

// One listening door.
struct DoorConfig {
  std::string address;  // "host:port", "[v6]:port", ":port" (all interfaces) or "unix:/path". Port
                        // 0 picks one.
  std::optional<TlsConfig> tls;  // Default: plain TCP.
  // Required when set, as `Authorization: Bearer TOKEN`, or by AUTH at the resp door. api, admin
  // and resp only.
  Secret token;
  // grpc only: a connection is told to go (GOAWAY) at this age, so that clients spread over servers
  // that came later. Zero: never.
  std::chrono::nanoseconds max_connection_age{0};
  friend bool operator==(const DoorConfig&, const DoorConfig&) = default;
};

// A door that is left out is off: nothing listens that was not asked for.
struct ListenConfig {
  std::optional<DoorConfig> gateway;
  std::optional<DoorConfig> api;
  std::optional<DoorConfig> admin;
  std::optional<DoorConfig> ops;
  std::optional<DoorConfig> resp;
  std::optional<DoorConfig> grpc;  // Envoy's rate limit service.
  friend bool operator==(const ListenConfig&, const ListenConfig&) = default;
};

enum class OnFailure : uint8_t { kOpen, kClosed, kLocalShare };
std::string_view OnFailureName(OnFailure value);  // "open", "closed", "local_share"

enum class StoreKind : uint8_t { kMemory, kRedis };

// The client's side of TLS towards the store (rediss://).
struct StoreTls {
  std::string ca;    // PEM of the authorities trusted. Default: the system's.
  std::string cert;  // PEM chain and key shown to the server. Default: none.
  std::string key;
  std::string server_name;  // SNI and the name verified. Default: the URL's host.
  WrittenAt at;
  friend bool operator==(const StoreTls&, const StoreTls&) = default;
};

struct StoreConfig {
  StoreKind kind = StoreKind::kMemory;
  int64_t max_keys = 1'000'000;  // 1 .. 1e9. Bounded, so that a flood of new keys cannot take the
                                 // machine's memory.
  bool on_full_open =
      false;  // A newcomer that finds only exhausted entries: denied, so a flood buys nothing.
  // The following belong to stores over the network; the embedded store has no use for them.
  Secret url;  // May hold a password.
  std::chrono::nanoseconds timeout =
      std::chrono::milliseconds(20);              // Per decision, then on_failure.
  OnFailure on_failure = OnFailure::kLocalShare;  // Neither an outage nor an open door.
  int breaker_failures = 3;                       // Consecutive failures that open the breaker.
  std::chrono::nanoseconds breaker_open_for = std::chrono::milliseconds(500);
  StoreTls tls;
  std::string prefix = "weir:1:";  // Of every key; the number is the version of what they hold.
  int connections = 1;             // 1 .. 64 to each server, for each event loop; pipelined.
  int nodes = 0;  // 0 .. 100,000: how many share the limits, for local_share; 0: those seen.
  bool insecure = false;  // A password may go unencrypted to another host.
  WrittenAt url_at;
  friend bool operator==(const StoreConfig&, const StoreConfig&) = default;
};

enum class IdentityKind : uint8_t { kApiKey, kJwtSubject, kHeader, kIp };
std::string_view IdentityKindName(IdentityKind kind);  // "api_key", "jwt.sub", "header", "ip"

struct IdentitySource {
  IdentityKind kind = IdentityKind::kIp;
  std::string header;  // kHeader: the field name in lower case.
  friend bool operator==(const IdentitySource&, const IdentitySource&) = default;
};

enum class JwtAlgorithm : uint8_t { kHs256, kRs256, kEs256 };
std::string_view JwtAlgorithmName(JwtAlgorithm algorithm);  // "HS256", "RS256", "ES256"

struct JwtConfig {
  std::string keys;  // A JWKS or PEM file, or for HS256 a secret's file. Required.
  std::vector<JwtAlgorithm> algorithms = {JwtAlgorithm::kRs256,
                                          JwtAlgorithm::kEs256};  // Never "none".
  std::string issuer;               // `iss` must equal it. Default: not checked.
  std::string audience;             // `aud` must hold it. Default: not checked.
  std::chrono::seconds leeway{60};  // For clocks that differ; 0s .. 10m.
  friend bool operator==(const JwtConfig&, const JwtConfig&) = default;
};

struct IdentityConfig {
  // The first one present names the client. Always ends in ip, so that every call has a client.
  std::vector<IdentitySource> client = {{IdentityKind::kApiKey, {}}, {IdentityKind::kIp, {}}};
  std::optional<IdentitySource> require;  // 401 without it. Default: nobody is turned away.
  Secret secret;  // HMAC-SHA-256 key of client ids. Empty: made at start, for this process.
  std::optional<JwtConfig> jwt;
  std::vector<std::string>
      trusted_proxies;   // Canonical CIDRs ("127.0.0.1/32"). Default: none is trusted.
  int ipv6_prefix = 64;  // 1 .. 128. A /64 is what one customer gets, so it is one client.
  friend bool operator==(const IdentityConfig&, const IdentityConfig&) = default;
};

// Zero means "no such timeout".
struct TimeoutsConfig {
  std::chrono::nanoseconds header =
      std::chrono::seconds(10);  // For a request's head, from its first byte.
  std::chrono::nanoseconds idle =
      std::chrono::seconds(75);  // Of a kept-alive connection between calls.
  std::chrono::nanoseconds connect = std::chrono::seconds(5);  // To an upstream address.
  std::chrono::nanoseconds first_byte =
      std::chrono::seconds(60);  // Of an upstream's answer; models think long.
  std::chrono::nanoseconds write =
      std::chrono::seconds(30);       // Without progress towards a slow reader.
  std::chrono::nanoseconds total{0};  // Of a call. None: streams may run for hours.
  std::chrono::nanoseconds drain_delay =
      std::chrono::seconds(2);  // Unready but accepting, for balancers to notice.
  std::chrono::nanoseconds drain =
      std::chrono::seconds(20);  // For calls in flight; below the usual 30 s kill.
  friend bool operator==(const TimeoutsConfig&, const TimeoutsConfig&) = default;
};

struct BoundsConfig {
  int64_t header_bytes = 64 << 10;  // 1 KiB .. 1 MiB. A request's head; beyond it 431.
  int64_t body_bytes =
      32 << 20;  // 0 .. 1 TiB. A request's body; beyond it 413. Room for images and audio.
  int64_t inspect_bytes =
      1 << 20;  // 0 .. 64 MiB. What of a JSON body is held to read the model from it.
  int64_t connections = 20'000;  // 1 .. 1e6. Of all doors together.
  friend bool operator==(const BoundsConfig&, const BoundsConfig&) = default;
};

enum class ErrorBody : uint8_t { kAuto, kOpenAi, kAnthropic, kProblem };
std::string_view ErrorBodyName(ErrorBody body);  // "auto", "openai", "anthropic", "problem"

struct AnswersConfig {
  bool x_ratelimit = true;  // X-RateLimit-{Limit,Remaining,Reset} of the binding limit.
  bool ratelimit = true;    // RateLimit and RateLimit-Policy.
  bool retry_after = true;  // Retry-After and retry-after-ms.
  bool openai =
      true;  // x-ratelimit-*-{requests,tokens}, for the clients that pace themselves by them.
  bool x_ratelimit_reset_unix =
      true;  // X-RateLimit-Reset as Unix seconds; false: seconds from now.
  ErrorBody error_body =
      ErrorBody::kAuto;  // auto: by the route's path, so AI clients read their own shape.
  std::chrono::nanoseconds retry_jitter{
      0};  // 0s .. 1h. Added at random to announced waits, never taken off.
  friend bool operator==(const AnswersConfig&, const AnswersConfig&) = default;
};

struct CorsConfig {
  std::vector<std::string>
      origins;  // "https://app.example.com", or "*" alone. Default: CORS is off.
  friend bool operator==(const CorsConfig&, const CorsConfig&) = default;
};

struct UpstreamUrl {
  bool tls = false;
  std::string host;       // Without brackets.
  uint16_t port = 0;      // 80 or 443 when the URL has none.
  std::string base_path;  // "" or "/base", put before the forwarded path.
  friend bool operator==(const UpstreamUrl&, const UpstreamUrl&) = default;
};

struct UpstreamHeader {
  std::string name;  // Lower case.
  Secret value;      // Replaces what the client sent under that name.
  friend bool operator==(const UpstreamHeader&, const UpstreamHeader&) = default;
};

struct UpstreamConfig {
  std::string name;
  std::vector<UpstreamUrl> urls;  // 1 .. 64.
  std::vector<UpstreamHeader> headers;
  std::string tls_ca;           // PEM of the authorities trusted for https. Default: the system's.
  std::string tls_server_name;  // SNI and the name verified. Default: the URL's host.
  friend bool operator==(const UpstreamConfig&, const UpstreamConfig&) = default;
};

// All sections but routes and limits, which policy.h and routes.h hold in compiled form.
struct Config {
  ListenConfig listen;
  int threads = 0;     // 0 .. 1024 event loops. 0: one per core.
  bool watch = false;  // config.watch: reload when a file of the configuration changes.
  StoreConfig store;
  IdentityConfig identity;
  TimeoutsConfig timeouts;
  BoundsConfig bounds;
  AnswersConfig answers;
  CorsConfig cors;
  std::vector<UpstreamConfig> upstreams;
  friend bool operator==(const Config&, const Config&) = default;
};

}  // namespace weir::policy
