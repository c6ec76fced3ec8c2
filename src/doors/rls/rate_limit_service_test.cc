// The rate limit service, from bytes to bytes, on a simulated clock.
#include "doors/rls/rate_limit_service.h"

#include <chrono>
#include <map>
#include <string>

#include "gtest/gtest.h"
#include "rls.pb.h"
#include "testing/simulated_engine.h"

namespace weir::doors::rls {
namespace {

namespace pb = envoy::service::ratelimit::v3;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kOk = pb::RateLimitResponse::OK;
constexpr auto kOver = pb::RateLimitResponse::OVER_LIMIT;

struct Service {
  explicit Service(const std::string& limits, const std::string& more = "")
      : weir("limits: [" + limits + "]\n" + more), service(*weir.worker, 1) {}

  pb::RateLimitResponse Ask(const pb::RateLimitRequest& request) {
    const auto decided = service.Decide(request.SerializeAsString(), weir.now());
    pb::RateLimitResponse response;
    if (!decided) {
      ADD_FAILURE() << decided.error().message;
      return response;
    }
    wire::Buffer out;
    service.AppendResponse(**decided, weir.clock.RealtimeNs(), out);
    EXPECT_TRUE(response.ParseFromString(std::string(out.View())));
    return response;
  }
  std::string Refusal(const pb::RateLimitRequest& request) {
    const auto decided = service.Decide(request.SerializeAsString(), weir.now());
    return decided ? "answered" : decided.error().message;
  }

