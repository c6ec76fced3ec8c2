// `identity`: who a caller is.
#include <algorithm>

#include "base/ip_text.h"
#include "policy/sections.h"

namespace weir::policy {
namespace {

constexpr size_t kMinSecretBytes = 16;
constexpr std::string_view kHeaderPrefix = "header.";

bool IsFieldName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

std::optional<IdentitySource> ReadSource(YamlReader& reader, const YamlNode& node,
                                         const std::string& what) {
  auto text = reader.Text(node, what);
  if (!text) return std::nullopt;
  if (*text == "api_key") return IdentitySource{IdentityKind::kApiKey, {}};
  if (*text == "jwt.sub") return IdentitySource{IdentityKind::kJwtSubject, {}};
  if (*text == "ip") return IdentitySource{IdentityKind::kIp, {}};
  if (text->starts_with(kHeaderPrefix)) {
    std::string name = text->substr(kHeaderPrefix.size());
    std::ranges::transform(name, name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    if (IsFieldName(name)) return IdentitySource{IdentityKind::kHeader, name};
  }
  reader.Fail(node.mark, what + ": `" + *text +
                             "` names no identity; it must be `api_key`, `jwt.sub`, `ip` or "
                             "`header.NAME`");
  return std::nullopt;
}

void ReadChain(YamlReader& reader, const YamlNode& node, IdentityConfig& identity) {
  const auto items = reader.List(node, "identity.client");
  if (!items) return;
  identity.client.clear();
  for (const YamlNode* item : *items) {
    const auto source = ReadSource(reader, *item, "identity.client");
    if (!source) continue;
    if (std::ranges::find(identity.client, *source) != identity.client.end()) {
      reader.Fail(item->mark, "identity.client: `" + item->text + "` is given twice");
      continue;
    }
    if (!identity.client.empty() && identity.client.back().kind == IdentityKind::kIp) {
      reader.Fail(item->mark, "identity.client: every call has an ip, so `" + item->text +
                                  "` after it would never be read; put `ip` last");
      continue;
    }
    identity.client.push_back(*source);
  }
  if (identity.client.empty() || identity.client.back().kind != IdentityKind::kIp) {
    identity.client.push_back({IdentityKind::kIp, {}});
  }
}

void ReadJwt(YamlReader& reader, const YamlNode& node, IdentityConfig& identity) {
  static constexpr std::pair<std::string_view, JwtAlgorithm> kAlgorithms[] = {
      {"HS256", JwtAlgorithm::kHs256},
      {"RS256", JwtAlgorithm::kRs256},
      {"ES256", JwtAlgorithm::kEs256}};
  const MapReader map(reader, node, "identity.jwt",
                      {"keys", "algorithms", "issuer", "audience", "leeway"});
  JwtConfig& jwt = identity.jwt.emplace();
  if (const YamlNode* value = map.Require("keys")) {
    jwt.keys = reader.Path(*value, "identity.jwt.keys").value_or("");
  }
  if (const YamlNode* value = map.Find("algorithms")) {
    const auto items = reader.List(*value, "identity.jwt.algorithms");
    jwt.algorithms.clear();
    for (const YamlNode* item : items.value_or(std::vector<const YamlNode*>{})) {
      const auto algorithm =
          reader.Choice<JwtAlgorithm>(*item, "identity.jwt.algorithms", kAlgorithms);
      if (algorithm && std::ranges::find(jwt.algorithms, *algorithm) == jwt.algorithms.end()) {
        jwt.algorithms.push_back(*algorithm);
      }
    }
    if (items && items->empty()) {
      reader.Fail(value->mark, "identity.jwt.algorithms must name at least one algorithm");
    }
  }
  if (const YamlNode* value = map.Find("issuer")) {
    jwt.issuer = reader.Text(*value, "identity.jwt.issuer").value_or("");
  }
  if (const YamlNode* value = map.Find("audience")) {
    jwt.audience = reader.Text(*value, "identity.jwt.audience").value_or("");
  }
  if (const YamlNode* value = map.Find("leeway")) {
    const auto leeway = reader.Duration(*value, "identity.jwt.leeway", std::chrono::seconds(0),
                                        std::chrono::minutes(10));
    if (leeway) jwt.leeway = std::chrono::duration_cast<std::chrono::seconds>(*leeway);
  }
}

void ReadProxies(YamlReader& reader, const YamlNode& node, IdentityConfig& identity) {
  const auto items = reader.List(node, "identity.trusted_proxies");
  for (const YamlNode* item : items.value_or(std::vector<const YamlNode*>{})) {
    const auto text = reader.Text(*item, "identity.trusted_proxies");
    if (!text) continue;
    const auto range = base::ParseIpRange(*text);
    if (range) {
      identity.trusted_proxies.push_back(base::ToString(*range));
    } else {
      reader.Fail(item->mark, "identity.trusted_proxies: " + range.error().message);
    }
  }
}

// What only shows when the whole section is known.
void CheckTogether(YamlReader& reader, const MapReader& map, const YamlNode& node,
                   const IdentityConfig& identity) {
  const auto names = [&](IdentityKind kind) {
    return std::ranges::find(identity.client, kind, &IdentitySource::kind) !=
               identity.client.end() ||
           (identity.require && identity.require->kind == kind);
  };
  const YamlNode* chain = map.Find("client");
  const YamlMark mark = chain != nullptr ? chain->mark : node.mark;
  if (names(IdentityKind::kJwtSubject) && !identity.jwt) {
    reader.Fail(mark,
                "identity names `jwt.sub`, but there is no `identity.jwt` to verify tokens with");
  }
  if (names(IdentityKind::kHeader) && identity.trusted_proxies.empty()) {
    reader.Warn(mark,
                "identity names a header, but no `trusted_proxies` may set it: it is never read");
  }
}

}  // namespace

void ReadIdentity(YamlReader& reader, const YamlNode& node, IdentityConfig& identity) {
  const MapReader map(reader, node, "identity",
                      {"client", "require", "secret", "jwt", "trusted_proxies", "ipv6_prefix"},
                      {{"plan", "plans come with a later version"},
                       {"plans", "plans come with a later version"},
                       {"clients", "lists of clients and their plans come with a later version"}});
  if (const YamlNode* value = map.Find("client")) ReadChain(reader, *value, identity);
  if (const YamlNode* value = map.Find("require")) {
    identity.require = ReadSource(reader, *value, "identity.require");
  }
  if (const YamlNode* value = map.Find("secret")) {
    identity.secret = reader.ReadSecret(*value, "identity.secret").value_or(Secret());
    if (!identity.secret.empty() && identity.secret.Reveal().size() < kMinSecretBytes) {
      reader.Fail(value->mark,
                  "identity.secret must have at least 16 bytes; `openssl rand -hex 32` "
                  "makes a good one");
    }
  }
  if (const YamlNode* value = map.Find("jwt")) ReadJwt(reader, *value, identity);
  if (const YamlNode* value = map.Find("trusted_proxies")) ReadProxies(reader, *value, identity);
  if (const YamlNode* value = map.Find("ipv6_prefix")) {
    const auto length = reader.Integer(*value, "identity.ipv6_prefix", 1, 128);
    identity.ipv6_prefix = static_cast<int>(length.value_or(identity.ipv6_prefix));
  }
  if (map.ok()) CheckTogether(reader, map, node, identity);
}

}  // namespace weir::policy
