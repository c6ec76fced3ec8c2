// `listen`: which doors are open, where, and who may come in.
#include <algorithm>

#include "base/ip_text.h"
#include "policy/rate_text.h"
#include "policy/sections.h"

namespace weir::policy {
namespace {

constexpr size_t kMaxUnixPath = 107;  // sockaddr_un of Linux, without the NUL.
constexpr std::string_view kUnix = "unix:";
constexpr std::chrono::hours kMaxConnectionAge{24 * 365};

struct HostPort {
  std::string host;
  std::string port;
};

// What is wrong with an address, or its parts. A unix socket has neither host nor port.
std::expected<HostPort, std::string> SplitAddress(const std::string& address) {
  if (address.starts_with(kUnix)) {
    const size_t length = address.size() - kUnix.size();
    if (length == 0 || length > kMaxUnixPath)
      return std::unexpected("a socket's path has 1 to 107 bytes");
    return HostPort{};
  }
  const size_t colon = address.rfind(':');
  const std::string hint = "write HOST:PORT, as in `127.0.0.1:8080` or `[::1]:8080`, or unix:/PATH";
  if (colon == std::string::npos) return std::unexpected(hint);
  HostPort parts{address.substr(0, colon), address.substr(colon + 1)};
  if (parts.host.starts_with('[') && parts.host.ends_with(']')) {
    parts.host = parts.host.substr(1, parts.host.size() - 2);
    if (parts.host.find(':') == std::string::npos || !base::ParseIp(parts.host)) {
      return std::unexpected(hint);
    }
  } else if (parts.host.find_first_of(":[]/ ") != std::string::npos) {
    return std::unexpected(hint);
  }
  const auto port = ParseWholeNumber(parts.port, "port");
  if (!port || *port > 65535) return std::unexpected("the port must be 0 to 65535");
  return parts;
}

bool IsLoopback(const std::string& address) {
  if (address.starts_with(kUnix)) return true;
  const auto parts = SplitAddress(address);
  if (!parts) return false;
  if (parts->host == "localhost") return true;
  const std::optional<base::IpBits> bits = base::ParseIp(parts->host);
  return bits && (base::Contains(*base::ParseIpRange("127.0.0.0/8"), *bits) ||
                  bits == base::ParseIp("::1"));
}

std::optional<TlsConfig> ReadTls(YamlReader& reader, const YamlNode& node,
                                 const std::string& what) {
  const MapReader map(reader, node, what, {"cert", "key", "client_ca"});
  TlsConfig tls;
  const YamlNode* cert = map.Require("cert");
  const YamlNode* key = map.Require("key");
  if (cert == nullptr || key == nullptr) return std::nullopt;
  tls.cert = reader.Path(*cert, what + ".cert").value_or("");
  tls.key = reader.Path(*key, what + ".key").value_or("");
  if (const YamlNode* ca = map.Find("client_ca")) {
    tls.client_ca = reader.Path(*ca, what + ".client_ca").value_or("");
  }
  return tls;
}

// What a door has besides its address and TLS.
enum class Extra : uint8_t { kNone, kToken, kConnectionAge };

MapReader DoorMap(YamlReader& reader, const YamlNode& node, const std::string& what, Extra extra) {
  switch (extra) {
    case Extra::kToken:
      return {reader, node, what, {"address", "tls", "token"}};
    case Extra::kConnectionAge:
      return {reader, node, what, {"address", "tls", "max_connection_age"}};
    case Extra::kNone:
      break;
  }
  return {reader, node, what, {"address", "tls"}};
}

std::optional<DoorConfig> ReadDoor(YamlReader& reader, const YamlNode& node,
                                   const std::string& what, Extra extra) {
  DoorConfig door;
  const YamlNode* address = &node;
  const bool takes_token = extra == Extra::kToken;
  bool has_token = false;
  if (node.kind != YamlNode::Kind::kScalar) {
    const MapReader map = DoorMap(reader, node, what, extra);
    address = map.Require("address");
    if (const YamlNode* tls = map.Find("tls")) door.tls = ReadTls(reader, *tls, what + ".tls");
    if (const YamlNode* token = takes_token ? map.Find("token") : nullptr) {
      has_token = true;  // One that cannot be read has been refused for that.
      door.token = reader.ReadSecret(*token, what + ".token").value_or(Secret());
    }
    const bool ages = extra == Extra::kConnectionAge;
    if (const YamlNode* age = ages ? map.Find("max_connection_age") : nullptr) {
      door.max_connection_age =
          reader.Duration(*age, what + ".max_connection_age", {}, kMaxConnectionAge)
              .value_or(door.max_connection_age);
    }
  }
  if (address == nullptr) return std::nullopt;
  const auto text = reader.Text(*address, what);
  if (!text) return std::nullopt;
  if (const auto parts = SplitAddress(*text); !parts) {
    reader.Fail(address->mark, what + ": `" + *text + "` is no address; " + parts.error());
    return std::nullopt;
  }
  door.address = *text;
  const bool guarded = has_token || (door.tls && !door.tls->client_ca.empty());
  if (takes_token && !guarded && !IsLoopback(door.address)) {
    reader.Fail(address->mark,
                what + ": `" + door.address +
                    "` can be reached from other hosts, so it needs a `token` (or `tls` with "
                    "`client_ca`); or listen on 127.0.0.1");
  }
  return door;
}

}  // namespace

void ReadListen(YamlReader& reader, const YamlNode& node, ListenConfig& listen) {
  const MapReader map(reader, node, "listen", {"gateway", "api", "admin", "ops", "resp", "grpc"});
  struct Door {
    std::string_view name;
    std::optional<DoorConfig>& config;
    Extra extra;
  };
  // Envoy has no token to show to the grpc door: who may come there is for the network or for
  // client certificates to say, as it is at the gateway.
  const Door doors[] = {
      {"gateway", listen.gateway, Extra::kNone}, {"api", listen.api, Extra::kToken},
      {"admin", listen.admin, Extra::kToken},    {"ops", listen.ops, Extra::kNone},
      {"resp", listen.resp, Extra::kToken},      {"grpc", listen.grpc, Extra::kConnectionAge}};
  std::vector<std::pair<std::string, const YamlNode*>> taken;
  for (const Door& door : doors) {
    const YamlNode* value = map.Find(door.name);
    if (value == nullptr) continue;
    const std::string what = "listen." + std::string(door.name);
    door.config = ReadDoor(reader, *value, what, door.extra);
    if (!door.config || door.config->address.ends_with(":0")) continue;
    const auto other = std::ranges::find(taken, door.config->address,
                                         &std::pair<std::string, const YamlNode*>::first);
    if (other != taken.end()) {
      reader.Fail(value->mark, what + ": `" + door.config->address + "` is taken already at " +
                                   reader.PlaceText(other->second->mark));
    }
    taken.emplace_back(door.config->address, value);
  }
}

}  // namespace weir::policy
