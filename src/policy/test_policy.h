// Loading policies from text in tests, and asking them about calls.
//
//   auto policy = MustLoad("limits: [{name: a, rate: 1/s}]");
//   EXPECT_THAT(ErrorsOf("limit: []"), ElementsAre("test.yaml:1:1: unknown key `limit`; ..."));
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace weir::policy {

using Variables = std::map<std::string, std::string, std::less<>>;

inline Env EnvOf(Variables variables) {
  return [variables = std::move(variables)](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

inline std::vector<std::string> Texts(const std::vector<ConfigError>& errors) {
  std::vector<std::string> out;
  for (const ConfigError& error : errors) out.push_back(ToString(error));
  return out;
}

// The policy, or null after a test failure that shows what was wrong.
inline std::shared_ptr<const Policy> MustLoad(const std::string& text, Variables variables = {}) {
  auto loaded = Policy::FromText(text, "test.yaml", EnvOf(std::move(variables)));
  if (loaded) return *loaded;
  for (const std::string& error : Texts(loaded.error())) ADD_FAILURE() << error;
  return nullptr;
}

// The mistakes of a text that must not load; none after a failure.
inline std::vector<std::string> ErrorsOf(const std::string& text, Variables variables = {}) {
  auto loaded = Policy::FromText(text, "test.yaml", EnvOf(std::move(variables)));
  if (!loaded) return Texts(loaded.error());
  ADD_FAILURE() << "loaded, though it must not:\n" << text;
  return {};
}

// The mistakes in one limit that is written as a flow map: "rate: 1/s, burst: 0".
inline std::vector<std::string> LimitErrors(const std::string& keys) {
  return ErrorsOf("limits:\n- {name: a, " + keys + "}\n");
}

// The names of the limits that apply to a call, sorted.
inline std::vector<std::string> Applying(const Policy& policy, const Attributes& call,
                                         Missing door = Missing::kSkip) {
  std::vector<std::string> names;
  for (const Limit& limit : policy.limits()) {
    if (SelectVariant(limit, call, door) != kDoesNotApply) names.push_back(limit.name);
  }
  std::ranges::sort(names);
  return names;
}

inline std::string RateFor(const Limit& limit, const Attributes& call) {
  const int variant = SelectVariant(limit, call, Missing::kSkip);
  return variant < 0 ? "none" : limit.variants[static_cast<size_t>(variant)].rate_text;
}

// Every key of the contract once. Needs ${KEY}.
inline constexpr char kEveryKey[] = R"(
listen:
  gateway: {address: 0.0.0.0:8080, tls: {cert: c.pem, key: k.pem}}
  api:   {address: 127.0.0.1:8081, token: t0ken}
  admin: 127.0.0.1:8082
  ops:   0.0.0.0:9090
threads: 3
config: {watch: true}
store:
  kind: memory
  max_keys: 2000000
  on_full: open
  url: redis://127.0.0.1:6379/0
  timeout: 30ms
  on_failure: closed
  breaker: {failures: 5, open_for: 2s}
  tls: {ca: redis-ca.pem, cert: redis.pem, key: redis.key, server_name: redis.example.com}
  prefix: 'weir:test:'
  connections: 2
  nodes: 5
  insecure: true
identity:
  client: [api_key, jwt.sub, header.X-User-Id, ip]
  require: api_key
  secret: 0123456789abcdef0123456789abcdef
  jwt: {keys: jwks.json, algorithms: [RS256, ES256], issuer: x, audience: y, leeway: 30s}
  trusted_proxies: [127.0.0.1/32, 10.0.0.0/8]
  ipv6_prefix: 56
timeouts: {header: 11s, idle: 76s, connect: 6s, first_byte: 61s, write: 31s, total: 1h, drain_delay: 3s, drain: 21s}
bounds: {header: 32KiB, body: 64MiB, inspect: 2MiB, connections: 10000}
answers: {headers: [x-ratelimit, retry-after], x_ratelimit_reset: seconds, error_body: openai, retry_jitter: 10s}
cors: {origins: ['https://app.example.com']}
upstreams:
  - {name: ai, urls: ['https://api.example.com', 'http://[::1]:8090/base/'], headers: {authorization: "Bearer ${KEY}"}, tls: {ca: ca.pem, server_name: api.example.com}}
routes:
  - {match: {path: /v1/*, method: [GET, POST], host: '*.example.com'}, upstream: ai, rewrite: {prefix: /openai/v1}}
attributes: [tenant]
limits:
  - {name: per-ip,     per: [ip],            rate: 10000/min}
  - {name: per-client, per: [client],        rate: 300/min, burst: 50}
  - {name: chat,       per: [client],        rate: 60/min, match: {method: [POST], path: /v1/chat/completions}, algorithm: sliding_window}
  - {name: parallel,   per: [client],        parallel: 10}
  - {name: month,      per: [client],        rate: 50/month, algorithm: fixed_window, align: calendar, timezone: Europe/Berlin}
  - {name: trial,      per: [client],        rate: 5/min, enforce: shadow}
  - {name: tenth,      per: [tenant, header.X-Team], rate: 5/min, enforce: 10%, consistency: local, missing: empty, layer: global, on_failure: open}
  - {name: counter,    rate: 5/min, algorithm: sliding_counter, sliding_counter: {strict: true, buckets: 20}}
  - name: special
    per: client
    rate: 300/min
    match: {path: [/v1/*, /v2/*], not: {ip: 10.0.0.0/8}}
    overrides:
    - {when: {client: acme}, rate: 600/min, burst: 100}
    - {when: {client: 'big-*'}, rate: unlimited}
include: []
)";

}  // namespace weir::policy