  SimulatedEngine weir;
  RateLimitService service;
};

pb::RateLimitRequest Request(const std::string& user, uint32_t hits = 0) {
  pb::RateLimitRequest request;
  request.set_domain("d");
  request.set_hits_addend(hits);
  auto* const entry = request.add_descriptors()->add_entries();
  entry->set_key("user");
  entry->set_value(user);
  return request;
}

std::string Limit(const std::string& rate) {
  return "{name: a, domain: d, descriptor: [{key: user}], rate: " + rate + "}";
}

std::map<std::string, std::string> HeadersOf(const pb::RateLimitResponse& response) {
  std::map<std::string, std::string> headers;
  for (const auto& header : response.response_headers_to_add())
    EXPECT_TRUE(headers.emplace(header.key(), header.value()).second) << header.key();
  return headers;
}

TEST(RateLimitService, AStatusTellsQuotaRestAndReset) {
  Service service(Limit("10/min"));
  const pb::RateLimitResponse response = service.Ask(Request("a", 4));
  EXPECT_EQ(response.overall_code(), kOk);
  ASSERT_EQ(response.statuses_size(), 1);
  const auto& status = response.statuses(0);
  EXPECT_EQ(status.code(), kOk);
  EXPECT_EQ(status.current_limit().requests_per_unit(), 10u);
  EXPECT_EQ(status.current_limit().unit(), pb::MINUTE);
  EXPECT_EQ(status.current_limit().name(), "a");
  EXPECT_EQ(status.limit_remaining(), 6u);
  EXPECT_EQ(status.duration_until_reset().seconds(), 24);
  EXPECT_EQ(status.duration_until_reset().nanos(), 0);
}

TEST(RateLimitService, TheUnitIsTheOneInWhichTheQuotaComesBack) {
  const std::pair<const char*, pb::RateLimitUnit> rates[] = {
      {"7/s", pb::SECOND},
      {"7/min", pb::MINUTE},
      {"7/hour", pb::HOUR},
      {"7/day", pb::DAY},
      {"7/week", pb::WEEK},
      {"7/month", pb::MONTH},
      {"7/year", pb::YEAR},
      {"7/90s", pb::UNKNOWN_UNIT},
      {"6/60s", pb::MINUTE},
      {"300/min, burst: 50", pb::UNKNOWN_UNIT},
      {"2/s, burst: 120", pb::MINUTE}};
  for (const auto& [rate, unit] : rates) {
    Service service(Limit(rate));
    EXPECT_EQ(service.Ask(Request("a")).statuses(0).current_limit().unit(), unit) << rate;
  }
}

TEST(RateLimitService, ARefusalTellsTheWaitInEveryForm) {
  Service service(Limit("10/min"));
  EXPECT_EQ(service.Ask(Request("a", 10)).overall_code(), kOk);
  service.weir.Advance(milliseconds(2350));
  const pb::RateLimitResponse refused = service.Ask(Request("a"));
  EXPECT_EQ(refused.overall_code(), kOver);
  EXPECT_EQ(refused.statuses(0).code(), kOver);
  EXPECT_EQ(refused.statuses(0).limit_remaining(), 0u);
  EXPECT_EQ(refused.statuses(0).duration_until_reset().seconds(), 57);
  EXPECT_EQ(refused.statuses(0).duration_until_reset().nanos(), 650'000'000);
  const auto headers = HeadersOf(refused);
  EXPECT_EQ(headers.at("Retry-After"), "4");
  EXPECT_EQ(headers.at("retry-after-ms"), "3650");
  EXPECT_EQ(headers.at("RateLimit"), "\"a\";r=0;t=4");
  EXPECT_EQ(headers.at("RateLimit-Policy"), "\"a\";q=10;w=60");
  EXPECT_EQ(headers.at("content-type"), "application/problem+json");
  EXPECT_NE(refused.raw_body().find(R"("retry_after_ms":3650)"), std::string::npos);
  const auto& metadata = refused.dynamic_metadata().fields();
  EXPECT_EQ(metadata.at("limit").string_value(), "a");
  EXPECT_EQ(metadata.at("source").string_value(), "memory");
  EXPECT_EQ(metadata.at("retry_after_ms").number_value(), 3650.0);
  service.weir.Advance(milliseconds(3650));
  EXPECT_EQ(service.Ask(Request("a")).overall_code(), kOk);
}

TEST(RateLimitService, Case27_AQuotaBeyond32BitsIsNotCutShort) {
  Service service(Limit("30000000000/month"));
  const pb::RateLimitResponse response = service.Ask(Request("a"));
  EXPECT_EQ(HeadersOf(response).at("RateLimit-Policy"), "\"a\";q=30000000000;w=2592000");
  EXPECT_FALSE(response.statuses(0).has_current_limit());
  EXPECT_EQ(response.statuses(0).limit_remaining(), 4294967295u);
}

TEST(RateLimitService, ACostThatNeverFitsHasNoWait) {
  Service service(Limit("10/min"));
  const pb::RateLimitResponse refused = service.Ask(Request("a", 11));
  EXPECT_EQ(refused.overall_code(), kOver);
  EXPECT_FALSE(HeadersOf(refused).contains("Retry-After"));
  EXPECT_FALSE(refused.dynamic_metadata().fields().contains("retry_after_ms"));
  EXPECT_EQ(service.Ask(Request("a")).statuses(0).limit_remaining(), 9u);
}

TEST(RateLimitService, HeadersAreThoseThatAreConfigured) {
  Service bare(Limit("10/min"), "answers: {headers: []}");
  EXPECT_TRUE(HeadersOf(bare.Ask(Request("a"))).empty());
  // What Envoy or an upstream has to say is left to them.
  Service theirs(Limit("10/min"), "answers: {headers: [x-ratelimit, openai]}");
  EXPECT_TRUE(HeadersOf(theirs.Ask(Request("a"))).empty());
  Service ours(Limit("10/min"), "answers: {headers: [ratelimit]}");
  EXPECT_EQ(HeadersOf(ours.Ask(Request("a"))).at("RateLimit"), "\"a\";r=9;t=6");
}

// A reload may come between a decision and its answer, which is then the old policy's to its end.
TEST(RateLimitService, AnAnswerIsOfThePolicyThatDecided) {
  Service service(Limit("10/min"));
  const std::string message = Request("a").SerializeAsString();
  const auto decided = service.service.Decide(message, service.weir.now());
  ASSERT_TRUE(decided);
  service.weir.Reload("limits: [" + Limit("20/min") + "]\nanswers: {headers: []}");
  wire::Buffer out;
  service.service.AppendResponse(**decided, 0, out);
  pb::RateLimitResponse response;
  ASSERT_TRUE(response.ParseFromString(std::string(out.View())));
  EXPECT_EQ(response.statuses(0).current_limit().name(), "a");
  EXPECT_EQ(HeadersOf(response).at("RateLimit-Policy"), "\"a\";q=10;w=60");
  service.weir.worker->policy();
  EXPECT_EQ(service.Ask(Request("a")).statuses(0).current_limit().requests_per_unit(), 20u);
}

TEST(RateLimitService, FaultsNameTheField) {
  Service service(Limit("10/min"));
  pb::RateLimitRequest negative = Request("a");
  negative.mutable_descriptors(0)->set_is_negative_hits(true);
  EXPECT_TRUE(service.Refusal(negative).starts_with("descriptors[0].is_negative_hits: "));
  pb::RateLimitRequest much = Request("a");
  much.mutable_descriptors(0)->mutable_hits_addend()->set_value(uint64_t{1} << 60);
  EXPECT_EQ(service.Refusal(much), "descriptors[0].hits_addend: must be at most 9007199254740992");
  pb::RateLimitRequest unit = Request("a");
  unit.mutable_descriptors(0)->mutable_limit()->set_requests_per_unit(1);
  EXPECT_EQ(service.Refusal(unit), "descriptors[0].limit.unit: must be SECOND to WEEK (1 to 7)");
  EXPECT_EQ(service.Ask(Request("a")).statuses(0).limit_remaining(), 9u);
}

}  // namespace
}  // namespace weir::doors::rls
