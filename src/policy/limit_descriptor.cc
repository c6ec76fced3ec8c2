// The part of LimitReader that reads `domain` and `descriptor`, which stand in place of `per` and
// `match`.
#include "policy/limit_reader.h"

namespace weir::policy {

std::optional<EntryPattern> LimitReader::ReadEntry(const YamlNode& node, const std::string& what) {
  const MapReader map(reader_, node, what, {"key", "value"});
  const YamlNode* const key = map.ok() ? map.Require("key") : nullptr;
  if (key == nullptr) return std::nullopt;
  auto name = reader_.Text(*key, what + ".key");
  if (!name) return std::nullopt;
  if (name->empty()) {
    reader_.Fail(key->mark, what + ".key: must not be empty");
    return std::nullopt;
  }
  EntryPattern entry{.key = std::move(*name)};
  const YamlNode* const value = map.Find("value");
  if (value == nullptr) return entry;
  auto text = reader_.Text(*value, what + ".value");
  if (!text) return std::nullopt;
  entry.kind = text->find('*') == std::string::npos ? EntryPattern::Kind::kExact
                                                    : EntryPattern::Kind::kWildcard;
  entry.value = std::move(*text);
  return entry;
}

void LimitReader::ReadDescriptor(const MapReader& map, Limit& limit) {
  static constexpr std::pair<std::string_view, std::string_view> kOfAttributes[] = {
      {"per", "the values of its entries are the key already"},
      {"match", "it says itself which calls the limit is for"},
      {"missing", "a descriptor has all of its entries"},
      {"overrides", "bind another limit to a more exact `descriptor`"},
      {"parallel", "calls by descriptors do not say when they end"}};
  for (const auto& [key, why] : kOfAttributes) {
    const YamlNode* const value = map.Find(key);
    if (value == nullptr) continue;
    reader_.Fail(value->mark, what_ + ": `" + std::string(key) +
                                  "` does not go with `descriptor`: " + std::string(why));
  }
  const YamlNode* const domain = map.Require("domain");
  const YamlNode* const descriptor = map.Require("descriptor");
  if (domain == nullptr || descriptor == nullptr) return;
  DescriptorPattern pattern;
  if (auto name = reader_.Text(*domain, what_ + ": domain")) pattern.domain = std::move(*name);
  if (pattern.domain.empty()) reader_.Fail(domain->mark, what_ + ": domain must not be empty");
  const auto items = reader_.List(*descriptor, what_ + ": descriptor");
  if (!items) return;
  if (items->empty() || items->size() > kMaxDescriptorEntries) {
    reader_.Fail(descriptor->mark, what_ + ": descriptor has 1 to " +
                                       std::to_string(kMaxDescriptorEntries) + " entries");
    return;
  }
  const std::string list = "limits[" + std::to_string(limits_.size()) + "].descriptor[";
  for (size_t i = 0; i < items->size(); ++i) {
    auto entry = ReadEntry(*(*items)[i], list + std::to_string(i) + "]");
    if (entry) pattern.entries.push_back(std::move(*entry));
  }
  limit.descriptor = std::move(pattern);
}

}  // namespace weir::policy
