#include "policy/envoy_ratelimit/service_config.h"

#include <algorithm>

#include "base/suggest.h"
#include "policy/rate_text.h"

namespace weir::policy::envoy_ratelimit {
namespace {

constexpr size_t kMaxFileBytes = YamlTree::kMaxTextBytes;
constexpr int64_t kMaxRequests = 4'294'967'295;  // The service counts in 32 bits.

class Reader {
 public:
  Reader(YamlReader& reader, std::vector<Leftover>& leftovers)
      : reader_(reader), leftovers_(leftovers) {}

  void ReadRoot(const YamlNode& root, std::vector<ServiceDomain>& domains) {
    const MapReader map(reader_, root, "", {"domain", "descriptors"});
    if (!map.ok()) return;
    const YamlNode* const name_node = map.Require("domain");
    const std::string name = name_node != nullptr ? Text(*name_node, "domain") : "";
    if (name.empty()) {
      if (name_node != nullptr) reader_.Fail(name_node->mark, "domain must not be empty");
      return;
    }
    auto domain = std::ranges::find(domains, name, &ServiceDomain::name);
    if (domain == domains.end()) domain = domains.insert(domain, ServiceDomain{name, {}});
    if (const YamlNode* list = map.Find("descriptors")) ReadChildren(*list, domain->root);
  }

 private:
  // As written: the service replaces no variables.
  std::string Text(const YamlNode& node, const std::string& what) {
    if (node.kind == YamlNode::Kind::kScalar) return node.text;
    if (node.kind != YamlNode::Kind::kNull) reader_.Fail(node.mark, what + " must be a text");
    return "";
  }

  void ReadChildren(const YamlNode& list, ServiceNode& parent) {
    const auto items = reader_.List(list, "descriptors");
    if (!items) return;
    if (++depth_ > kMaxDescriptorEntries) {
      reader_.Fail(list.mark,
                   "descriptors: at most " + std::to_string(kMaxDescriptorEntries) + " levels");
    } else {
      for (const YamlNode* item : *items) ReadNode(*item, parent);
    }
    --depth_;
  }

  void ReadNode(const YamlNode& item, ServiceNode& parent) {
    const MapReader map(reader_, item, "descriptors[]",
                        {"key", "value", "rate_limit", "descriptors", "shadow_mode", "quota_mode",
                         "detailed_metric", "value_to_metric", "share_threshold", "metadata"});
    if (!map.ok()) return;
    auto node = std::make_unique<ServiceNode>();
    node->place = reader_.PlaceOf(item.mark);
    if (const YamlNode* key = map.Require("key")) {
      node->entry.key = Text(*key, "key");
      if (node->entry.key.empty()) reader_.Fail(key->mark, "key must not be empty");
    }
    if (const YamlNode* value = map.Find("value")) node->entry.value = Text(*value, "value");
    if (!node->entry.value.empty()) {
      const bool wildcard = node->entry.value.find('*') != std::string::npos;
      node->entry.kind = wildcard ? EntryPattern::Kind::kWildcard : EntryPattern::Kind::kExact;
    }
    for (const auto& sibling : parent.children) {
      if (sibling->entry != node->entry) continue;
      reader_.Fail(item.mark, "descriptor `" + ToString({&node->entry, 1}) +
                                  "` is defined twice: here and at " + ToString(sibling->place));
    }
    if (const YamlNode* rate = map.Find("rate_limit")) ReadRate(*rate, *node);
    if (const YamlNode* shadow = map.Find("shadow_mode"))
      node->shadow = reader_.Bool(*shadow, "shadow_mode").value_or(false);
    NoteLeftovers(map);
    if (const YamlNode* list = map.Find("descriptors")) ReadChildren(*list, *node);
    parent.children.push_back(std::move(node));
  }

