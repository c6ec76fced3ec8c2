#include "wire/json/amounts.h"

#include <algorithm>
#include <vector>

#include "base/suggest.h"
#include "wire/json/scanner.h"

namespace weir::json {
namespace {

constexpr int kUsdDecimals = 6;
constexpr std::string_view kWholeNumber = "must be a whole number of at least 0";
constexpr std::string_view kUsdAmount = "must be an amount of at least 0 with at most six decimals";
constexpr std::string_view kTooLargeUsd = "must be at most 9007199254.740992";

}  // namespace

std::optional<Unit> CostUnit(std::string_view name) {
  if (name == "requests") return Unit::kRequests;
  if (name == "tokens") return Unit::kTokens;
  if (name == "usd") return Unit::kUsd;
  if (name == "bytes") return Unit::kBytes;
  if (name == "input_tokens") return Unit::kInputTokens;
  if (name == "output_tokens") return Unit::kOutputTokens;
  return std::nullopt;
}

std::string CostUnitFault(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kNames = {
      "requests", "tokens", "input_tokens", "output_tokens", "usd", "bytes"};
  if (name == "parallel") return "a slot is taken by \"reserve\", not by a cost";
  const std::string hint = base::DidYouMean(name, kNames);
  return "is not a unit" + (hint.empty() ? "; there is " + base::ListOfNames(kNames) : hint);
}

std::string_view ReadAmountAt(Scanner& in, Unit unit, UnitAmounts& out) {
  const bool usd = unit == Unit::kUsd;
  const unsigned bit = 1u << static_cast<unsigned>(unit);
  if (out.given & bit) return kTwice;
  int64_t& amount = out.amount[static_cast<size_t>(unit)];
  switch (in.ReadNumber(usd ? kUsdDecimals : 0, kMaxUnits, amount)) {
    case NumberOutcome::kOk:
      out.given = static_cast<uint8_t>(out.given | bit);
      return {};
    case NumberOutcome::kTooLarge:
      return usd ? kTooLargeUsd : kTooManyUnits;
    default:
      return usd ? kUsdAmount : kWholeNumber;
  }
}

std::string_view ReadAmount(Unit unit, std::string_view text, UnitAmounts& out) {
  std::vector<char> unescaped;  // Numbers need none.
  Scanner in(text, unescaped);
  UnitAmounts read = out;
  const std::string_view fault =
      in.Begin() ? ReadAmountAt(in, unit, read) : (unit == Unit::kUsd ? kUsdAmount : kWholeNumber);
  if (!fault.empty()) return fault;
  if (!in.End()) return unit == Unit::kUsd ? kUsdAmount : kWholeNumber;
  out = read;
  return {};
}

std::string FieldFault(std::string_view prefix, std::string_view name, std::string_view what) {
  constexpr size_t kNameShown = 64;
  std::string fault(prefix);
  if (!name.empty() || !prefix.empty()) {
    if (!prefix.empty() && !name.empty()) fault.push_back('.');
    size_t shown = std::min(name.size(), kNameShown);
    // Not in the middle of a character.
    while (shown < name.size() && shown > 0 && (name[shown] & 0xC0) == 0x80) --shown;
    fault.append(name.substr(0, shown));
    if (shown < name.size()) fault.append("...");
    fault.append(": ");
  }
  fault.append(what);
  return fault;
}

}  // namespace weir::json
