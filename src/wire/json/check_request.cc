#include "wire/json/check_request.h"

#include <algorithm>
#include <initializer_list>
#include <span>

#include "base/suggest.h"
#include "wire/durations.h"
#include "wire/json/scanner.h"

namespace weir::json {
namespace {

constexpr std::string_view kMissing = "is missing";
constexpr std::string_view kCheckExample =
    R"({"attributes":{"client":"alice"},"cost":{"requests":1}})";
constexpr std::string_view kSettleExample = R"({"reservation":"...","actual":{"requests":1}})";
constexpr std::string_view kReleaseExample = R"({"reservation":"..."})";
constexpr std::string_view kResetExample = R"({"limit":"...","attributes":{"client":"alice"}})";
constexpr std::string_view kUnknownField = "is not a known field";
constexpr std::chrono::nanoseconds kTtlMax = std::chrono::hours(24);

}  // namespace

// Reads one body for the parser. Its Read methods say false when something is wrong: then either
// the scanner failed (no JSON), or the parser's error_ names the field.
class CheckRequestParser::Reader {
 public:
  Reader(CheckRequestParser& parser, std::string_view body)
      : parser_(parser),
        in_(body, parser.text_),
        empty_(body.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    parser.is_batch_ = false;
    parser.error_.clear();
    parser.items_.clear();
    parser.attributes_.clear();
    parser.attribute_ranges_.clear();
    parser.item_errors_.clear();
  }

  // Runs `read` on a body that must be an object like `example`, and concludes.
  template <typename Read>
  bool ReadBody(std::string_view example, Read&& read) {
    const auto object_meant = [example] {
      return "a JSON object is meant, as in " + std::string(example);
    };
    bool ok = in_.Begin();
    if (ok && in_.Peek() != '{') {
      ok = in_.SkipValue(kJsonDepthMax) && Wrong("", "", "not a JSON object: " + object_meant());
    }
    if (ok && read() && in_.End()) return true;
    if (in_.failed()) {
      parser_.error_ = empty_ ? "the body is empty: "
                              : "not valid JSON at byte " + std::to_string(in_.offset()) + ": ";
      parser_.error_ += object_meant();
    }
    return false;
  }

  bool ReadCheckBody();
  bool ReadReservationBody(std::string_view& reservation, UnitAmounts* actual);
  bool ReadResetBody(ResetRequest& out);

 private:
  // "prefix.name: what", with the name cut to a bearable length.
  bool Wrong(std::string_view prefix, std::string_view name, std::string_view what);
  // Wrong, with what may have been meant: the nearest of the known names, or all of them.
  bool Unknown(std::string_view prefix, std::string_view name, std::string_view what,
               std::initializer_list<std::string_view> known);
  // Marks the field as seen; false when it was seen before.
  bool Once(unsigned& seen, unsigned bit, std::string_view prefix, std::string_view name) {
    if (seen & bit) return Wrong(prefix, name, kTwice);
    seen |= bit;
    return true;
  }

  bool ReadItem(CheckItem& item, bool alone);
  bool ReadBatch();
  bool ReadText(std::string_view prefix, std::string_view name, std::string_view& out);
  bool ReadFlag(std::string_view name, bool& out);
  bool ReadAmount(Unit unit, std::string_view prefix, std::string_view name, UnitAmounts& out);
  bool ReadAmounts(std::string_view prefix, UnitAmounts& out);
  bool ReadAttributes(std::optional<std::string_view>& api_key);
  bool ReadDescriptor();
  bool ReadEntry(NameValue& entry);
  bool ReadRule(AdHocRule& rule);
  bool ReadReserve(CheckItem& item);

