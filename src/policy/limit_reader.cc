#include "policy/limit_reader.h"

#include <algorithm>
#include <array>

#include "policy/override_index.h"
#include "policy/sections.h"

namespace weir::policy {
namespace {

// What of a rate cannot change without starting its counters afresh. Buckets and logs know times,
// so any rate can go on from them; windows are numbered by their length.
std::string PeriodKind(const core::MeterSpec& spec) {
  const std::string length = std::to_string(spec.rate.period.count());
  switch (spec.algorithm) {
    case Algorithm::kTokenBucket:
    case Algorithm::kSlidingWindow:
      return "rolling";
    case Algorithm::kParallel:
      return "slots";
    case Algorithm::kSlidingCounter:
      return "window:" + length + (spec.strict ? ":" + std::to_string(spec.buckets) : "");
    case Algorithm::kFixedWindow:
      if (spec.alignment == core::Alignment::kNone) return "window:" + length;
      return "calendar:" + length + ":" + spec.timezone;
  }
  return "";
}

// What makes the counters of a limit that binds to descriptors, next to the values. Each text with
// its length, so that no two are spelt alike.
std::string KeyText(const DescriptorPattern& pattern) {
  const auto spelt = [](const std::string& text) {
    return std::to_string(text.size()) + ":" + text;
  };
  std::string out = "descriptor " + spelt(pattern.domain);
  for (const EntryPattern& entry : pattern.entries) out += " " + spelt(entry.key);
  return out;
}

// Whether the condition can hold where the attribute is always empty, as a custom one is at the
// gateway.
bool CanBeEmpty(const Condition& condition) { return condition.Matches(Attributes()); }

}  // namespace

void LimitReader::Read(const YamlNode& node) {
  what_ = "limits[" + std::to_string(limits_.size()) + "]";
  const MapReader map(reader_, node, what_,
                      {"name", "per", "match", "rate", "parallel", "burst", "algorithm",
                       "sliding_counter", "align", "timezone", "enforce", "consistency", "missing",
                       "layer", "on_failure", "overrides", "domain", "descriptor"},
                      {{"wait", "waiting for room comes with a later version"},
                       {"queue", "queues come with a later version"}});
  if (!map.ok()) return;
  Limit limit{.place = reader_.PlaceOf(node.mark)};
  limit.name = ReadName(map);
  if (!limit.name.empty()) what_ = "limit `" + limit.name + "`";
  ReadBinding(map, limit);
  ReadChoices(map, limit);
  ReadLayer(map, limit);

  const Common common = ReadCommon(map);
  const bool parallel = map.Find("parallel") != nullptr;
  auto variant = ReadVariant(map, node, parallel ? Unit::kParallel : Unit::kRequests, common);
  if (variant) {
    limit.unit = parallel ? Unit::kParallel : variant->unit;
    limit.variants.push_back(std::move(variant->variant));
    if (const YamlNode* overrides = map.Find("overrides")) ReadOverrides(*overrides, common, limit);
  }
  limit.index = static_cast<int>(limits_.size());
  limit.needed_mask = limit.match.named_mask();
  for (int attribute : limit.per) limit.needed_mask |= uint32_t{1} << attribute;
  if (variant) {
    CheckLeased(map, limit);
    Identify(limit);
    CheckGateway(limit, node);
  }
  limits_.push_back(std::move(limit));
}

// Which calls the limit is for: those by attributes, or those by descriptors.
void LimitReader::ReadBinding(const MapReader& map, Limit& limit) {
  if (map.Find("descriptor") != nullptr || map.Find("domain") != nullptr)
    return ReadDescriptor(map, limit);
  if (const YamlNode* per = map.Find("per")) ReadPer(*per, limit);
  if (const YamlNode* match = map.Find("match")) limit.match = ReadMatch(*match, what_ + ": match");
}

std::string LimitReader::ReadName(const MapReader& map) {
  const YamlNode* value = map.Require("name");
  if (value == nullptr) return "";
  auto name = reader_.Text(*value, what_ + ".name");
  if (!name) return "";
  if (!IsName(*name)) {
    reader_.Fail(value->mark, what_ + ".name: a name has 1 to 64 letters, digits, `_`, `.` or `-`");
    return "";
  }
  const auto [known, is_new] = names_.try_emplace(*name, value->mark);
  if (!is_new) {
    reader_.Fail(value->mark, "limit `" + *name + "` is defined twice: here and at " +
                                  reader_.PlaceText(known->second));
  }
  return *name;
}

void LimitReader::ReadPer(const YamlNode& node, Limit& limit) {
  const auto items = reader_.List(node, what_ + ": per", /*or_one=*/true);
  if (!items) return;
  if (items->size() > Policy::kMaxPer) {
    reader_.Fail(node.mark, what_ + ": per names at most 8 attributes");
    return;
  }
  for (const YamlNode* item : *items) {
    const auto index = FindAttribute(*item, what_ + ": per");
    if (!index) continue;
    if (std::ranges::find(limit.per, *index) != limit.per.end()) {
      reader_.Fail(item->mark, what_ + ": per names `" + item->text + "` twice");
      continue;
    }
    limit.per.push_back(*index);
  }
}

void LimitReader::ReadEnforce(const YamlNode& node, Limit& limit) {
  const auto text = reader_.Text(node, what_ + ": enforce");
  if (!text || *text == "all") return;
  if (*text == "shadow") {
    limit.enforce = Enforce::kShadow;
    return;
  }
  const std::string_view digits = std::string_view(*text).substr(0, text->size() - 1);
  const auto percent = ParseWholeNumber(digits, "enforce");
  if (!text->ends_with('%') || !percent || *percent > 100) {
    reader_.Fail(node.mark, what_ +
                                ": enforce must be `all`, `shadow` or a share from `0%` to "
                                "`100%` in whole numbers, not `" +
                                *text + "`");
    return;
  }
  limit.enforce = Enforce::kPercent;
  limit.enforce_percent = static_cast<int>(*percent);
}

void LimitReader::ReadChoices(const MapReader& map, Limit& limit) {
  static constexpr std::pair<std::string_view, Missing> kMissing[] = {
      {"skip", Missing::kSkip}, {"empty", Missing::kEmpty}, {"deny", Missing::kDeny}};
  static constexpr std::pair<std::string_view, Consistency> kConsistency[] = {
      {"exact", Consistency::kExact},
      {"local", Consistency::kLocal},
      {"leased", Consistency::kLeased},
      {"leased_fast", Consistency::kLeasedFast}};
  static constexpr std::pair<std::string_view, OnFailure> kOnFailure[] = {
      {"open", OnFailure::kOpen},
      {"closed", OnFailure::kClosed},
      {"local_share", OnFailure::kLocalShare}};
  if (const YamlNode* value = map.Find("enforce")) ReadEnforce(*value, limit);
  if (const YamlNode* value = map.Find("missing")) {
    limit.missing =
        reader_.Choice<Missing>(*value, what_ + ": missing", kMissing).value_or(Missing::kDoor);
  }
  if (const YamlNode* value = map.Find("consistency")) {
    limit.consistency = reader_.Choice<Consistency>(*value, what_ + ": consistency", kConsistency)
                            .value_or(Consistency::kExact);
  }
  if (const YamlNode* value = map.Find("on_failure")) {
    limit.on_failure = reader_.Choice<OnFailure>(*value, what_ + ": on_failure", kOnFailure);
  }
}

// Nodes lease units of what refills evenly or starts afresh; a log of instants or a slot that a
// call holds has no such units.
void LimitReader::CheckLeased(const MapReader& map, const Limit& limit) {
  const YamlNode* const value = map.Find("consistency");
  if (value == nullptr || !IsLeased(limit.consistency)) return;
  for (const Variant& variant : limit.variants) {
    const Algorithm algorithm = variant.spec.algorithm;
    if (variant.unlimited || algorithm == Algorithm::kTokenBucket ||
        algorithm == Algorithm::kFixedWindow)
      continue;
    reader_.Fail(value->mark, what_ + ": consistency `" + value->text +
                                  "` is for token_bucket and fixed_window, not for " +
                                  std::string(AlgorithmName(algorithm)) + "; write `exact`");
    return;
  }
}

void LimitReader::ReadLayer(const MapReader& map, Limit& limit) {
  if (const YamlNode* value = map.Find("layer")) {
    const auto name = reader_.Text(*value, what_ + ": layer");
    const auto layer = name ? ParseLayer(*name) : std::nullopt;
    if (name && !layer) {
      reader_.Fail(value->mark, what_ +
                                    ": layer must be `global`, `ip`, `client`, `endpoint` or "
                                    "`model`, not `" +
                                    *name + "`");
    }
    limit.layer = layer.value_or(Layer::kGlobal);
    return;
  }
  for (int attribute : limit.per) limit.layer = std::max(limit.layer, LayerOf(attribute));
  for (int attribute = 0; attribute < attributes_.size(); ++attribute) {
    if ((limit.match.named_mask() >> attribute & 1) == 0) continue;
    limit.layer = std::max(limit.layer, LayerOf(attribute));
  }
}

void LimitReader::Identify(Limit& limit) {
  uint32_t per_mask = 0;
  std::string per;
  if (limit.descriptor) per = KeyText(*limit.descriptor);
  for (int attribute : limit.per) {
    per_mask |= uint32_t{1} << attribute;
    per += (per.empty() ? "" : ",") + std::string(attributes_.NameOf(attribute));
  }
  const std::string base = limit.name + "/" + std::string(UnitName(limit.unit)) + "/" + per + "/";
  for (size_t i = 0; i < limit.variants.size(); ++i) {
    Variant& variant = limit.variants[i];
    variant.identity =
        base + std::string(AlgorithmName(variant.spec.algorithm)) + "/" + PeriodKind(variant.spec);
    const bool key_decides = (variant.when.named_mask() & ~per_mask) == 0;
    if (!key_decides) variant.identity += "/when " + ToString(variant.when, attributes_);
  }
  IndexOverrides(limit);
}

void LimitReader::CheckGateway(Limit& limit, const YamlNode& node) {
  uint32_t custom_mask = 0;
  for (int i = kWellKnownAttributes; i < attributes_.size(); ++i) {
    if (!attributes_.NameOf(i).starts_with("header.")) custom_mask |= uint32_t{1} << i;
  }
  if (limit.missing == Missing::kSkip && (limit.needed_mask & custom_mask) != 0) {
    limit.applies_at_gateway = false;
  }
  for (const Condition& condition : limit.match.conditions()) {
    const bool custom = (custom_mask >> condition.attribute & 1) != 0;
    if (custom && !CanBeEmpty(condition)) limit.applies_at_gateway = false;
  }
  const bool metered = limit.unit != Unit::kRequests && limit.unit != Unit::kParallel;
  if (limit.descriptor) limit.applies_at_gateway = false;
  if (!gateway_ || !metered || !limit.applies_at_gateway) return;
  reader_.Fail(node.mark,
               what_ + " counts " + std::string(UnitName(limit.unit)) +
                   ", which the gateway does not meter yet: a later version brings it. Leave "
                   "`listen.gateway` out, or let `match` name a value of a custom attribute, which "
                   "only callers of /v1/check send");
}

}  // namespace weir::policy
