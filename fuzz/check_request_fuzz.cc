// Decision API bodies: what is accepted is JSON to an independent parser too, whole numbers agree,
// amounts stay in range, and a parser that is reused answers as a fresh one.
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "fuzz/check.h"
#include "wire/json/check_request.h"

using namespace weir;

namespace {

void CheckAmounts(const json::UnitAmounts& amounts) {
  for (int unit = 0; unit < kUnitCount; ++unit) {
    fuzz::Check(amounts.amount[unit] >= 0 && amounts.amount[unit] <= kMaxUnits);
  }
}

boost::json::value Reparse(std::string_view body) {
  boost::json::error_code ec;
  boost::json::parse_options options;
  options.max_depth = 64;
  boost::json::value value =
      boost::json::parse(boost::json::string_view(body.data(), body.size()), ec, {}, options);
  fuzz::Check(!ec && value.is_object());
  return value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view body = fuzz::Input(data, size);
  static json::CheckRequestParser reused;
  json::CheckRequestParser fresh;
  const bool accepted = fresh.ParseCheck(body);
  fuzz::Check(accepted == reused.ParseCheck(body));
  fuzz::Check(accepted == fresh.error().empty());
  fuzz::Check(fresh.error() == reused.error());
  if (accepted) {
    const boost::json::value value = Reparse(body);
    fuzz::Check(fresh.items().size() == reused.items().size());
    for (const json::CheckItem& item : fresh.items()) {
      CheckAmounts(item.cost);
      for (const json::NameValue& attribute : item.attributes) {
        fuzz::Check(attribute.name.size() + attribute.value.size() <= body.size());
      }
    }
    if (!fresh.is_batch()) {
      const json::CheckItem& item = fresh.items()[0];
      const boost::json::value* cost = value.get_object().if_contains("cost");
      if (cost != nullptr && cost->is_int64()) {
        fuzz::Check(item.cost[Unit::kRequests] == cost->get_int64());
      }
      const boost::json::value* attributes = value.get_object().if_contains("attributes");
      for (const json::NameValue& attribute : item.attributes) {
        fuzz::Check(attribute.value ==
                    std::string_view(attributes->at(attribute.name).as_string()));
      }
    }
  }
  json::SettleRequest settle;
  if (fresh.ParseSettle(body, settle)) {
    CheckAmounts(settle.actual);
    Reparse(body);
  }
  json::ReleaseRequest release;
  if (fresh.ParseRelease(body, release)) Reparse(body);
  json::ResetRequest reset;
  if (fresh.ParseReset(body, reset)) Reparse(body);
  return 0;
}