  CheckRequestParser& parser_;
  Scanner in_;
  const bool empty_;
};

bool CheckRequestParser::Reader::Wrong(std::string_view prefix, std::string_view name,
                                       std::string_view what) {
  parser_.error_ = FieldFault(prefix, name, what);
  return false;
}

bool CheckRequestParser::Reader::Unknown(std::string_view prefix, std::string_view name,
                                         std::string_view what,
                                         std::initializer_list<std::string_view> known) {
  const std::span<const std::string_view> names(known.begin(), known.size());
  std::string hint = base::DidYouMean(name, names);
  if (hint.empty()) hint = "; there is " + base::ListOfNames(names);
  return Wrong(prefix, name, std::string(what) + hint);
}

bool CheckRequestParser::Reader::ReadText(std::string_view prefix, std::string_view name,
                                          std::string_view& out) {
  if (in_.ReadString(out)) return true;
  return !in_.failed() && Wrong(prefix, name, "must be a string");
}

bool CheckRequestParser::Reader::ReadFlag(std::string_view name, bool& out) {
  if (in_.ReadBool(out)) return true;
  return !in_.failed() && Wrong("", name, "must be true or false");
}

bool CheckRequestParser::Reader::ReadAmount(Unit unit, std::string_view prefix,
                                            std::string_view name, UnitAmounts& out) {
  const std::string_view fault = ReadAmountAt(in_, unit, out);
  if (fault.empty()) [[likely]]
    return true;
  return !in_.failed() && Wrong(prefix, name, fault);
}

bool CheckRequestParser::Reader::ReadAmounts(std::string_view prefix, UnitAmounts& out) {
  if (in_.Peek() != '{') return ReadAmount(Unit::kRequests, prefix, "", out);
  return in_.ReadObject([&](std::string_view name) {
    const std::optional<Unit> unit = CostUnit(name);
    if (!unit) return Wrong(prefix, name, CostUnitFault(name));
    return ReadAmount(*unit, prefix, name, out);
  });
}

bool CheckRequestParser::Reader::ReadAttributes(std::optional<std::string_view>& api_key) {
  constexpr std::string_view kField = "attributes";
  std::vector<NameValue>& all = parser_.attributes_;
  const size_t begin = all.size();
  const bool ok = in_.ReadObject([&](std::string_view name) {
    std::string_view value;
    if (!ReadText(kField, name, value)) return false;
    if (name == "api_key") {
      if (api_key) return Wrong(kField, name, kTwice);
      api_key = value;
      return true;
    }
    for (size_t i = begin; i < all.size(); ++i) {
      if (all[i].name == name) return Wrong(kField, name, kTwice);
    }
    if (all.size() - begin == kAttributesMax) return Wrong(kField, "", "must be at most 64");
    all.push_back({name, value});
    return true;
  });
  if (ok || in_.failed() || !parser_.error_.empty()) return ok;
  return Wrong(kField, "", "must be an object of strings");
}

bool CheckRequestParser::Reader::ReadRule(AdHocRule& rule) {
  enum : unsigned { kRate = 1, kBurst = 2, kAlgorithm = 4 };
  constexpr std::string_view kField = "rule";
  unsigned seen = 0;
  if (in_.Peek() != '{') return Wrong(kField, "", "must be an object");
  const bool ok = in_.ReadObject([&](std::string_view name) {
    if (name == "rate") {
      return Once(seen, kRate, kField, name) && ReadText(kField, name, rule.rate);
    }
    if (name == "burst") {
      if (!Once(seen, kBurst, kField, name)) return false;
      int64_t burst = 0;
      const NumberOutcome outcome = in_.ReadNumber(0, kMaxUnits, burst);
      rule.burst = burst;
      if (outcome == NumberOutcome::kOk && burst >= 1) return true;
      if (in_.failed()) return false;
      return Wrong(kField, name,
                   outcome == NumberOutcome::kTooLarge ? kTooManyUnits
                                                       : "must be a whole number of at least 1");
    }
    if (name == "algorithm") {
      std::string_view text;
      if (!Once(seen, kAlgorithm, kField, name) || !ReadText(kField, name, text)) return false;
      if (text == "token_bucket") {
        rule.algorithm = Algorithm::kTokenBucket;
      } else if (text == "sliding_window") {
        rule.algorithm = Algorithm::kSlidingWindow;
      } else if (text == "sliding_counter") {
        rule.algorithm = Algorithm::kSlidingCounter;
      } else if (text == "fixed_window") {
        rule.algorithm = Algorithm::kFixedWindow;
      } else {
        return Wrong(kField, name,
                     "must be token_bucket, sliding_window, sliding_counter or fixed_window");
      }
      return true;
    }
    return Unknown(kField, name, kUnknownField, {"rate", "burst", "algorithm"});
  });
  if (!ok) return false;
  return (seen & kRate) != 0 || Wrong(kField, "rate", kMissing);
}

bool CheckRequestParser::Reader::ReadReserve(CheckItem& item) {
  constexpr std::string_view kField = "reserve";
  if (in_.Peek() != '{') {
    if (in_.ReadBool(item.reserve)) return true;
    return !in_.failed() && Wrong("", kField, "must be true, false or {\"ttl\":\"120s\"}");
  }
  unsigned seen = 0;
  const bool ok = in_.ReadObject([&](std::string_view name) {
    std::string_view text;
    if (name != "ttl") return Unknown(kField, name, kUnknownField, {"ttl"});
    if (!Once(seen, 1, kField, name) || !ReadText(kField, name, text)) return false;
    const std::optional<std::chrono::nanoseconds> ttl = ParseReserveTtl(text);
    if (!ttl) return Wrong(kField, name, kReserveTtlFault);
    item.reserve_ttl = *ttl;
    return true;
  });
  item.reserve = ok;
  return ok && (seen != 0 || Wrong(kField, "ttl", kMissing));
}

bool CheckRequestParser::Reader::ReadItem(CheckItem& item, bool alone) {
  enum : unsigned {
    kAttributes = 1,
    kCost = 2,
    kPeek = 4,
    kReserve = 8,
    kKey = 16,
    kRule = 32,
    kChecks = 64
  };
  unsigned seen = 0;
  const bool ok = in_.ReadObject([&](std::string_view name) {
    if (name == "attributes") {
      return Once(seen, kAttributes, "", name) && ReadAttributes(item.api_key);
    }
    if (name == "cost") return Once(seen, kCost, "", name) && ReadAmounts("cost", item.cost);
    if (name == "peek") return Once(seen, kPeek, "", name) && ReadFlag(name, item.peek);
    if (name == "reserve") return Once(seen, kReserve, "", name) && ReadReserve(item);
    if (name == "key") return Once(seen, kKey, "", name) && ReadText("", name, item.key);
    if (name == "rule") {
      return Once(seen, kRule, "", name) && ReadRule(item.rule.emplace());
    }
    if (name == "checks" && alone) return Once(seen, kChecks, "", name) && ReadBatch();
    if (!alone) {
      return Unknown("", name, kUnknownField,
                     {"attributes", "cost", "peek", "reserve", "key", "rule"});
    }
    return Unknown("", name, kUnknownField,
                   {"attributes", "cost", "peek", "reserve", "key", "rule", "checks"});
  });
  if (!ok) return false;
  if (seen & kChecks) {
    return seen == kChecks || Wrong("checks", "", "cannot stand beside other fields");
  }
  if (!(seen & kCost)) {
    item.cost.amount[static_cast<size_t>(Unit::kRequests)] = 1;
    item.cost.given = 1u << static_cast<unsigned>(Unit::kRequests);
  }
  if (seen & (kKey | kRule)) {
    if (!(seen & kRule)) return Wrong("rule", "", kMissing);
    if (!(seen & kKey)) return Wrong("key", "", kMissing);
    if (seen & kAttributes) return Wrong("attributes", "", "cannot stand beside a rule");
  } else if (!(seen & kAttributes)) {
    return Wrong("attributes", "", kMissing);
  }
  return true;
}

bool CheckRequestParser::Reader::ReadBatch() {
  parser_.is_batch_ = true;
  std::vector<CheckItem>& items = parser_.items_;
  if (in_.Peek() != '[') return Wrong("checks", "", "must be an array");
  return in_.ReadArray([&] {
    if (items.size() == kChecksMax) return Wrong("checks", "", "must hold at most 1000 calls");
    CheckItem& item = items.emplace_back();
    const Scanner::Mark item_start = in_.Here();
    const size_t attributes_at = parser_.attributes_.size();
    bool ok = true;
    if (in_.Peek() != '{') {
      ok = Wrong("", "", "must be an object");
    } else {
      ok = ReadItem(item, /*alone=*/false);
    }
    if (!ok) {
      if (in_.failed()) return false;
      // The item is wrong, the batch may still be JSON: step over the item and go on.
      in_.Rewind(item_start);
      if (!in_.SkipValue(kJsonDepthMax)) return false;
      item = CheckItem();
      item.error = parser_.item_errors_.emplace_back(std::move(parser_.error_));
      parser_.error_.clear();
      parser_.attributes_.resize(attributes_at);
    }
    parser_.attribute_ranges_.push_back(
        {attributes_at, parser_.attributes_.size() - attributes_at});
    return true;
  });
}

bool CheckRequestParser::Reader::ReadCheckBody() {
  CheckItem only;
  if (!ReadItem(only, /*alone=*/true)) return false;
  if (!parser_.is_batch_) {
    only.attributes = parser_.attributes_;
    parser_.items_.push_back(only);
    return true;
  }
  for (size_t i = 0; i < parser_.items_.size(); ++i) {
    const Range range = parser_.attribute_ranges_[i];
    parser_.items_[i].attributes =
        std::span<const NameValue>(parser_.attributes_).subspan(range.begin, range.count);
  }
  return true;
}

bool CheckRequestParser::Reader::ReadReservationBody(std::string_view& reservation,
                                                     UnitAmounts* actual) {
  unsigned seen = 0;
  const bool ok = in_.ReadObject([&](std::string_view name) {
    if (name == "reservation") {
      return Once(seen, 1, "", name) && ReadText("", name, reservation);
    }
    if (name == "actual" && actual != nullptr) {
      return Once(seen, 2, "", name) && ReadAmounts("actual", *actual);
    }
    if (actual == nullptr) return Unknown("", name, kUnknownField, {"reservation"});
    return Unknown("", name, kUnknownField, {"reservation", "actual"});
  });
  if (!ok) return false;
  if (!(seen & 1)) return Wrong("reservation", "", kMissing);
  return actual == nullptr || (seen & 2) || Wrong("actual", "", kMissing);
}

// [{"key":"database","value":"users"}]; a key may stand there more than once.
bool CheckRequestParser::Reader::ReadDescriptor() {
  constexpr std::string_view kField = "descriptor";
  std::vector<NameValue>& all = parser_.attributes_;
  if (in_.Peek() != '[') return Wrong(kField, "", "must be an array");
  return in_.ReadArray([&] {
    if (all.size() == kAttributesMax) return Wrong(kField, "", "has too many entries");
    if (in_.Peek() != '{') return Wrong(kField, "", "must hold objects with key and value");
    return ReadEntry(all.emplace_back());
  });
}

bool CheckRequestParser::Reader::ReadEntry(NameValue& entry) {
  unsigned seen = 0;
  const bool ok = in_.ReadObject([&](std::string_view name) {
    if (name == "key")
      return Once(seen, 1, "descriptor", name) && ReadText("descriptor", name, entry.name);
    if (name == "value")
      return Once(seen, 2, "descriptor", name) && ReadText("descriptor", name, entry.value);
    return Unknown("descriptor", name, kUnknownField, {"key", "value"});
  });
  return ok && ((seen & 1) || Wrong("descriptor", "key", kMissing));
}

bool CheckRequestParser::Reader::ReadResetBody(ResetRequest& out) {
  unsigned seen = 0;
  const bool ok = in_.ReadObject([&](std::string_view name) {
    if (name == "limit") return Once(seen, 1, "", name) && ReadText("", name, out.limit);
    if (name == "attributes") return Once(seen, 2, "", name) && ReadAttributes(out.api_key);
    if (name == "descriptor") return Once(seen, 4, "", name) && ReadDescriptor();
    return Unknown("", name, kUnknownField, {"limit", "attributes", "descriptor"});
  });
  if (!ok) return false;
  if ((seen & 6) == 6) return Wrong("descriptor", "", "cannot stand beside attributes");
  out.attributes = parser_.attributes_;
  out.by_descriptor = (seen & 4) != 0;
  return (seen & 1) || Wrong("limit", "", kMissing);
}

std::optional<std::chrono::nanoseconds> ParseReserveTtl(std::string_view text) {
  const Result<std::chrono::nanoseconds> ttl = wire::ParseDuration(text);
  if (!ttl || ttl->count() <= 0 || *ttl > kTtlMax) return std::nullopt;
  return *ttl;
}

CheckRequestParser::CheckRequestParser() = default;

bool CheckRequestParser::ParseCheck(std::string_view body) {
  Reader reader(*this, body);
  return reader.ReadBody(kCheckExample, [&] { return reader.ReadCheckBody(); });
}

bool CheckRequestParser::ParseSettle(std::string_view body, SettleRequest& out) {
  out = SettleRequest();
  Reader reader(*this, body);
  return reader.ReadBody(kSettleExample,
                         [&] { return reader.ReadReservationBody(out.reservation, &out.actual); });
}

bool CheckRequestParser::ParseRelease(std::string_view body, ReleaseRequest& out) {
  out = ReleaseRequest();
  Reader reader(*this, body);
  return reader.ReadBody(kReleaseExample,
                         [&] { return reader.ReadReservationBody(out.reservation, nullptr); });
}

bool CheckRequestParser::ParseReset(std::string_view body, ResetRequest& out) {
  out = ResetRequest();
  Reader reader(*this, body);
  return reader.ReadBody(kResetExample, [&] { return reader.ReadResetBody(out); });
}

}  // namespace weir::json
