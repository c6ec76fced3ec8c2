// `store`: where the counters live.
#include <algorithm>

#include "policy/sections.h"

namespace weir::policy {
namespace {

constexpr size_t kPrefixBytesMax = 64;

void ReadBreaker(YamlReader& reader, const YamlNode& node, StoreConfig& store) {
  const MapReader map(reader, node, "store.breaker", {"failures", "open_for"});
  if (const YamlNode* value = map.Find("failures")) {
    const auto failures = reader.Integer(*value, "store.breaker.failures", 1, 1'000'000);
    store.breaker_failures = static_cast<int>(failures.value_or(store.breaker_failures));
  }
  if (const YamlNode* value = map.Find("open_for")) {
    store.breaker_open_for = reader
                                 .Duration(*value, "store.breaker.open_for",
                                           std::chrono::milliseconds(1), std::chrono::hours(1))
                                 .value_or(store.breaker_open_for);
  }
}

void ReadStoreTls(YamlReader& reader, const YamlNode& node, StoreTls& tls) {
  const MapReader map(reader, node, "store.tls", {"ca", "cert", "key", "server_name"});
  tls.at = {reader.PlaceOf(node.mark)};
  if (const YamlNode* value = map.Find("ca"))
    tls.ca = reader.Path(*value, "store.tls.ca").value_or("");
  if (const YamlNode* value = map.Find("cert"))
    tls.cert = reader.Path(*value, "store.tls.cert").value_or("");
  if (const YamlNode* value = map.Find("key"))
    tls.key = reader.Path(*value, "store.tls.key").value_or("");
  if (const YamlNode* value = map.Find("server_name"))
    tls.server_name = reader.Text(*value, "store.tls.server_name").value_or("");
  if (tls.cert.empty() != tls.key.empty()) {
    reader.Fail(node.mark, "store.tls: `cert` and `key` go together");
  }
}

// Keys are PREFIX{tag}:id, so a brace in the prefix would move them to another hash slot.
void ReadPrefix(YamlReader& reader, const YamlNode& node, StoreConfig& store) {
  const auto prefix = reader.Text(node, "store.prefix");
  if (!prefix) return;
  const bool plain = std::ranges::all_of(
      *prefix, [](char c) { return c > ' ' && c < 0x7f && c != '{' && c != '}'; });
  if (prefix->empty() || prefix->size() > kPrefixBytesMax || !plain) {
    reader.Fail(node.mark,
                "store.prefix: 1 to 64 visible ASCII characters without `{` and `}`, such as "
                "`weir:1:`");
    return;
  }
  store.prefix = *prefix;
}

void ReadNetwork(YamlReader& reader, const MapReader& map, StoreConfig& store) {
  static constexpr std::pair<std::string_view, OnFailure> kOnFailure[] = {
      {"open", OnFailure::kOpen},
      {"closed", OnFailure::kClosed},
      {"local_share", OnFailure::kLocalShare}};
  if (const YamlNode* value = map.Find("url")) {
    store.url = reader.ReadSecret(*value, "store.url").value_or(Secret());
    store.url_at = {reader.PlaceOf(value->mark)};
  }
  if (const YamlNode* value = map.Find("timeout")) {
    store.timeout = reader
                        .Duration(*value, "store.timeout", std::chrono::milliseconds(1),
                                  std::chrono::minutes(1))
                        .value_or(store.timeout);
  }
  if (const YamlNode* value = map.Find("on_failure")) {
    store.on_failure =
        reader.Choice<OnFailure>(*value, "store.on_failure", kOnFailure).value_or(store.on_failure);
  }
  if (const YamlNode* value = map.Find("breaker")) ReadBreaker(reader, *value, store);
  if (const YamlNode* value = map.Find("tls")) ReadStoreTls(reader, *value, store.tls);
  if (const YamlNode* value = map.Find("prefix")) ReadPrefix(reader, *value, store);
  if (const YamlNode* value = map.Find("connections")) {
    store.connections = static_cast<int>(
        reader.Integer(*value, "store.connections", 1, 64).value_or(store.connections));
  }
  if (const YamlNode* value = map.Find("nodes")) {
    store.nodes =
        static_cast<int>(reader.Integer(*value, "store.nodes", 0, 100'000).value_or(store.nodes));
  }
  if (const YamlNode* value = map.Find("insecure")) {
    store.insecure = reader.Bool(*value, "store.insecure").value_or(false);
  }
}

}  // namespace

void ReadStore(YamlReader& reader, const YamlNode& node, StoreConfig& store) {
  static constexpr std::pair<std::string_view, StoreKind> kKinds[] = {
      {"memory", StoreKind::kMemory}, {"redis", StoreKind::kRedis}};
  static constexpr std::pair<std::string_view, bool> kOnFull[] = {{"closed", false},
                                                                  {"open", true}};
  const MapReader map(reader, node, "store",
                      {"kind", "max_keys", "on_full", "url", "timeout", "on_failure", "breaker",
                       "tls", "prefix", "connections", "nodes", "insecure"},
                      {{"journal", "journals come with a later version"}});
  if (const YamlNode* value = map.Find("kind")) {
    store.kind = reader.Choice<StoreKind>(*value, "store.kind", kKinds).value_or(store.kind);
  }
  if (const YamlNode* value = map.Find("max_keys")) {
    store.max_keys =
        reader.Integer(*value, "store.max_keys", 1, 1'000'000'000).value_or(store.max_keys);
  }
  if (const YamlNode* value = map.Find("on_full")) {
    store.on_full_open = reader.Choice<bool>(*value, "store.on_full", kOnFull).value_or(false);
  }
  ReadNetwork(reader, map, store);
  const YamlNode* const url = map.Find("url");
  if (url != nullptr && map.Find("kind") == nullptr) {
    reader.Fail(url->mark,
                "store.url without store.kind: write `kind: redis` to share the limits there, or "
                "`kind: memory` to keep them on this node");
  }
  if (store.kind == StoreKind::kRedis && url == nullptr) {
    reader.Fail(node.mark, "store.url is missing; write `url: redis://127.0.0.1:6379/0`");
  }
}

}  // namespace weir::policy
