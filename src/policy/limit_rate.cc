// The part of LimitReader that reads how much a limit lets through: algorithm, `rate` or
// `parallel`, `burst`, and the overrides that change them.
#include "policy/limit_reader.h"

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

}  // namespace

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

}  // namespace weir::policy
