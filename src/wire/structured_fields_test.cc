#include "wire/structured_fields.h"

#include <gtest/gtest.h>

namespace weir::wire {
namespace {

TEST(StructuredFields, WriteRateLimitLists) {
  Buffer policy;
  AppendPolicyItem(policy, true, {.name = "burst", .quota = 20, .window_seconds = 1});
  AppendPolicyItem(policy, false,
                   {.name = "day",
                    .quota = 100000,
                    .window_seconds = 86400,
                    .unit = "tokens",
                    .partition_key = "c2Q="});
  EXPECT_EQ(policy.View(), R"("burst";q=20;w=1, "day";q=100000;w=86400;qu="tokens";pk=:c2Q=:)");
  Buffer limit;
  AppendRateLimitItem(limit, true, {.name = "burst", .remaining = 0, .reset_seconds = 3});
  AppendRateLimitItem(limit, false, {.name = "day", .remaining = 81234});
  EXPECT_EQ(limit.View(), R"("burst";r=0;t=3, "day";r=81234)");
}

TEST(StructuredFields, StayWithinTheirGrammar) {
  Buffer out;
  AppendStructuredString(out, "a\"b\\c\r\n\xC3\xA4\x7f");
  EXPECT_EQ(out.View(), "\"a\\\"b\\\\c?????\"");
  out.Clear();
  AppendStructuredInteger(out, INT64_MAX);
  out.Append(' ');
  AppendStructuredInteger(out, INT64_MIN);
  EXPECT_EQ(out.View(), "999999999999999 -999999999999999");
}

}  // namespace
}  // namespace weir::wire
