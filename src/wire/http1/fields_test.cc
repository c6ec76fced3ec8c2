#include "wire/http1/fields.h"

#include <gtest/gtest.h>

#include "wire/http1/authority.h"

namespace weir::http1 {
namespace {

TEST(Fields, IdentifiesKnownNamesInAnyCase) {
  EXPECT_EQ(IdentifyField("content-LENGTH"), FieldId::kContentLength);
  EXPECT_EQ(IdentifyField("TE"), FieldId::kTe);
  EXPECT_EQ(IdentifyField("Via"), FieldId::kVia);
  EXPECT_EQ(IdentifyField("host"), FieldId::kHost);
  EXPECT_EQ(IdentifyField("X-Api-Key"), FieldId::kXApiKey);
  EXPECT_EQ(IdentifyField("Proxy-Authorization"), FieldId::kProxyAuthorization);
  EXPECT_EQ(IdentifyField("x-forwarded-proto"), FieldId::kXForwardedProto);
  EXPECT_EQ(IdentifyField("hosts"), FieldId::kOther);
  EXPECT_EQ(IdentifyField("hos"), FieldId::kOther);
  EXPECT_EQ(IdentifyField(""), FieldId::kOther);
  // 0x0d becomes '-' when bit 5 is set: it must not make a name.
  EXPECT_EQ(IdentifyField("content\rlength"), FieldId::kOther);
  EXPECT_EQ(IdentifyField("content_length"), FieldId::kOther);
}

TEST(Fields, ComparesAndSearchesLists) {
  EXPECT_TRUE(EqualIgnoreCase("aZ-9", "Az-9"));
  EXPECT_FALSE(EqualIgnoreCase("a", "ab"));
  EXPECT_FALSE(EqualIgnoreCase("[", "{"));  // Differ in bit 5 only, and are no letters.
  EXPECT_TRUE(HasToken("a, Close ,b", "close"));
  EXPECT_TRUE(HasToken("close", "close"));
  EXPECT_FALSE(HasToken("closed, not-close", "close"));
  EXPECT_FALSE(HasToken("", "close"));
  EXPECT_TRUE(HasToken(",,\tclose", "close"));
}

TEST(Fields, JudgesTokensAndValues) {
  EXPECT_TRUE(IsToken("X-A_b.1!"));
  EXPECT_FALSE(IsToken(""));
  EXPECT_FALSE(IsToken("a b"));
  EXPECT_FALSE(IsToken("a:"));
  EXPECT_TRUE(IsFieldValue("a\tb \xC3\xA4"));
  EXPECT_TRUE(IsFieldValue(""));
  EXPECT_FALSE(IsFieldValue("a\r\nb"));
  EXPECT_FALSE(IsFieldValue(std::string_view("a\0", 2)));
  EXPECT_FALSE(IsFieldValue("sixteen bytes and more, then \x7f"));
}

TEST(Fields, HoldsAHundredOfAPeerAndWhatAProxyAdds) {
  EXPECT_EQ(HeadLimits().fields_max, 100u);
  FixedHeaders headers;
  for (int i = 0; i < 128; ++i) EXPECT_TRUE(headers.Add("a", "b", FieldId::kOther));
  EXPECT_FALSE(headers.Add("a", "b", FieldId::kOther));
  EXPECT_EQ(headers.size(), 128u);
  headers.Clear();
  EXPECT_TRUE(headers.empty());
}

TEST(Authority, SplitsOffThePort) {
  EXPECT_EQ(HostWithoutPort("a.example:80"), "a.example");
  EXPECT_EQ(HostWithoutPort("[::1]:80"), "[::1]");
  EXPECT_EQ(HostWithoutPort("a"), "a");
  EXPECT_TRUE(IsAuthorityWithPort("a:443"));
  EXPECT_FALSE(IsAuthorityWithPort("a"));
}

}  // namespace
}  // namespace weir::http1
