// Parses the bodies of the decision API: check (one call or a batch), settle, release, and the
// admin door's reset. One strict pass, no tree: what it finds goes into plain structs of views,
// backed by the body and by an arena that is reused from one request to the next, so the steady
// state allocates nothing.
//
//   json::CheckRequestParser parser;                 // one per connection or per loop
//   if (!parser.ParseCheck(body)) return BadRequest(parser.error());   // "cost.tokens: must be a
//   whole number of at least 0" for (const json::CheckItem& item : parser.items())
//     item.error.empty() ? Decide(item) : Refuse(item.error);
//
// Strict: RFC 8259 with valid UTF-8 and paired surrogates; unknown fields, duplicate fields, wrong
// types and text after the document are refused with the field's name. Numbers are exact: whole
// numbers to 2^53 (1.0 and 1e3 are whole), usd with up to six decimals as micro-dollars; nothing
// passes through floating point. Thread safety: none; one owner at a time. Views live until the
// next Parse and as long as the body.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/limit.h"
#include "wire/json/amounts.h"

namespace weir::json {

struct NameValue {
  std::string_view name;
  std::string_view value;
};

// A rule that comes with the call. `rate` is text as in the policy ("10/min"); whoever decides
// parses it.
struct AdHocRule {
  std::string_view rate;
  std::optional<int64_t> burst;
  Algorithm algorithm = Algorithm::kTokenBucket;
};

struct CheckItem {
  std::span<const NameValue> attributes;    // As written, names unique; without api_key.
  std::optional<std::string_view> api_key;  // attributes.api_key: a secret, to be hashed at once.
  std::string_view key;                     // With a rule only.
  std::optional<AdHocRule> rule;            // Has one: ad hoc. Else the policy decides.
  UnitAmounts cost;                         // {"requests":1} when the body has none.
  bool peek = false;
  bool reserve = false;
  std::chrono::nanoseconds reserve_ttl = std::chrono::seconds(60);  // More than 0, at most a day.
  // Of a batch's item: what is wrong with it, and then nothing else in the item counts. Else empty.
  std::string_view error;
};

struct SettleRequest {
  std::string_view reservation;
  UnitAmounts actual;
};

struct ReleaseRequest {
  std::string_view reservation;
};

struct ResetRequest {
  std::string_view limit;
  std::span<const NameValue> attributes;  // Those, or the entries of a descriptor, in order.
  std::optional<std::string_view> api_key;
  bool by_descriptor = false;
};

inline constexpr size_t kChecksMax = 1000;    // Items of a batch.
inline constexpr size_t kAttributesMax = 64;  // Of one item.
inline constexpr size_t kJsonDepthMax = 32;   // Nesting, where a value is skipped.

// A reservation's `ttl`; nothing when it is none.
std::optional<std::chrono::nanoseconds> ParseReserveTtl(std::string_view text);
inline constexpr std::string_view kReserveTtlFault =
    "must be a duration like 120s, more than 0 and at most 24h";

class CheckRequestParser {
 public:
  CheckRequestParser();

  // POST /v1/check. False: error() says what is wrong with the body as a whole, or with its only
  // item.
  bool ParseCheck(std::string_view body);
  bool is_batch() const { return is_batch_; }
  // One, or those of the batch in order (maybe none).
  std::span<const CheckItem> items() const { return items_; }

  // POST /v1/settle, /v1/release, /admin/reset.
  bool ParseSettle(std::string_view body, SettleRequest& out);
  bool ParseRelease(std::string_view body, ReleaseRequest& out);
  bool ParseReset(std::string_view body, ResetRequest& out);

  // After a false: one sentence that names the field. Holds no attribute value and no key.
  std::string_view error() const { return error_; }

 private:
  class Reader;

  struct Range {
    size_t begin, count;  // In attributes_.
  };

  bool is_batch_ = false;
  std::string error_;
  std::vector<CheckItem> items_;
  std::vector<NameValue> attributes_;
  std::vector<Range> attribute_ranges_;  // One per item.
  // Unescaped strings. As large as the body before the first one is written, so views stay valid.
  std::vector<char> text_;
  std::deque<std::string> item_errors_;  // A deque, so that views into its strings stay valid.
};

}  // namespace weir::json
