// The response's codec against what protoc makes of proto/rls.proto.
#include "wire/rls/response.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "rls.pb.h"

namespace weir::rls {
namespace {

namespace pb = envoy::service::ratelimit::v3;

pb::RateLimitResponse Parsed(const wire::Buffer& bytes) {
  pb::RateLimitResponse response;
  EXPECT_TRUE(response.ParseFromString(std::string(bytes.View())));
  return response;
}

TEST(RlsResponse, TheLibraryReadsAWholeAnswer) {
  wire::Buffer out;
  ResponseWriter writer(out);
  writer.OverallCode(Code::kOverLimit);
  writer.Status({.code = Code::kOk, .limit_remaining = kUnlimitedRemaining});
  writer.Status({.code = Code::kOverLimit,
                 .limit = CurrentLimit{10, Unit::kMinute, "per-user"},
                 .limit_remaining = 0,
                 .until_reset_ns = 59'500'000'000});
  writer.ResponseHeader("Retry-After", "3");
  writer.RawBody("{}");
  writer.Metadata("limit", "per-user");
  writer.Metadata("retry_after_ms", 2350.0);
  const pb::RateLimitResponse response = Parsed(out);
  EXPECT_EQ(response.overall_code(), pb::RateLimitResponse::OVER_LIMIT);
  ASSERT_EQ(response.statuses_size(), 2);
  EXPECT_EQ(response.statuses(0).code(), pb::RateLimitResponse::OK);
  EXPECT_FALSE(response.statuses(0).has_current_limit());
  EXPECT_FALSE(response.statuses(0).has_duration_until_reset());
  EXPECT_EQ(response.statuses(0).limit_remaining(), 4294967295u);
  EXPECT_EQ(response.statuses(1).current_limit().requests_per_unit(), 10u);
  EXPECT_EQ(response.statuses(1).current_limit().unit(), pb::MINUTE);
  EXPECT_EQ(response.statuses(1).current_limit().name(), "per-user");
  EXPECT_EQ(response.statuses(1).duration_until_reset().seconds(), 59);
  EXPECT_EQ(response.statuses(1).duration_until_reset().nanos(), 500'000'000);
  ASSERT_EQ(response.response_headers_to_add_size(), 1);
  EXPECT_EQ(response.response_headers_to_add(0).key(), "Retry-After");
  EXPECT_EQ(response.response_headers_to_add(0).value(), "3");
  EXPECT_EQ(response.raw_body(), "{}");
  EXPECT_EQ(response.dynamic_metadata().fields().at("limit").string_value(), "per-user");
  EXPECT_EQ(response.dynamic_metadata().fields().at("retry_after_ms").number_value(), 2350.0);
}

// Lengths that take one, two and three bytes, one within the other.
RC_GTEST_PROP(RlsResponse, NestedLengthsMayGrow, ()) {
  const size_t length =
      *rc::gen::element<size_t>(0, 1, 100, 125, 126, 127, 128, 129, 16370, 16383, 16384, 70000);
  const std::string name(length, 'n');
  wire::Buffer out;
  ResponseWriter writer(out);
  writer.Metadata(name, "v");
  writer.Status({.code = Code::kOk, .limit = CurrentLimit{1, Unit::kDay, name}});
  writer.ResponseHeader(name, name);
  const pb::RateLimitResponse response = Parsed(out);
  RC_ASSERT(response.dynamic_metadata().fields().at(name).string_value() == "v");
  RC_ASSERT(response.statuses(0).current_limit().name() == name);
  RC_ASSERT(response.response_headers_to_add(0).value() == name);
}

}  // namespace
}  // namespace weir::rls
