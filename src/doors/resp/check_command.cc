#include "doors/resp/check_command.h"

#include <algorithm>
#include <string>

#include "doors/resp/command_table.h"

namespace weir::doors::resp {
namespace {

using Words = std::span<const std::string_view>;

std::unexpected<Error> Wrong(std::string_view prefix, std::string_view name,
                             std::string_view what) {
  return InvalidArgument(json::FieldFault(prefix, name, what));
}

// One `unit amount` off the front.
Result<void> ReadAmount(std::string_view prefix, Words& words, json::UnitAmounts& out) {
  const std::optional<Unit> unit = json::CostUnit(words[0]);
  if (!unit) return Wrong(prefix, words[0], json::CostUnitFault(words[0]));
  if (words.size() < 2) return Wrong(prefix, words[0], "is missing");
  const std::string_view fault = json::ReadAmount(*unit, words[1], out);
  if (!fault.empty()) return Wrong(prefix, words[0], fault);
  words = words.subspan(2);
  return {};
}

}  // namespace

CheckReader::Option CheckReader::OptionOf(std::string_view word,
                                          const policy::AttributeTable& names) {
  struct Spelling {
    Option option;
    std::string_view upper, lower;
  };
  static constexpr Spelling kOptions[] = {{Option::kCost, "COST", "cost"},
                                          {Option::kPeek, "PEEK", "peek"},
                                          {Option::kReserve, "RESERVE", "reserve"}};
  for (const Spelling& spelling : kOptions) {
    if (!EqualsLower(word, spelling.lower)) continue;
    return word == spelling.upper || !names.Find(word) ? spelling.option : Option::kNone;
  }
  return Option::kNone;
}

Result<void> CheckReader::ReadAttribute(Words& words) {
  constexpr std::string_view kField = "attributes";
  const std::string_view name = words[0];
  if (words.size() < 2) return Wrong(kField, name, "has no value");
  const std::string_view value = words[1];
  words = words.subspan(2);
  if (name == "api_key") {
    if (item_.api_key) return Wrong(kField, name, json::kTwice);
    item_.api_key = value;
    return {};
  }
  if (std::ranges::find(attributes_, name, &json::NameValue::name) != attributes_.end())
    return Wrong(kField, name, json::kTwice);
  if (attributes_.size() == json::kAttributesMax) return Wrong(kField, "", "must be at most 64");
  attributes_.push_back({name, value});
  return {};
}

Result<void> CheckReader::ReadReserve(Words& words) {
  item_.reserve = true;
  words = words.subspan(1);
  if (words.empty() || !EqualsLower(words[0], "ttl")) return {};
  const std::optional<std::chrono::nanoseconds> ttl =
      words.size() < 2 ? std::nullopt : json::ParseReserveTtl(words[1]);
  if (!ttl) return Wrong("reserve", "ttl", json::kReserveTtlFault);
  item_.reserve_ttl = *ttl;
  words = words.subspan(2);
  return {};
}

Result<const json::CheckItem*> CheckReader::Read(Words words, const policy::AttributeTable& names) {
  item_ = {};
  attributes_.clear();
  words = words.subspan(1);
  bool options = false;
  bool in_cost = false;
  while (!words.empty()) {
    const Option option = OptionOf(words[0], names);
    options = options || option != Option::kNone;
    Result<void> read;
    switch (option) {
      case Option::kCost:
        words = words.subspan(1);
        in_cost = true;
        if (words.empty()) return Wrong("cost", "", "is missing");
        break;
      case Option::kPeek:
        words = words.subspan(1);
        item_.peek = true;
        in_cost = false;
        break;
      case Option::kReserve:
        read = ReadReserve(words);
        in_cost = false;
        break;
      case Option::kNone:
        if (options && !in_cost)
          return Wrong("", words[0], "is none of the options COST, PEEK and RESERVE");
        read = in_cost ? ReadAmount("cost", words, item_.cost) : ReadAttribute(words);
        break;
    }
    if (!read) return std::unexpected(read.error());
  }
  if (item_.cost.given == 0) {
    item_.cost.amount[static_cast<size_t>(Unit::kRequests)] = 1;
    item_.cost.given = 1u << static_cast<unsigned>(Unit::kRequests);
  }
  item_.attributes = attributes_;
  return &item_;
}

Result<ReservationEnd> ReadSettle(Words words) {
  json::UnitAmounts actual;
  const std::string_view reservation = words[1];
  for (words = words.subspan(2); !words.empty();) {
    const Result<void> read = ReadAmount("actual", words, actual);
    if (!read) return std::unexpected(read.error());
  }
  return SettleOf(reservation, actual);
}

}  // namespace weir::doors::resp
