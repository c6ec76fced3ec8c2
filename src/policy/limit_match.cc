// The part of LimitReader that reads `match` and `when`.
#include "policy/limit_reader.h"

namespace weir::policy {

std::optional<int> LimitReader::FindAttribute(const YamlNode& node, const std::string& what) {
  const auto name = reader_.Text(node, what);
  if (!name) return std::nullopt;
  auto index = attributes_.Find(*name);
  if (index && *index == kUnusedAttribute) index = attributes_.Add(*name);
  if (!index) {
    std::string message = what + ": " + index.error().message;
    if (message.ends_with("is not declared")) message += "; add it to `attributes`";
    reader_.Fail(node.mark, std::move(message));
    return std::nullopt;
  }
  if (*index == kPlanAttribute) {
    reader_.Fail(node.mark, what + ": `plan` is not there yet: a later version brings plans");
    return std::nullopt;
  }
  return *index;
}

std::optional<Condition> LimitReader::ReadCondition(const YamlEntry& entry,
                                                    const std::string& what) {
  const auto attribute = FindAttribute(*entry.key, what);
  if (!attribute) return std::nullopt;
  const std::string name = what + "." + entry.key->text;
  const auto items = reader_.List(*entry.value, name, /*or_one=*/true);
  if (!items) return std::nullopt;
  if (items->empty()) {
    reader_.Fail(entry.value->mark, name + ": an empty list matches nothing");
    return std::nullopt;
  }
  Condition condition{.attribute = *attribute};
  for (const YamlNode* item : *items) {
    const auto text = reader_.Text(*item, name);
    if (!text) continue;
    auto pattern = ParsePattern(*attribute, *text);
    if (pattern) {
      condition.patterns.push_back(std::move(*pattern));
    } else {
      reader_.Fail(item->mark, what + ": " + pattern.error().message);
    }
  }
  return condition;
}

std::vector<Condition> LimitReader::ReadConditions(const YamlNode& node, const std::string& what,
                                                   Matcher* negations) {
  std::vector<Condition> conditions;
  if (node.kind != YamlNode::Kind::kMap) {
    reader_.Fail(node.mark, what + " must be a map of attributes to values");
    return conditions;
  }
  RefuseDoubledKeys(reader_, node, what);
  for (const YamlEntry& entry : node.entries) {
    if (entry.key->kind == YamlNode::Kind::kScalar && entry.key->text == "not") {
      if (negations == nullptr) {
        reader_.Fail(entry.key->mark, what + ": `not` does not nest");
        continue;
      }
      auto group = ReadConditions(*entry.value, what + ".not", nullptr);
      if (entry.value->kind == YamlNode::Kind::kMap && entry.value->entries.empty()) {
        reader_.Fail(entry.value->mark, what + ".not: an empty `not` would exclude every call");
      }
      if (!group.empty()) negations->AddNegated(std::move(group));
      continue;
    }
    if (auto condition = ReadCondition(entry, what)) conditions.push_back(std::move(*condition));
  }
  return conditions;
}

Matcher LimitReader::ReadMatch(const YamlNode& node, const std::string& what) {
  Matcher matcher;
  for (Condition& condition : ReadConditions(node, what, &matcher)) {
    matcher.Add(std::move(condition));
  }
  return matcher;
}

}  // namespace weir::policy
