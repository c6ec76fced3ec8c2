#include "wire/json/model_request.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::json {
namespace {

std::string Error(std::string_view body) {
  ModelRequestReader reader;
  reader.Feed(body);
  if (reader.Finish()) {
    EXPECT_EQ(reader.error(), "");
    return "";
  }
  EXPECT_NE(reader.error(), "");
  return reader.error();
}

TEST(ModelRequest, ReadsWhatIsAskedFor) {
  const std::string body =
      R"( {"model":"gpt-\u00e4","messages":[{"role":"user","content":"model","model":7}],)"
      R"("max_tokens":1,"max_completion_tokens":5000,"max_output_tokens":100.0,"n":4,)"
      R"("stream":true,"stream_options":{"include_usage":false,"x":[1,{"include_usage":3}]}} )";
  for (size_t split = 0; split <= body.size(); ++split) {
    ModelRequestReader reader;
    ASSERT_TRUE(reader.Feed(std::string_view(body).substr(0, split))) << reader.error();
    ASSERT_TRUE(reader.Feed(std::string_view(body).substr(split))) << reader.error();
    ASSERT_TRUE(reader.Finish()) << reader.error();
    EXPECT_EQ(reader.fields().model, "gpt-\xC3\xA4");
    EXPECT_EQ(reader.fields().max_tokens, 1);
    EXPECT_EQ(reader.fields().max_completion_tokens, 5000);
    EXPECT_EQ(reader.fields().max_output_tokens, 100);
    EXPECT_EQ(reader.fields().n, 4);
    EXPECT_EQ(reader.fields().stream, true);
    EXPECT_EQ(reader.fields().include_usage, false);
  }
}

TEST(ModelRequest, NullAndAbsentAreTheSame) {
  ModelRequestReader reader;
  ASSERT_TRUE(reader.Feed(R"({"model":null,"n":null,"stream":null,"stream_options":null})"));
  ASSERT_TRUE(reader.Finish());
  EXPECT_FALSE(reader.fields().model);
  EXPECT_FALSE(reader.fields().n);
  reader.Reset();
  ASSERT_TRUE(reader.Feed("{}"));
  ASSERT_TRUE(reader.Finish());
}

TEST(ModelRequest, Case83g_DuplicateNames) {
  EXPECT_EQ(Error(R"({"model":"cheap","x":1,"model":"dear"})"), "a top-level name comes twice");
  EXPECT_EQ(Error(R"({"x":1,"x":1})"), "a top-level name comes twice");
  EXPECT_EQ(Error(R"({"stream_options":{"include_usage":true,"include_usage":false}})"),
            "stream_options.include_usage: comes twice");
  EXPECT_EQ(Error(R"({"a":{"b":1,"b":2}})"), "");
}

TEST(ModelRequest, Case83g_EscapedNames) {
  EXPECT_EQ(Error(R"({"mod\u0065l":"dear"})"), "a top-level name is written with escapes");
  EXPECT_EQ(Error(R"({"\u006dodel":"dear"})"), "a top-level name is written with escapes");
  EXPECT_EQ(Error(R"({"a\/b":1})"), "a top-level name is written with escapes");
  // Below the top, names are compared as they read once unescaped.
  EXPECT_EQ(Error(R"({"stream_options":{"include\u005fusage":true,"include_usage":true}})"),
            "stream_options.include_usage: comes twice");
  EXPECT_EQ(Error(R"({"a":"\"","b":["\\",{"\n":"\u0041"}],"c":"\\\""})"), "");
  const std::string body = R"({"model":"a","mod\u0065l":"b"})";
  for (size_t split = 0; split <= body.size(); ++split) {
    ModelRequestReader reader;
    reader.Feed(std::string_view(body).substr(0, split));
    reader.Feed(std::string_view(body).substr(split));
    EXPECT_FALSE(reader.Finish()) << split;
    EXPECT_EQ(reader.error(), "a top-level name is written with escapes") << split;
  }
}

TEST(ModelRequest, NamesBeyondAsciiAreNoEscapesAtAnySplit) {
  const std::string body = "{\"\xC3\xA4\xF0\x9F\x98\x80x\":1,\"model\":\"m\"}";
  for (size_t first = 0; first <= body.size(); ++first) {
    for (size_t second = first; second <= body.size(); ++second) {
      ModelRequestReader reader;
      reader.Feed(std::string_view(body).substr(0, first));
      reader.Feed(std::string_view(body).substr(first, second - first));
      reader.Feed(std::string_view(body).substr(second));
      EXPECT_TRUE(reader.Finish()) << reader.error() << " " << first << " " << second;
    }
  }
}

TEST(ModelRequest, Case83g_NamesInAnotherCase) {
  EXPECT_EQ(Error(R"({"Model":"dear"})"), "model: written in another case");
  EXPECT_EQ(Error("{\"max_to\xE2\x84\xAA"
                  "ens\":5}"),
            "max_tokens: written in another case");
  EXPECT_EQ(Error("{\"max_token\xC5\xBF\":5}"), "max_tokens: written in another case");
  EXPECT_EQ(Error(R"({"stream_options":{"Include_Usage":true}})"),
            "stream_options.include_usage: written in another case");
}

TEST(ModelRequest, Case83g_TrailingDocumentAndTruncatedWords) {
  EXPECT_EQ(Error(R"({"model":"a"}{"model":"b"})"), "text after the JSON document");
  EXPECT_EQ(Error(R"({"model":"a"} x)"), "text after the JSON document");
  EXPECT_EQ(Error(R"({"a":tru})"), "not valid JSON at byte 5");
  EXPECT_EQ(Error(R"({"a":tru)"), "JSON that is cut short");
  EXPECT_EQ(Error(R"({"a":1)"), "JSON that is cut short");
  EXPECT_EQ(Error(""), "JSON that is cut short");
}

TEST(ModelRequest, RefusesWrongTypes) {
  EXPECT_EQ(Error(R"({"model":5})"), "model: must be a string");
  EXPECT_EQ(Error(R"({"model":["a"]})"), "model: must be a string");
  EXPECT_EQ(Error(R"({"model":{"a":"b"}})"), "model: must be a string");
  EXPECT_EQ(Error(R"({"max_tokens":"5"})"), "max_tokens: must be a whole number of at least 0");
  EXPECT_EQ(Error(R"({"max_tokens":-1})"), "max_tokens: must be a whole number of at least 0");
  EXPECT_EQ(Error(R"({"max_tokens":1.5})"), "max_tokens: must be a whole number of at least 0");
  EXPECT_EQ(Error(R"({"n":1e30})"), "n: must be a whole number of at least 0");
  EXPECT_EQ(Error(R"({"n":99999999999999999999})"), "n: must be a whole number of at least 0");
  EXPECT_EQ(Error(R"({"stream":1})"), "stream: must be true or false");
  EXPECT_EQ(Error(R"({"stream_options":true})"), "stream_options: must be an object");
  EXPECT_EQ(Error(R"({"stream_options":{"include_usage":"yes"}})"),
            "stream_options.include_usage: must be true or false");
  for (const char* body : {"[]", "\"a\"", "5", "true", "null", "1.5"}) {
    EXPECT_EQ(Error(body), "the body must be a JSON object") << body;
  }
}

TEST(ModelRequest, IsStrictJson) {
  for (const char* body :
       {"{'a':1}", "{\"a\":01}", "{\"a\":1,}", "{a:1}", "{\"a\":NaN}", "{\"a\":\"\t\"}",
        "{\"a\":\"\\x\"}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\xC0\xAF\"}", "{\"a\":\"\x80\"}",
        "{\"a\":/**/1}", "\xEF\xBB\xBF{}", "{\"a\" 1}"}) {
    EXPECT_TRUE(Error(body).starts_with("not valid JSON")) << body << ": " << Error(body);
  }
}

TEST(ModelRequest, HoldsItsBounds) {
  const auto nested = [](size_t depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(Error(nested(63)), "");
  EXPECT_EQ(Error(nested(64)), "JSON that is nested too deep");
  EXPECT_EQ(Error(nested(1'000'000)), "JSON that is nested too deep");
  std::string many = "{";
  for (int i = 0; i < 257; ++i) many += (i ? ",\"" : "\"") + std::to_string(i) + "\":1";
  EXPECT_EQ(Error(many + "}"), "too many top-level names");
  EXPECT_EQ(Error("{\"model\":\"" + std::string(1025, 'a') + "\"}"), "model: is too long");
  EXPECT_EQ(Error("{\"" + std::string(257, 'a') + "\":1}"), "a name that is too long");
}

}  // namespace
}  // namespace weir::json
