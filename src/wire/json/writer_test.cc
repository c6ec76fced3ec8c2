#include "wire/json/writer.h"

#include <gtest/gtest.h>

namespace weir::json {
namespace {

TEST(Writer, WritesADecision) {
  wire::Buffer out;
  Writer json(out);
  json.BeginObject();
  json.Key("allowed").Bool(false);
  json.Key("denied_by").BeginArray().String("per-client").String("b").EndArray();
  json.Key("retry_after_ms").Int(144).Key("reservation").Null();
  json.Key("limits").BeginArray().BeginObject().Key("quota").Int(INT64_MAX).EndObject();
  json.BeginObject().EndObject().EndArray();
  json.EscapedKey("a\"b").Raw("1.5");
  json.EndObject();
  EXPECT_EQ(out.View(),
            R"({"allowed":false,"denied_by":["per-client","b"],"retry_after_ms":144,)"
            R"("reservation":null,"limits":[{"quota":9223372036854775807},{}],"a\"b":1.5})");
}

TEST(Writer, EscapesStrings) {
  wire::Buffer out;
  AppendString(out, std::string_view("a\"\\/\b\f\n\r\t\0\x1f\x7f\xC3\xA4\xF0\x9F\x98\x80", 18));
  EXPECT_EQ(out.View(),
            "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\xC3\xA4\xF0\x9F\x98\x80\"");
  out.Clear();
  // A stray continuation, an overlong slash, half a surrogate pair, a sequence cut short.
  AppendString(out, "\x80|\xC0\xAF|\xED\xA0\x80|\xE2\x82");
  EXPECT_EQ(out.View(),
            "\"\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD|"
            "\xEF\xBF\xBD\xEF\xBF\xBD\"");
  out.Clear();
  AppendString(out, "");
  EXPECT_EQ(out.View(), "\"\"");
}

}  // namespace
}  // namespace weir::json