  void NoteLeftovers(const MapReader& map) {
    static constexpr std::pair<std::string_view, std::string_view> kSwitches[] = {
        {"quota_mode", "the limit denies like any other"},
        {"detailed_metric", "metrics are counted by limit, never by value"},
        {"value_to_metric", "metrics are counted by limit, never by value"},
        {"share_threshold", "each value that the wildcard matches has a counter of its own"}};
    for (const auto& [key, instead] : kSwitches) {
      const YamlNode* const value = map.Find(key);
      if (value == nullptr || !reader_.Bool(*value, key).value_or(false)) continue;
      Leave(*value, "`" + std::string(key) + "` has no equivalent: " + std::string(instead));
    }
    if (const YamlNode* metadata = map.Find("metadata"))
      Leave(*metadata, "`metadata` has no equivalent, and is left out");
  }

  void Leave(const YamlNode& node, std::string what) {
    leftovers_.push_back({reader_.PlaceOf(node.mark), std::move(what)});
  }

  void ReadRate(const YamlNode& node, ServiceNode& to) {
    const MapReader map(reader_, node, "rate_limit",
                        {"unit", "requests_per_unit", "unlimited", "name", "replaces"});
    if (!map.ok()) return;
    ServiceRate rate;
    if (const YamlNode* unlimited = map.Find("unlimited"))
      rate.unlimited = reader_.Bool(*unlimited, "rate_limit.unlimited").value_or(false);
    if (const YamlNode* name = map.Find("name")) rate.name = Text(*name, "rate_limit.name");
    if (const YamlNode* replaces = map.Find("replaces"))
      Leave(*replaces, "`replaces` has no equivalent: the limits that it names go on to apply");
    const YamlNode* const unit = rate.unlimited ? map.Find("unit") : map.Require("unit");
    const YamlNode* const requests = map.Find("requests_per_unit");
    if (rate.unlimited && (unit != nullptr || requests != nullptr)) {
      reader_.Fail(node.mark,
                   "rate_limit: `unlimited: true` goes without `unit` and "
                   "`requests_per_unit`");
    }
    if (!rate.unlimited && unit != nullptr) rate.period = PeriodOf(*unit);
    if (requests != nullptr) {
      rate.requests =
          reader_.Integer(*requests, "rate_limit.requests_per_unit", 0, kMaxRequests).value_or(0);
    }
    to.rate = std::move(rate);
  }

  std::string PeriodOf(const YamlNode& node) {
    static constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
        {"second", "s"},  {"minute", "min"},  {"hour", "hour"}, {"day", "day"},
        {"week", "week"}, {"month", "month"}, {"year", "year"}};
    std::string unit = Text(node, "rate_limit.unit");
    std::ranges::transform(unit, unit.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::vector<std::string_view> names;
    for (const auto& [name, period] : kUnits) {
      if (unit == name) return std::string(period);
      names.push_back(name);
    }
    reader_.Fail(node.mark, "rate_limit.unit must be " + base::ListOfNames(names) + ", not `" +
                                node.text + "`");
    return "";
  }

  YamlReader& reader_;
  std::vector<Leftover>& leftovers_;
  size_t depth_ = 0;
};

}  // namespace

void ReadServiceText(YamlReader& reader, const std::string& text, const std::string& name,
                     std::vector<ServiceDomain>& domains, std::vector<Leftover>& leftovers) {
  const int file = reader.AddFile(name);
  const auto tree = ParseYaml(text, file);
  if (!tree) {
    reader.Fail(tree.error().mark, tree.error().message);
    return;
  }
  Reader(reader, leftovers).ReadRoot(tree->root(), domains);
}

void ReadServiceFile(YamlReader& reader, const std::string& path,
                     std::vector<ServiceDomain>& domains, std::vector<Leftover>& leftovers) {
  const Result<std::string> text = ReadWholeFile(path, kMaxFileBytes, FileKind::kAny);
  if (text) return ReadServiceText(reader, *text, path, domains, leftovers);
  reader.Fail({reader.AddFile(path), 0, 0}, text.error().message);
}

}  // namespace weir::policy::envoy_ratelimit
