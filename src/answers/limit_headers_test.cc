#include "answers/limit_headers.h"

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "core/step.h"
#include "gtest/gtest.h"

namespace weir::answers {
namespace {

using decide::LimitVerdict;
using decide::Verdict;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kWall = 1'796'068'800 * kSecond;  // 2026-11-30T20:00:00Z

policy::AnswersConfig Only(bool x_ratelimit, bool ratelimit, bool retry_after, bool openai) {
  return {.x_ratelimit = x_ratelimit,
          .ratelimit = ratelimit,
          .retry_after = retry_after,
          .openai = openai};
}

Verdict VerdictOf(const std::vector<LimitVerdict>& limits, size_t binding) {
  Verdict verdict{
      .allowed = limits[binding].allowed, .limits = limits, .binding = &limits[binding]};
  if (!verdict.allowed) verdict.retry_after_ns = limits[binding].retry_after_ns;
  return verdict;
}

std::string Headers(const Verdict& verdict, const policy::AnswersConfig& config,
                    int64_t wall_ns = kWall, uint64_t random = 0) {
  wire::Buffer out;
  AppendLimitHeaders(verdict, config, AdviseRetry(verdict, config, random), wall_ns, out);
  return std::string(out.View());
}

std::vector<LimitVerdict> BurstDenied(int64_t wait_ns) {
  return {{.name = "burst",
           .allowed = false,
           .cost = 1,
           .quota = 20,
           .window_s = 1,
           .remaining = 0,
           .reset_after_ns = wait_ns,
           .retry_after_ns = wait_ns},
          {.name = "daily",
           .cost = 1,
           .quota = 100000,
           .window_s = 86400,
           .remaining = 81234,
           .reset_after_ns = 60'000 * kSecond,
           .next_unit_after_ns = 51'862 * kSecond}};
}

TEST(LimitHeadersTest, TheFallbackSaysThatItDecided) {
  const std::vector<LimitVerdict> limits = BurstDenied(kSecond);
  Verdict verdict = VerdictOf(limits, 1);
  EXPECT_EQ(Headers(verdict, Only(false, false, false, false)), "");
  verdict.source = Source::kFallback;
  EXPECT_EQ(Headers(verdict, Only(false, false, false, false)), "X-Weir-Source: fallback\r\n");
}

TEST(LimitHeadersTest, ADenialInFull) {
  const std::vector<LimitVerdict> limits = BurstDenied(2350 * kMs);
  EXPECT_EQ(Headers(VerdictOf(limits, 0), Only(true, true, true, false)),
            "Retry-After: 3\r\n"
            "retry-after-ms: 2350\r\n"
            "RateLimit-Policy: \"burst\";q=20;w=1, \"daily\";q=100000;w=86400\r\n"
            "RateLimit: \"burst\";r=0;t=3, \"daily\";r=81234;t=51862\r\n"
            "X-RateLimit-Limit: 20\r\n"
            "X-RateLimit-Remaining: 0\r\n"
            "X-RateLimit-Reset: 1796068803\r\n");
}

TEST(LimitHeadersTest, Case52_RetryAfterIsWholeSecondsRoundedUpAndAtLeastOne) {
  for (const auto& [wait_ns, text] :
       {std::pair<int64_t, const char*>{57'600 * kMs, "Retry-After: 58\r\n"},
        {100 * kMs, "Retry-After: 1\r\n"},
        {1, "Retry-After: 1\r\n"},
        {kSecond, "Retry-After: 1\r\n"},
        {kSecond + 1, "Retry-After: 2\r\n"}}) {
    const std::vector<LimitVerdict> limits = BurstDenied(wait_ns);
    EXPECT_EQ(Headers(VerdictOf(limits, 0), Only(false, false, true, false)).find(text), 0u)
        << wait_ns;
  }
}

TEST(LimitHeadersTest, Case53_ResetCountsDownWhateverRemains) {
  const policy::AnswersConfig unix_seconds = Only(true, false, false, false);
  policy::AnswersConfig delta = unix_seconds;
  delta.x_ratelimit_reset_unix = false;
  const int64_t remaining[] = {1, 0, 0, 0};
  for (size_t i = 0; i < 4; ++i) {
    const std::vector<LimitVerdict> limits = {{.name = "w",
                                               .allowed = i < 2,
                                               .cost = 1,
                                               .quota = 2,
                                               .window_s = 60,
                                               .remaining = remaining[i],
                                               .reset_after_ns = 50 * kSecond,
                                               .retry_after_ns = i < 2 ? 0 : 50 * kSecond}};
    const std::string left = std::to_string(remaining[i]);
    EXPECT_EQ(
        Headers(VerdictOf(limits, 0), delta),
        "X-RateLimit-Limit: 2\r\nX-RateLimit-Remaining: " + left + "\r\nX-RateLimit-Reset: 50\r\n");
    EXPECT_EQ(Headers(VerdictOf(limits, 0), unix_seconds),
              "X-RateLimit-Limit: 2\r\nX-RateLimit-Remaining: " + left +
                  "\r\nX-RateLimit-Reset: 1796068850\r\n");
  }
}

TEST(LimitHeadersTest, Case54_TheDenyingLimitIsShownNotTheYear) {
  const std::vector<LimitVerdict> limits = {{.name = "min",
                                             .allowed = false,
                                             .cost = 1,
                                             .quota = 5,
                                             .window_s = 60,
                                             .reset_after_ns = 60 * kSecond,
                                             .retry_after_ns = 12 * kSecond},
                                            {.name = "year",
                                             .cost = 1,
                                             .quota = 100000,
                                             .window_s = 31'536'000,
                                             .remaining = 99995,
                                             .reset_after_ns = 1577 * kSecond}};
  const std::string headers = Headers(VerdictOf(limits, 0), Only(true, false, true, false));
  EXPECT_EQ(
      headers,
      "Retry-After: 12\r\nretry-after-ms: 12000\r\n"
      "X-RateLimit-Limit: 5\r\nX-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 1796068860\r\n");
}

TEST(LimitHeadersTest, Case55_RateLimitIsADeltaThatAgreesWithRetryAfter) {
  policy::AnswersConfig config = Only(false, true, true, false);
  config.retry_jitter = std::chrono::seconds(10);
  for (uint64_t random : {uint64_t{0}, uint64_t{1} << 63, ~uint64_t{0}}) {
    const std::vector<LimitVerdict> limits = {{.name = "a",
                                               .allowed = false,
                                               .cost = 1,
                                               .quota = 5,
                                               .window_s = 60,
                                               .reset_after_ns = 60 * kSecond,
                                               .retry_after_ns = 2400 * kMs}};
    const std::string headers = Headers(VerdictOf(limits, 0), config, kWall, random);
    const std::string seconds = headers.substr(13, headers.find('\r') - 13);
    EXPECT_NE(headers.find("RateLimit: \"a\";r=0;t=" + seconds + "\r\n"), std::string::npos)
        << headers;
  }
}

TEST(LimitHeadersTest, Case61_JitterOnlyAddsAndSpreads) {
  const std::vector<LimitVerdict> limits = BurstDenied(60 * kSecond);
  const Verdict verdict = VerdictOf(limits, 0);
  policy::AnswersConfig config = Only(false, false, true, false);
  EXPECT_EQ(AdviseRetry(verdict, config, ~uint64_t{0}).seconds, 60);
  config.retry_jitter = std::chrono::seconds(10);
  std::set<int64_t> seen;
  for (uint64_t i = 0; i < 100; ++i) {
    const RetryAdvice advice = AdviseRetry(verdict, config, i * 0x9e3779b97f4a7c15u);
    EXPECT_GE(advice.milliseconds, 60'000);
    EXPECT_LE(advice.seconds, 70);
    seen.insert(advice.seconds);
  }
  EXPECT_GE(seen.size(), 5u);
}

TEST(LimitHeadersTest, WhenWaitingNeverHelpsNoWaitIsAnnounced) {
  const std::vector<LimitVerdict> limits = BurstDenied(core::kNever);
  EXPECT_EQ(Headers(VerdictOf(limits, 0), Only(false, true, true, false)),
            "x-should-retry: false\r\n"
            "RateLimit-Policy: \"burst\";q=20;w=1, \"daily\";q=100000;w=86400\r\n"
            "RateLimit: \"burst\";r=0, \"daily\";r=81234;t=51862\r\n");
}

TEST(LimitHeadersTest, SdksAreToldNotToRetryBeyondAMinute) {
  const policy::AnswersConfig config = Only(false, false, true, false);
  const std::vector<LimitVerdict> minute = BurstDenied(60 * kSecond);
  EXPECT_EQ(Headers(VerdictOf(minute, 0), config), "Retry-After: 60\r\nretry-after-ms: 60000\r\n");
  const std::vector<LimitVerdict> longer = BurstDenied(60 * kSecond + 1);
  EXPECT_EQ(Headers(VerdictOf(longer, 0), config),
            "Retry-After: 61\r\nretry-after-ms: 60001\r\nx-should-retry: false\r\n");
}

TEST(LimitHeadersTest, UnitsShadowsAndFifteenDigits) {
  const std::vector<LimitVerdict> limits = {
      {.name = "trial", .shadow = true, .allowed = false, .quota = 1, .window_s = 1},
      {.name = "tokens",
       .unit = Unit::kTokens,
       .cost = 1,
       .quota = 2'000'000'000'000'000,
       .window_s = 60,
       .remaining = 1'999'999'999'999'999,
       .next_unit_after_ns = 1},
      {.name = "par \"x\"",
       .unit = Unit::kParallel,
       .cost = 1,
       .quota = 10,
       .remaining = 10,
       .reset_after_ns = core::kNever}};
  EXPECT_EQ(Headers(VerdictOf(limits, 1), Only(false, true, false, false)),
            "RateLimit-Policy: \"tokens\";q=999999999999999;qu=\"tokens\";w=60, \"par "
            "\\\"x\\\"\";q=10;qu=\"parallel\"\r\n"
            "RateLimit: \"tokens\";r=999999999999999;t=1, \"par \\\"x\\\"\";r=10\r\n");
}

// Calls under way have no reset: X-RateLimit-* shows the rate with the least share left, unless a
// parallel limit denies, or is all there is.
TEST(LimitHeadersTest, TheTripleShowsARateBesideAParallelLimit) {
  std::vector<LimitVerdict> limits = {
      {.name = "client",
       .cost = 1,
       .quota = 20,
       .window_s = 20,
       .remaining = 19,
       .reset_after_ns = 1 * kSecond},
      {.name = "ip",
       .cost = 1,
       .quota = 600,
       .window_s = 60,
       .remaining = 599,
       .reset_after_ns = 100 * kMs},
      {.name = "shadow", .shadow = true, .quota = 5, .window_s = 60, .remaining = 0},
      {.name = "parallel",
       .unit = Unit::kParallel,
       .quota = 10,
       .remaining = 9,
       .reset_after_ns = core::kNever}};
  const policy::AnswersConfig triple = Only(true, false, false, false);
  EXPECT_EQ(Headers(VerdictOf(limits, 3), triple),
            "X-RateLimit-Limit: 20\r\n"
            "X-RateLimit-Remaining: 19\r\n"
            "X-RateLimit-Reset: 1796068801\r\n");
  const std::vector<LimitVerdict> alone(limits.end() - 1, limits.end());
  EXPECT_EQ(Headers(VerdictOf(alone, 0), triple),
            "X-RateLimit-Limit: 10\r\n"
            "X-RateLimit-Remaining: 9\r\n"
            "X-RateLimit-Reset: 1796068800\r\n");
  limits[3].allowed = false;
  limits[3].remaining = 0;
  limits[3].retry_after_ns = 1 * kSecond;
  EXPECT_EQ(Headers(VerdictOf(limits, 3), triple),
            "X-RateLimit-Limit: 10\r\n"
            "X-RateLimit-Remaining: 0\r\n"
            "X-RateLimit-Reset: 1796068801\r\n");
}

TEST(LimitHeadersTest, OpenAiTriples) {
  const std::vector<LimitVerdict> limits = {{.name = "r",
                                             .cost = 1,
                                             .quota = 60,
                                             .window_s = 60,
                                             .remaining = 59,
                                             .reset_after_ns = 1 * kSecond},
                                            {.name = "t",
                                             .unit = Unit::kTokens,
                                             .cost = 1,
                                             .quota = 1000,
                                             .window_s = 60,
                                             .remaining = 10,
                                             .reset_after_ns = 179'559'000'001}};
  EXPECT_EQ(Headers(VerdictOf(limits, 1), Only(false, false, false, true)),
            "x-ratelimit-limit-requests: 60\r\n"
            "x-ratelimit-remaining-requests: 59\r\n"
            "x-ratelimit-reset-requests: 1s\r\n"
            "x-ratelimit-limit-tokens: 1000\r\n"
            "x-ratelimit-remaining-tokens: 10\r\n"
            "x-ratelimit-reset-tokens: 2m59.56s\r\n");
}

TEST(LimitHeadersTest, NothingWhereNoLimitApplies) {
  EXPECT_EQ(Headers(Verdict{}, policy::AnswersConfig{}), "");
}

}  // namespace
}  // namespace weir::answers
