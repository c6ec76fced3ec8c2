#include "wire/json/check_request.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

namespace weir::json {
namespace {

using std::chrono::seconds;

std::string CheckError(std::string_view body) {
  CheckRequestParser parser;
  if (parser.ParseCheck(body)) {
    EXPECT_EQ(parser.error(), "");
    return "";
  }
  EXPECT_NE(parser.error(), "") << body;
  return std::string(parser.error());
}

std::string WithCost(std::string_view cost) {
  return R"({"attributes":{},"cost":)" + std::string(cost) + "}";
}

CheckItem Only(CheckRequestParser& parser, std::string_view body) {
  EXPECT_TRUE(parser.ParseCheck(body)) << body << ": " << parser.error();
  EXPECT_FALSE(parser.is_batch());
  EXPECT_EQ(parser.items().size(), 1u);
  return parser.items().empty() ? CheckItem() : parser.items()[0];
}

// How an error ends that is about the body as a whole, and one about a field that nobody knows.
const std::string kMeant =
    R"(: a JSON object is meant, as in {"attributes":{"client":"alice"},"cost":{"requests":1}})";
const std::string kFields = "`attributes`, `cost`, `peek`, `reserve`, `key`, `rule` or `checks`";

TEST(CheckRequest, ReadsACall) {
  CheckRequestParser parser;
  const CheckItem item = Only(
      parser,
      R"( {"attributes":{"client":"alice","path":"\/v1\/x","api_key":"sk-1","m\u00f6":"\ud83d\ude00"},)"
      R"("cost":{"requests":1,"tokens":500,"usd":0.000125},"peek":true,"reserve":{"ttl":"120s"}} )");
  ASSERT_EQ(item.attributes.size(), 3u);
  EXPECT_EQ(item.attributes[0].name, "client");
  EXPECT_EQ(item.attributes[0].value, "alice");
  EXPECT_EQ(item.attributes[1].value, "/v1/x");
  EXPECT_EQ(item.attributes[2].name, "m\xC3\xB6");
  EXPECT_EQ(item.attributes[2].value, "\xF0\x9F\x98\x80");
  EXPECT_EQ(item.api_key, "sk-1");
  EXPECT_EQ(item.cost[Unit::kRequests], 1);
  EXPECT_EQ(item.cost[Unit::kTokens], 500);
  EXPECT_EQ(item.cost[Unit::kUsd], 125);
  EXPECT_FALSE(item.cost.has(Unit::kBytes));
  EXPECT_TRUE(item.peek);
  EXPECT_TRUE(item.reserve);
  EXPECT_EQ(item.reserve_ttl, seconds(120));
}

TEST(CheckRequest, HasDefaults) {
  CheckRequestParser parser;
  const CheckItem item = Only(parser, R"({"attributes":{}})");
  EXPECT_EQ(item.cost[Unit::kRequests], 1);
  EXPECT_EQ(item.cost.given, 1);
  EXPECT_FALSE(item.peek);
  EXPECT_FALSE(item.reserve);
  EXPECT_FALSE(item.rule);
  EXPECT_FALSE(item.api_key);
  const CheckItem reserve = Only(parser, R"({"attributes":{},"reserve":true})");
  EXPECT_TRUE(reserve.reserve);
  EXPECT_EQ(reserve.reserve_ttl, seconds(60));
  const CheckItem number = Only(parser, WithCost("7"));
  EXPECT_EQ(number.cost[Unit::kRequests], 7);
  const CheckItem none = Only(parser, WithCost("{}"));
  EXPECT_EQ(none.cost.given, 0);
}

TEST(CheckRequest, ReadsAnAdHocRule) {
  CheckRequestParser parser;
  const CheckItem item = Only(parser, R"({"key":"user:42","rule":{"rate":"10/min","burst":10,)"
                                      R"("algorithm":"sliding_counter"},"cost":1})");
  EXPECT_EQ(item.key, "user:42");
  ASSERT_TRUE(item.rule);
  EXPECT_EQ(item.rule->rate, "10/min");
  EXPECT_EQ(item.rule->burst, 10);
  EXPECT_EQ(item.rule->algorithm, Algorithm::kSlidingCounter);
  const CheckItem plain = Only(parser, R"({"rule":{"rate":"1/s"},"key":""})");
  EXPECT_FALSE(plain.rule->burst);
  EXPECT_EQ(plain.rule->algorithm, Algorithm::kTokenBucket);
}

TEST(CheckRequest, ReadsABatch) {
  CheckRequestParser parser;
  ASSERT_TRUE(parser.ParseCheck(
      R"({"checks":[{"attributes":{"client":"a"}},{"attributes":{"x":"y"},"cost":-5},)"
      R"(7,{"attributes":{"client":"b","ip":"1"},"cost":2}]})"))
      << parser.error();
  EXPECT_TRUE(parser.is_batch());
  ASSERT_EQ(parser.items().size(), 4u);
  EXPECT_EQ(parser.items()[0].attributes[0].value, "a");
  EXPECT_EQ(parser.items()[0].error, "");
  EXPECT_EQ(parser.items()[1].error, "cost: must be a whole number of at least 0");
  EXPECT_TRUE(parser.items()[1].attributes.empty());
  EXPECT_EQ(parser.items()[2].error, "must be an object");
  ASSERT_EQ(parser.items()[3].attributes.size(), 2u);
  EXPECT_EQ(parser.items()[3].attributes[0].value, "b");
  EXPECT_EQ(parser.items()[3].cost[Unit::kRequests], 2);

  ASSERT_TRUE(parser.ParseCheck(R"({"checks":[]})"));
  EXPECT_TRUE(parser.is_batch());
  EXPECT_TRUE(parser.items().empty());
  EXPECT_EQ(CheckError(R"({"checks":{}})"), "checks: must be an array");
  EXPECT_EQ(CheckError(R"({"checks":[],"cost":1})"), "checks: cannot stand beside other fields");
  EXPECT_EQ(CheckError(R"({"checks":[],"checks":[]})"), "checks: comes twice");
  ASSERT_TRUE(parser.ParseCheck(R"({"checks":[{"checks":[]}]})"));
  EXPECT_EQ(parser.items()[0].error,
            "checks: is not a known field; there is `attributes`, `cost`, `peek`, `reserve`, `key` "
            "or `rule`");
  // A batch that is no JSON is refused whole.
  EXPECT_EQ(CheckError(R"({"checks":[{"cost":-5},{"a)"), "not valid JSON at byte 26" + kMeant);
  EXPECT_EQ(CheckError(R"({"checks":[1,]})"), "not valid JSON at byte 13" + kMeant);
}

TEST(CheckRequest, WrongItemsWithEscapesDoNotOutgrowTheArena) {
  // Each wrong item is read twice: once to find the fault, once to step over it.
  std::string body = R"({"checks":[)";
  for (int i = 0; i < 20; ++i) body += R"({"\u0041)" + std::string(100, 'x') + R"(\n":0},)";
  body += R"({"attributes":{"a":"\u00e4\u00f6"}}]})";
  CheckRequestParser parser;
  ASSERT_TRUE(parser.ParseCheck(body)) << parser.error();
  ASSERT_EQ(parser.items().size(), 21u);
  EXPECT_EQ(parser.items()[0].error, "A" + std::string(63, 'x') +
                                         "...: is not a known field; there is `attributes`, "
                                         "`cost`, `peek`, `reserve`, `key` or `rule`");
  EXPECT_EQ(parser.items()[20].error, "");
  EXPECT_EQ(parser.items()[20].attributes[0].value, "\xC3\xA4\xC3\xB6");
}

TEST(CheckRequest, BoundsABatch) {
  const auto batch = [](int calls) {
    std::string body = R"({"checks":[)";
    for (int i = 0; i < calls; ++i) body += i ? R"(,{"attributes":{}})" : R"({"attributes":{}})";
    return body + "]}";
  };
  EXPECT_EQ(CheckError(batch(1000)), "");
  EXPECT_EQ(CheckError(batch(1001)), "checks: must hold at most 1000 calls");
  std::string many = R"({"attributes":{)";
  for (int i = 0; i < 65; ++i) many += (i ? ",\"" : "\"") + std::to_string(i) + "\":\"\"";
  EXPECT_EQ(CheckError(many + "}}"), "attributes: must be at most 64");
}

TEST(CheckRequest, Case16_NegativeCost) {
  EXPECT_EQ(CheckError(WithCost("-5")), "cost: must be a whole number of at least 0");
  EXPECT_EQ(CheckError(WithCost(R"({"tokens":-5})")),
            "cost.tokens: must be a whole number of at least 0");
  EXPECT_EQ(CheckError(WithCost(R"({"usd":-0.5})")),
            "cost.usd: must be an amount of at least 0 with at most six decimals");
  EXPECT_EQ(CheckError(WithCost("-0.0")), "");
}

TEST(CheckRequest, Case29_FractionalOrHugeCost) {
  const char* const kWhole = "cost: must be a whole number of at least 0";
  EXPECT_EQ(CheckError(WithCost("1.5")), kWhole);
  EXPECT_EQ(CheckError(WithCost("\"abc\"")), kWhole);
  EXPECT_EQ(CheckError(WithCost("1e30")), "cost: must be at most 9007199254740992");
  EXPECT_EQ(CheckError(WithCost("1e-30")), kWhole);
  EXPECT_EQ(CheckError(WithCost("null")), kWhole);
  EXPECT_EQ(CheckError(WithCost("true")), kWhole);
  EXPECT_EQ(CheckError(WithCost("[1]")), kWhole);
  EXPECT_EQ(CheckError(WithCost("9007199254740993")), "cost: must be at most 9007199254740992");
  EXPECT_EQ(CheckError(WithCost("1.0000000000000000000000001")), kWhole);
  EXPECT_EQ(CheckError(WithCost("123456789012345678901234567890")),
            "cost: must be at most 9007199254740992");
  EXPECT_EQ(CheckError(WithCost("1e999999999999999999999")),
            "cost: must be at most 9007199254740992");
  EXPECT_EQ(CheckError(WithCost(R"({"usd":0.0000001})")),
            "cost.usd: must be an amount of at least 0 with at most six decimals");
  EXPECT_EQ(CheckError(WithCost(R"({"usd":9007199254.740993})")),
            "cost.usd: must be at most 9007199254.740992");
}

TEST(CheckRequest, NumbersAreExact) {
  CheckRequestParser parser;
  const auto requests = [&](std::string_view text) {
    return Only(parser, WithCost(text)).cost[Unit::kRequests];
  };
  const auto micro_usd = [&](std::string_view text) {
    return Only(parser, WithCost(R"({"usd":)" + std::string(text) + "}")).cost[Unit::kUsd];
  };
  EXPECT_EQ(requests("0"), 0);
  EXPECT_EQ(requests("9007199254740992"), 9007199254740992);
  EXPECT_EQ(requests("1.0"), 1);
  EXPECT_EQ(requests("1e3"), 1000);
  EXPECT_EQ(requests("1.5E+1"), 15);
  EXPECT_EQ(requests("1200e-2"), 12);
  EXPECT_EQ(requests("0e999999999"), 0);
  EXPECT_EQ(requests("90071992547409920e-1"), 9007199254740992);
  EXPECT_EQ(requests("0.00000000000000000000000000001e29"), 1);
  EXPECT_EQ(requests("100000000000000000000000000000e-29"), 1);
  EXPECT_EQ(micro_usd("0.000001"), 1);
  EXPECT_EQ(micro_usd("1e-06"), 1);
  EXPECT_EQ(micro_usd("0.1"), 100'000);
  EXPECT_EQ(micro_usd("9007199254.740992"), 9007199254740992);
  EXPECT_EQ(micro_usd("12.3456780"), 12'345'678);
}

TEST(CheckRequest, NumbersAgreeWithSlowArithmetic) {
  const bool ok = rc::check("digits with a point and an exponent", [] {
    const int64_t micros = *rc::gen::inRange<int64_t>(0, kMaxUnits + 1);
    const int shift = *rc::gen::inRange(-8, 9);
    // micros * 10^-6 written as micros * 10^shift e(-6-shift).
    std::string text = std::to_string(micros);
    if (shift > 0) {
      text += std::string(static_cast<size_t>(shift), '0');
    } else if (shift < 0) {
      const size_t decimals = static_cast<size_t>(-shift);
      if (text.size() <= decimals) text.insert(0, decimals + 1 - text.size(), '0');
      text.insert(text.size() - decimals, ".");
    }
    text += "e" + std::to_string(-6 - shift);
    CheckRequestParser parser;
    const std::string body = WithCost(R"({"usd":)" + text + "}");
    RC_ASSERT(parser.ParseCheck(body));
    RC_ASSERT(parser.items()[0].cost[Unit::kUsd] == micros);
  });
  EXPECT_TRUE(ok);
}

TEST(CheckRequest, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(CheckError(R"({"attributes":{},"kost":1})"),
            "kost: is not a known field; did you mean `cost`?");
  EXPECT_EQ(CheckError(R"({"client":"alice"})"),
            "client: is not a known field; there is " + kFields);
  EXPECT_EQ(CheckError(WithCost(R"({"token":1})")),
            "cost.token: is not a unit; did you mean `tokens`?");
  EXPECT_EQ(CheckError(WithCost(R"({"pens":1})")),
            "cost.pens: is not a unit; there is `requests`, `tokens`, `input_tokens`, "
            "`output_tokens`, `usd` or `bytes`");
  EXPECT_EQ(CheckError(R"({"key":"a","rule":{"rat":"1/s"}})"),
            "rule.rat: is not a known field; did you mean `rate`?");
  EXPECT_EQ(CheckError(WithCost(R"({"parallel":1})")),
            "cost.parallel: a slot is taken by \"reserve\", not by a cost");
  EXPECT_EQ(CheckError(WithCost(R"({"tokens":1,"tokens":1})")), "cost.tokens: comes twice");
  EXPECT_EQ(CheckError(R"({"attributes":{},"attributes":{}})"), "attributes: comes twice");
  EXPECT_EQ(CheckError(R"({"attributes":{"a":"1","a":"2"}})"), "attributes.a: comes twice");
  EXPECT_EQ(CheckError(R"({"attributes":{"a":"1","\u0061":"2"}})"), "attributes.a: comes twice");
  EXPECT_EQ(CheckError(R"({"attributes":{"api_key":"s3cret","api_key":"s3cret"}})"),
            "attributes.api_key: comes twice");
  EXPECT_EQ(CheckError(R"({"attributes":{"a":1}})"), "attributes.a: must be a string");
  EXPECT_EQ(CheckError(R"({"attributes":[]})"), "attributes: must be an object of strings");
  EXPECT_EQ(CheckError(R"({"attributes":{},"peek":1})"), "peek: must be true or false");
  EXPECT_EQ(CheckError(R"({"attributes":{},"reserve":1})"),
            "reserve: must be true, false or {\"ttl\":\"120s\"}");
  EXPECT_EQ(CheckError(R"({"attributes":{},"reserve":{}})"), "reserve.ttl: is missing");
  EXPECT_EQ(CheckError(R"({"attributes":{},"reserve":{"tt":"1s"}})"),
            "reserve.tt: is not a known field; did you mean `ttl`?");
  for (const char* ttl : {"\"0s\"", "\"25h\"", "\"x\"", "\"-1s\"", "\"\""}) {
    EXPECT_EQ(CheckError(R"({"attributes":{},"reserve":{"ttl":)" + std::string(ttl) + "}}"),
              "reserve.ttl: must be a duration like 120s, more than 0 and at most 24h");
  }
  EXPECT_EQ(CheckError(R"({"attributes":{},"reserve":{"ttl":120}})"),
            "reserve.ttl: must be a string");
  EXPECT_EQ(CheckError("{}"), "attributes: is missing");
  EXPECT_EQ(CheckError(R"({"key":"a"})"), "rule: is missing");
  EXPECT_EQ(CheckError(R"({"rule":{"rate":"1/s"}})"), "key: is missing");
  EXPECT_EQ(CheckError(R"({"key":"a","rule":{}})"), "rule.rate: is missing");
  EXPECT_EQ(CheckError(R"({"key":"a","rule":"1/s"})"), "rule: must be an object");
  EXPECT_EQ(CheckError(R"({"key":"a","rule":{"rate":"1/s"},"attributes":{}})"),
            "attributes: cannot stand beside a rule");
  EXPECT_EQ(CheckError(R"({"key":"a","rule":{"rate":"1/s","burst":0}})"),
            "rule.burst: must be a whole number of at least 1");
  EXPECT_EQ(
      CheckError(R"({"key":"a","rule":{"rate":"1/s","algorithm":"magic"}})"),
      "rule.algorithm: must be token_bucket, sliding_window, sliding_counter or fixed_window");
  EXPECT_EQ(CheckError(R"({"key":1,"rule":{"rate":"1/s"}})"), "key: must be a string");
  EXPECT_EQ(CheckError("{\"" + std::string(100, 'x') + "\":1}"),
            std::string(64, 'x') + "...: is not a known field; there is " + kFields);
}

TEST(CheckRequest, SaysWhatIsMeantWhereThereIsNoObject) {
  EXPECT_EQ(CheckError(""), "the body is empty" + kMeant);
  EXPECT_EQ(CheckError(" \r\n\t"), "the body is empty" + kMeant);
  EXPECT_EQ(CheckError("client=alice&cost=1"), "not valid JSON at byte 0" + kMeant);
  EXPECT_EQ(CheckError("[]"), "not a JSON object" + kMeant);
  CheckRequestParser parser;
  SettleRequest settle;
  EXPECT_FALSE(parser.ParseSettle("", settle));
  EXPECT_EQ(parser.error(),
            "the body is empty: a JSON object is meant, as in "
            R"({"reservation":"...","actual":{"requests":1}})");
  ReleaseRequest release;
  EXPECT_FALSE(parser.ParseRelease("7", release));
  EXPECT_EQ(parser.error(),
            R"(not a JSON object: a JSON object is meant, as in {"reservation":"..."})");
  ResetRequest reset;
  EXPECT_FALSE(parser.ParseReset(R"({"limits":"a"})", reset));
  EXPECT_EQ(parser.error(), "limits: is not a known field; did you mean `limit`?");
}

TEST(CheckRequest, IsStrictJson) {
  for (const char* body : {"{",
                           "{\"attributes\":{}",
                           "{\"attributes\":{}}x",
                           "{\"attributes\":{}}{}",
                           "{\"attributes\":{},}",
                           "{'attributes':{}}",
                           "{\"attributes\":{} \"peek\":true}",
                           "{\"attributes\":{},\"peek\":tru}",
                           "{\"attributes\":{},\"cost\":01}",
                           "{\"attributes\":{},\"cost\":1.}",
                           "{\"attributes\":{},\"cost\":.5e}",
                           "{\"attributes\":{},\"cost\":1e}",
                           "{\"attributes\":{},\"cost\":-}",
                           "{\"attributes\":{\"a\":\"\x01\"}}",
                           "{\"attributes\":{\"a\":\"\\x\"}}",
                           "{\"attributes\":{\"a\":\"\\ud800\"}}",
                           "{\"attributes\":{\"a\":\"\\udc00\"}}",
                           "{\"attributes\":{\"a\":\"\\ud800\\u0041\"}}",
                           "{\"attributes\":{\"a\":\"\\u12g4\"}}",
                           "{\"attributes\":{\"a\":\"\xC0\xAF\"}}",
                           "{\"attributes\":{\"a\":\"\xED\xA0\x80\"}}",
                           "{\"attributes\":{\"a\":\"\xF4\x90\x80\x80\"}}",
                           "{\"attributes\":{\"a\":\"\xE2\x82\"}}",
                           "\xEF\xBB\xBF{\"attributes\":{}}",
                           "{\"attributes\":{}}\v"}) {
    const std::string error = CheckError(body);
    // "cost: .5e" is wrong as a type before it is wrong as JSON.
    EXPECT_TRUE(error.starts_with("not valid JSON at byte ") ||
                std::string_view(body).contains(".5e"))
        << body << ": " << error;
  }
}

TEST(CheckRequest, Case71_KeysWithAnyBytes) {
  CheckRequestParser parser;
  const CheckItem item =
      Only(parser, R"({"key":"a\r\nb\u0000\u00e9e\u0301","rule":{"rate":"1/s"}})");
  EXPECT_EQ(item.key, std::string_view("a\r\nb\0\xC3\xA9"
                                       "e\xCC\x81",
                                       10));
  EXPECT_EQ(Only(parser, R"({"key":"","rule":{"rate":"1/s"}})").key, "");
}

TEST(CheckRequest, ReadsReservationsAndResets) {
  CheckRequestParser parser;
  SettleRequest settle;
  ASSERT_TRUE(parser.ParseSettle(R"({"reservation":"r1","actual":{"tokens":46}})", settle));
  EXPECT_EQ(settle.reservation, "r1");
  EXPECT_EQ(settle.actual[Unit::kTokens], 46);
  EXPECT_FALSE(settle.actual.has(Unit::kRequests));
  EXPECT_FALSE(parser.ParseSettle(R"({"reservation":"r1"})", settle));
  EXPECT_EQ(parser.error(), "actual: is missing");
  EXPECT_FALSE(parser.ParseSettle(R"({"actual":1})", settle));
  EXPECT_EQ(parser.error(), "reservation: is missing");
  EXPECT_FALSE(parser.ParseSettle(R"({"reservation":"r1","actual":{"tokens":-1}})", settle));
  EXPECT_EQ(parser.error(), "actual.tokens: must be a whole number of at least 0");

  ReleaseRequest release;
  ASSERT_TRUE(parser.ParseRelease(R"({"reservation":"r1"})", release));
  EXPECT_EQ(release.reservation, "r1");
  EXPECT_FALSE(parser.ParseRelease(R"({"reservation":"r1","actual":1})", release));
  EXPECT_EQ(parser.error(), "actual: is not a known field; there is `reservation`");

  ResetRequest reset;
  ASSERT_TRUE(parser.ParseReset(R"({"limit":"per-client","attributes":{"client":"a"}})", reset));
  EXPECT_EQ(reset.limit, "per-client");
  ASSERT_EQ(reset.attributes.size(), 1u);
  EXPECT_EQ(reset.attributes[0].value, "a");
  EXPECT_FALSE(parser.ParseReset(R"({"attributes":{}})", reset));
  EXPECT_EQ(parser.error(), "limit: is missing");
}

TEST(CheckRequest, CutsAtEveryByteAreErrors) {
  const std::string body =
      R"({"attributes":{"client":"al\u0069ce"},"cost":{"tokens":500},"peek":false,"reserve":true})";
  for (size_t bytes = 1; bytes < body.size(); ++bytes) {
    EXPECT_TRUE(CheckError(std::string_view(body).substr(0, bytes)).starts_with("not valid JSON"))
        << bytes;
  }
}

}  // namespace
}  // namespace weir::json
