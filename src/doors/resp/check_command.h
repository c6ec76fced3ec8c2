// WEIR.CHECK, WEIR.SETTLE and WEIR.RELEASE: the decision API's calls as commands. What they ask
// becomes an item as JSON would give it, so that all further answers, errors too, are the API's
// own.
//
//   WEIR.CHECK attribute value [attribute value ...] [COST unit amount ...] [PEEK]
//              [RESERVE [TTL duration]]
//   WEIR.SETTLE reservation unit amount [unit amount ...]
//   WEIR.RELEASE reservation
//
// The words of options may be in any case; where the policy declares an attribute of that name,
// the option is in capitals.
//
// Thread safety: CheckReader has one owner; its items live until the next Read and as long as the
// words.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "doors/checks.h"
#include "policy/attributes.h"
#include "weir/result.h"
#include "wire/json/check_request.h"

namespace weir::doors::resp {

class CheckReader {
 public:
  // kInvalidArgument names the field as the API does. Allocates nothing in the steady state.
  Result<const json::CheckItem*> Read(std::span<const std::string_view> words,
                                      const policy::AttributeTable& names);

 private:
  enum class Option : uint8_t { kNone, kCost, kPeek, kReserve };
  static Option OptionOf(std::string_view word, const policy::AttributeTable& names);
  Result<void> ReadAttribute(std::span<const std::string_view>& words);
  Result<void> ReadReserve(std::span<const std::string_view>& words);

  json::CheckItem item_;
  std::vector<json::NameValue> attributes_;
};

// REQUIRES: as many words as the command table says.
Result<ReservationEnd> ReadSettle(std::span<const std::string_view> words);

}  // namespace weir::doors::resp
