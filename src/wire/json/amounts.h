// Amounts by unit, as a body of the decision API or a command of the RESP door names them, and what
// both say of those that are wrong.
//
//   json::UnitAmounts cost;
//   std::string_view fault = json::ReadAmount(Unit::kTokens, "500", cost);
//   if (!fault.empty()) return json::FieldFault("cost", "tokens", fault);
//
// Thread safety: pure functions. Only the sentences of errors allocate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/limit.h"

namespace weir::json {

class Scanner;

// usd in micro-dollars.
struct UnitAmounts {
  std::array<int64_t, kUnitCount> amount{};
  uint8_t given = 0;  // Bit i: amount[i] was named.

  bool has(Unit unit) const { return (given >> static_cast<int>(unit)) & 1; }
  int64_t operator[](Unit unit) const { return amount[static_cast<size_t>(unit)]; }
};

inline constexpr std::string_view kTooManyUnits = "must be at most 9007199254740992";
inline constexpr std::string_view kTwice = "comes twice";

// The unit of that name, if a cost can have it; else what is wrong with the name.
std::optional<Unit> CostUnit(std::string_view name);
std::string CostUnitFault(std::string_view name);

// The number at the scanner's place, or all of `text`. What is wrong with it, or "": then it is in
// `out`. (A scanner that failed is at no number at all.)
std::string_view ReadAmountAt(Scanner& in, Unit unit, UnitAmounts& out);
std::string_view ReadAmount(Unit unit, std::string_view text, UnitAmounts& out);

// "prefix.name: what", with the name cut to a bearable length.
std::string FieldFault(std::string_view prefix, std::string_view name, std::string_view what);

}  // namespace weir::json
