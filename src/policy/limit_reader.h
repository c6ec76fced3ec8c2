// One item of `limits`, from YAML to a compiled Limit.
//
//   LimitReader limits(reader, attributes, gateway_is_on);
//   for (const YamlNode* item : items) limits.Read(*item);
//   policy.limits = limits.Take();
//
// Thread safety: belongs to one load.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "policy/policy.h"
#include "policy/rate_text.h"
#include "policy/yaml_reader.h"

namespace weir::policy {

class LimitReader {
 public:
  // `attributes` gains the headers that the limits use. `gateway` says whether its door is open:
  // there, limits of tokens and usd are refused until it meters them.
  LimitReader(YamlReader& reader, AttributeTable& attributes, bool gateway)
      : reader_(reader), attributes_(attributes), gateway_(gateway) {}

  // Reads one limit; mistakes are noted in the reader.
  void Read(const YamlNode& node);

  std::vector<Limit> Take() { return std::move(limits_); }

 private:
  // What the keys of a limit have in common, before rates are put in.
  struct Common {
    Algorithm algorithm = Algorithm::kTokenBucket;
    bool strict = false;
    int buckets = 10;
    bool calendar = false;
    std::string timezone = "UTC";
  };

  // A variant with the unit that its rate is in.
  struct UnitVariant {
    Unit unit = Unit::kRequests;
    Variant variant;
  };

  std::string ReadName(const MapReader& map);
  void ReadPer(const YamlNode& node, Limit& limit);
  void ReadBinding(const MapReader& map, Limit& limit);
  void ReadDescriptor(const MapReader& map, Limit& limit);
  std::optional<EntryPattern> ReadEntry(const YamlNode& node, const std::string& what);
  void ReadEnforce(const YamlNode& node, Limit& limit);
  void ReadChoices(const MapReader& map, Limit& limit);
  void CheckLeased(const MapReader& map, const Limit& limit);
  void ReadLayer(const MapReader& map, Limit& limit);
  Common ReadCommon(const MapReader& map);
  std::optional<RateText> ReadRate(const MapReader& map, const YamlNode& node,
                                   const Common& common);
  void ReadBurst(const YamlNode& node, const RateText& rate, Unit unit, const Common& common,
                 core::MeterSpec& spec);

  // The rate of a limit or an override. `unit` is what a rate without one counts.
  std::optional<UnitVariant> ReadVariant(const MapReader& map, const YamlNode& node, Unit unit,
                                         const Common& common);
  bool Align(const RateText& rate, const Common& common, const YamlNode& node,
             core::MeterSpec& spec);
  void ReadOverrides(const YamlNode& node, const Common& common, Limit& limit);
  void ReadOverride(const YamlNode& node, const std::string& what, const Common& common,
                    Limit& limit);

  Matcher ReadMatch(const YamlNode& node, const std::string& what);
  std::vector<Condition> ReadConditions(const YamlNode& node, const std::string& what,
                                        Matcher* negations);
  std::optional<Condition> ReadCondition(const YamlEntry& entry, const std::string& what);
  std::optional<int> FindAttribute(const YamlNode& node, const std::string& what);

  // Names the counters of each variant.
  void Identify(Limit& limit);
  void CheckGateway(Limit& limit, const YamlNode& node);

  YamlReader& reader_;
  AttributeTable& attributes_;
  const bool gateway_;
  std::string what_;  // "limit `per-ip`", for messages.
  std::vector<Limit> limits_;
  std::unordered_map<std::string, YamlMark> names_;
};

}  // namespace weir::policy
