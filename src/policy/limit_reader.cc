#include "policy/limit_reader.h"

#include <algorithm>
#include <array>

#include "policy/override_index.h"
#include "policy/sections.h"

namespace weir::policy {
namespace {

constexpr size_t kMaxOverrides = 100'000;
constexpr int kMaxBuckets = 64;

core::Alignment AlignmentOf(PeriodName name) {
  switch (name) {
    case PeriodName::kMinute:
      return core::Alignment::kMinute;
    case PeriodName::kHour:
      return core::Alignment::kHour;
    case PeriodName::kDay:
      return core::Alignment::kDay;
    case PeriodName::kWeek:
      return core::Alignment::kWeek;
    case PeriodName::kMonth:
      return core::Alignment::kMonth;
    case PeriodName::kYear:
      return core::Alignment::kYear;
    case PeriodName::kNone:
    case PeriodName::kSecond:
      break;
  }
  return core::Alignment::kNone;
}

std::string AmountText(int64_t units, Unit unit) {
  if (unit == Unit::kUsd) return UsdText(units) + " usd";
  const std::string number = std::to_string(units);
  return unit == Unit::kRequests ? number : number + " " + std::string(UnitName(unit));
}

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

// Whether the condition can hold where the attribute is always empty, as a custom one is at the
// gateway.
bool CanBeEmpty(const Condition& condition) { return condition.Matches(Attributes()); }

}  // namespace

void LimitReader::Read(const YamlNode& node) {
  what_ = "limits[" + std::to_string(limits_.size()) + "]";
  const MapReader map(
      reader_, node, what_,
      {"name", "per", "match", "rate", "parallel", "burst", "algorithm", "sliding_counter", "align",
       "timezone", "enforce", "consistency", "missing", "layer", "on_failure", "overrides"},
      {{"wait", "waiting for room comes with a later version"},
       {"queue", "queues come with a later version"}});
  if (!map.ok()) return;
  Limit limit{.place = reader_.PlaceOf(node.mark)};
  limit.name = ReadName(map);
  if (!limit.name.empty()) what_ = "limit `" + limit.name + "`";
  if (const YamlNode* per = map.Find("per")) ReadPer(*per, limit);
  if (const YamlNode* match = map.Find("match")) limit.match = ReadMatch(*match, what_ + ": match");
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
    Identify(limit);
    CheckGateway(limit, node);
  }
  limits_.push_back(std::move(limit));
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
  static constexpr std::pair<std::string_view, int> kConsistency[] = {
      {"exact", 0}, {"local", 1}, {"leased", 2}, {"leased_fast", 2}};
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
    const auto choice = reader_.Choice<int>(*value, what_ + ": consistency", kConsistency);
    if (choice == 1) limit.consistency = Consistency::kLocal;
    if (choice == 2) {
      reader_.Fail(value->mark, what_ + ": consistency `" + value->text +
                                    "` is not there yet: a later version brings it; write "
                                    "`exact` or `local`");
    }
  }
  if (const YamlNode* value = map.Find("on_failure")) {
    limit.on_failure = reader_.Choice<OnFailure>(*value, what_ + ": on_failure", kOnFailure);
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

LimitReader::Common LimitReader::ReadCommon(const MapReader& map) {
  static constexpr std::pair<std::string_view, Algorithm> kAlgorithms[] = {
      {"token_bucket", Algorithm::kTokenBucket},
      {"sliding_window", Algorithm::kSlidingWindow},
      {"sliding_counter", Algorithm::kSlidingCounter},
      {"fixed_window", Algorithm::kFixedWindow}};
  static constexpr std::pair<std::string_view, bool> kAligns[] = {{"calendar", true}};
  Common common;
  if (map.Find("parallel") != nullptr) common.algorithm = Algorithm::kParallel;
  if (const YamlNode* value = map.Find("algorithm")) {
    const auto algorithm = reader_.Choice<Algorithm>(*value, what_ + ": algorithm", kAlgorithms);
    if (common.algorithm == Algorithm::kParallel) {
      reader_.Fail(value->mark,
                   what_ + ": `parallel` counts calls in flight; leave `algorithm` out");
    } else {
      common.algorithm = algorithm.value_or(common.algorithm);
    }
  }
  if (const YamlNode* value = map.Find("sliding_counter")) {
    if (common.algorithm != Algorithm::kSlidingCounter) {
      reader_.Fail(value->mark, what_ + ": these options need `algorithm: sliding_counter`");
    }
    const MapReader options(reader_, *value, what_ + ": sliding_counter", {"strict", "buckets"});
    bool strict_wanted = false;
    if (const YamlNode* strict = options.Find("strict")) {
      strict_wanted = reader_.Bool(*strict, what_ + ": sliding_counter.strict").value_or(false);
    }
    if (const YamlNode* buckets = options.Find("buckets")) {
      const auto count =
          reader_.Integer(*buckets, what_ + ": sliding_counter.buckets", 2, kMaxBuckets);
      common.buckets = static_cast<int>(count.value_or(common.buckets));
      if (!strict_wanted) {
        reader_.Fail(buckets->mark, what_ + ": `buckets` has a meaning with `strict: true` only");
      }
    }
    common.strict = strict_wanted && common.algorithm == Algorithm::kSlidingCounter;
  }
  const YamlNode* align = map.Find("align");
  if (align != nullptr) {
    common.calendar = reader_.Choice<bool>(*align, what_ + ": align", kAligns).value_or(false);
    if (common.calendar && common.algorithm != Algorithm::kFixedWindow) {
      reader_.Fail(align->mark, what_ + ": `align: calendar` needs `algorithm: fixed_window`");
      common.calendar = false;
    }
  }
  if (const YamlNode* value = map.Find("timezone")) {
    common.timezone = reader_.Text(*value, what_ + ": timezone").value_or("UTC");
    if (align == nullptr) {
      reader_.Fail(value->mark, what_ + ": `timezone` has a meaning with `align: calendar` only");
    }
  }
  return common;
}

std::optional<RateText> LimitReader::ReadRate(const MapReader& map, const YamlNode& node,
                                              const Common& common) {
  const YamlNode* rate = map.Find("rate");
  const YamlNode* parallel = map.Find("parallel");
  if ((rate != nullptr) == (parallel != nullptr)) {
    reader_.Fail(node.mark, what_ + (rate == nullptr ? " needs a `rate` or `parallel`"
                                                     : " has both `rate` and `parallel`; these are "
                                                       "two limits"));
    return std::nullopt;
  }
  const YamlNode& value = rate != nullptr ? *rate : *parallel;
  const auto text = reader_.Text(value, what_ + (rate != nullptr ? ": rate" : ": parallel"));
  if (!text) return std::nullopt;
  RateText read{.unlimited = true};
  if (parallel != nullptr && *text != "unlimited") {
    const auto slots = ParseWholeNumber(*text, "parallel");
    if (!slots) {
      reader_.Fail(value.mark, what_ + ": " + slots.error().message);
      return std::nullopt;
    }
    read = {.units = *slots, .unit = Unit::kParallel, .period = std::chrono::seconds(1)};
  } else if (rate != nullptr) {
    auto parsed = ParseRate(*text);
    if (!parsed) {
      reader_.Fail(value.mark, what_ + ": " + parsed.error().message);
      return std::nullopt;
    }
    read = *parsed;
  }
  // In an override of a parallel limit `rate` can only lift it.
  const bool slots_wanted = common.algorithm == Algorithm::kParallel;
  if (!read.unlimited && slots_wanted != (parallel != nullptr)) {
    reader_.Fail(value.mark, what_ + (slots_wanted ? " counts calls in flight; write `parallel: N`"
                                                   : " has a rate; write `rate: N/PERIOD`"));
    return std::nullopt;
  }
  return read;
}

bool LimitReader::Align(const RateText& rate, const Common& common, const YamlNode& node,
                        core::MeterSpec& spec) {
  if (!common.calendar) return true;
  spec.alignment = AlignmentOf(rate.period_name);
  spec.timezone = common.timezone;
  if (spec.alignment != core::Alignment::kNone) return true;
  reader_.Fail(node.mark, what_ +
                              ": `align: calendar` needs a period of min, hour, day, week, month "
                              "or year by name");
  return false;
}

void LimitReader::ReadBurst(const YamlNode& node, const RateText& rate, Unit unit,
                            const Common& common, core::MeterSpec& spec) {
  const auto text = reader_.Text(node, what_ + ": burst");
  if (!text) return;
  const auto burst = unit == Unit::kUsd ? ParseUsd(*text) : ParseWholeNumber(*text, "burst");
  if (!burst) {
    reader_.Fail(node.mark, what_ + ": " + burst.error().message);
  } else if (rate.unlimited || unit == Unit::kParallel) {
    reader_.Fail(node.mark, what_ + ": `burst` has no meaning without a rate; leave it out");
  } else if (common.algorithm != Algorithm::kTokenBucket) {
    if (*burst == rate.units) return;
    reader_.Fail(node.mark, what_ + ": `burst` is the token bucket's capacity; with " +
                                std::string(AlgorithmName(common.algorithm)) +
                                " leave it out or write " + AmountText(rate.units, unit));
  } else if (*burst == 0 && rate.units != 0) {
    reader_.Fail(node.mark, what_ +
                                ": `burst: 0` would admit nothing, ever; the least is 1, and "
                                "`rate: 0/min` denies all");
  } else if (rate.units == 0 && *burst != 0) {
    reader_.Fail(node.mark, what_ + ": a rate of 0 denies all; `burst` would have no meaning");
  } else {
    spec.rate.burst = *burst;
  }
}

std::optional<LimitReader::UnitVariant> LimitReader::ReadVariant(const MapReader& map,
                                                                 const YamlNode& node, Unit unit,
                                                                 const Common& common) {
  const auto rate = ReadRate(map, node, common);
  if (!rate) return std::nullopt;
  if (rate->unit) unit = *rate->unit;
  UnitVariant read{.unit = unit};
  Variant& variant = read.variant;
  variant.place = reader_.PlaceOf(node.mark);
  variant.unlimited = rate->unlimited;
  core::MeterSpec& spec = variant.spec;
  spec.algorithm = common.algorithm;
  spec.strict = common.strict;
  spec.buckets = common.buckets;
  spec.rate = {.units = rate->units, .period = rate->period, .burst = rate->units};
  if (common.algorithm == Algorithm::kParallel) spec.rate.burst = 0;
  if (const YamlNode* burst = map.Find("burst")) ReadBurst(*burst, *rate, unit, common, spec);
  if (rate->unlimited) {
    variant.rate_text = "unlimited";
    return read;
  }
  if (common.algorithm == Algorithm::kParallel) {
    variant.rate_text = "parallel " + std::to_string(rate->units);
  } else {
    const std::string period = rate->period_name == PeriodName::kNone
                                   ? DurationText(rate->period)
                                   : std::string(ShortName(rate->period_name));
    variant.rate_text = AmountText(rate->units, unit) + "/" + period;
  }
  if (!Align(*rate, common, node, spec)) return std::nullopt;
  if (const auto meter = core::Meter::Compile(spec); !meter) {
    reader_.Fail(node.mark, what_ + ": " + meter.error().message);
    return std::nullopt;
  }
  return read;
}

void LimitReader::ReadOverrides(const YamlNode& node, const Common& common, Limit& limit) {
  const auto items = reader_.List(node, what_ + ": overrides");
  if (!items) return;
  if (items->size() > kMaxOverrides) {
    reader_.Fail(node.mark, what_ + ": at most " + std::to_string(kMaxOverrides) + " overrides");
    return;
  }
  const std::string limit_what = what_;
  for (size_t i = 0; i < items->size(); ++i) {
    what_ = limit_what + ": overrides[" + std::to_string(i) + "]";
    ReadOverride(*(*items)[i], what_, common, limit);
  }
  what_ = limit_what;
}

void LimitReader::ReadOverride(const YamlNode& node, const std::string& what, const Common& common,
                               Limit& limit) {
  const MapReader map(reader_, node, what, {"when", "rate", "parallel", "burst"});
  if (!map.ok()) return;
  const YamlNode* when = map.Require("when");
  Matcher matcher;
  if (when != nullptr) {
    matcher = ReadMatch(*when, what + ": when");
    if (matcher.empty() && when->kind == YamlNode::Kind::kMap && when->entries.empty()) {
      reader_.Fail(when->mark, what +
                                   ": an empty `when` holds for every call; change the limit's "
                                   "own rate instead");
    }
  }
  auto read = ReadVariant(map, node, limit.unit, common);
  if (!read) return;
  if (!read->variant.unlimited && read->unit != limit.unit) {
    reader_.Fail(node.mark, what + " counts " + std::string(UnitName(read->unit)) +
                                ", but its limit counts " + std::string(UnitName(limit.unit)));
    return;
  }
  read->variant.when = std::move(matcher);
  limit.variants.push_back(std::move(read->variant));
}

void LimitReader::Identify(Limit& limit) {
  uint32_t per_mask = 0;
  std::string per;
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
  if (!gateway_ || !metered || !limit.applies_at_gateway) return;
  reader_.Fail(node.mark,
               what_ + " counts " + std::string(UnitName(limit.unit)) +
                   ", which the gateway does not meter yet: a later version brings it. Leave "
                   "`listen.gateway` out, or let `match` name a value of a custom attribute, which "
                   "only callers of /v1/check send");
}

}  // namespace weir::policy
