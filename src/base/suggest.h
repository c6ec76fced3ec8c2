// "did you mean": the known name that is nearest to a misspelt one.
//
//   std::string hint = DidYouMean("burts", known);   // "; did you mean `burst`?"
//
// Pure functions; for error paths, they allocate.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weir::base {

// "; did you mean `NAME`?" for the nearest of `known`, or "" when none is near enough to be meant.
std::string DidYouMean(std::string_view name, std::span<const std::string_view> known);

// "`a`, `b` or `c`"
std::string ListOfNames(std::span<const std::string_view> names);

}  // namespace weir::base
