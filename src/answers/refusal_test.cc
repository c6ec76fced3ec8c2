#include "answers/refusal.h"

#include <string>
#include <vector>

#include "core/step.h"
#include "gtest/gtest.h"

namespace weir::answers {
namespace {

using decide::LimitVerdict;
using decide::Verdict;

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kWall = 1'796'068'800'000'000'000;  // 2026-11-30T20:00:00Z

std::string Body(const LimitVerdict& limit, BodyShape shape, const RefusalContext& context) {
  const std::vector<LimitVerdict> limits = {limit};
  const Verdict verdict{.allowed = false,
                        .limits = limits,
                        .binding = limits.data(),
                        .retry_after_ns = limit.retry_after_ns};
  wire::Buffer out;
  AppendTooManyRequests(verdict, shape, AdviseRetry(verdict, {}, 0), context, out);
  return std::string(out.View());
}

LimitVerdict TokensDenied() {
  return {.name = "tokens",
          .unit = Unit::kTokens,
          .allowed = false,
          .cost = 385,
          .quota = 30000,
          .window_s = 60,
          .remaining = 63,
          .reset_after_ns = 59'874 * kMs,
          .retry_after_ns = 644 * kMs};
}

TEST(RefusalTest, OpenAiShape) {
  EXPECT_EQ(
      Body(TokensDenied(), BodyShape::kOpenAi, {.wall_ns = kWall, .model = "m\"1"}),
      R"({"error":{"message":"Rate limit reached for m\"1 on tokens (tokens): Limit 30000, Used 29937, )"
      R"(Requested 385. Please try again in 644ms.","type":"tokens","param":null,"code":"rate_limit_exceeded",)"
      R"("limit":"tokens","retry_after_seconds":1,"retry_after_ms":644,)"
      R"("retry_after_at":"2026-11-30T20:00:01Z"}})");
}

TEST(RefusalTest, AnthropicShape) {
  EXPECT_EQ(
      Body(TokensDenied(), BodyShape::kAnthropic, {.wall_ns = kWall, .request_id = "req_1"}),
      R"({"type":"error","error":{"type":"rate_limit_error","message":"Rate limit reached for this client on )"
      R"(tokens (tokens): Limit 30000, Used 29937, Requested 385. Please try again in 644ms.","limit":"tokens",)"
      R"("retry_after_seconds":1,"retry_after_ms":644,"retry_after_at":"2026-11-30T20:00:01Z"},)"
      R"("request_id":"req_1"})");
}

TEST(RefusalTest, ProblemShape) {
  LimitVerdict limit = TokensDenied();
  limit.name = "burst";
  limit.retry_after_ns = 2350 * kMs;
  EXPECT_EQ(
      Body(limit, BodyShape::kProblem, {.wall_ns = kWall}),
      R"({"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",)"
      R"("title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,)"
      R"("violated-policies":["burst"],"limit":"burst","retry_after_seconds":3,"retry_after_ms":2350,)"
      R"("retry_after_at":"2026-11-30T20:00:03Z"})");
}

TEST(RefusalTest, ABudgetThatIsSpentIsInsufficientQuota) {
  const LimitVerdict limit{.name = "month",
                           .unit = Unit::kUsd,
                           .allowed = false,
                           .cost = 250'000,
                           .quota = 50'000'000,
                           .remaining = 100'000,
                           .retry_after_ns = 90'000'000 * kMs};
  EXPECT_EQ(
      Body(limit, BodyShape::kOpenAi, {.wall_ns = kWall, .model = "m"}),
      R"({"error":{"message":"Rate limit reached for m on usd (month): Limit 50, Used 49.9, Requested 0.25. )"
      R"(Please try again in 25h0m0s.","type":"insufficient_quota","param":null,"code":"insufficient_quota",)"
      R"("limit":"month","retry_after_seconds":90000,"retry_after_ms":90000000,)"
      R"("retry_after_at":"2026-12-01T21:00:00Z"}})");
}

TEST(RefusalTest, NeverIsNullNotZero) {
  LimitVerdict limit = TokensDenied();
  limit.cost = 40000;
  limit.retry_after_ns = core::kNever;
  const std::string body = Body(limit, BodyShape::kOpenAi, {.wall_ns = kWall});
  EXPECT_NE(body.find("Requested 40000. Waiting does not help."), std::string::npos) << body;
  EXPECT_NE(body.find(R"("retry_after_seconds":null,"retry_after_ms":null,"retry_after_at":null)"),
            std::string::npos);
  EXPECT_NE(body.find(R"("code":"rate_limit_exceeded")"), std::string::npos);
}

TEST(RefusalTest, Case57_ErrorBodiesInEveryShape) {
  wire::Buffer openai;
  AppendErrorBody(BodyShape::kOpenAi, 502, "no \"answer\"", "id", openai);
  EXPECT_EQ(
      openai.View(),
      R"({"error":{"message":"no \"answer\"","type":"api_error","param":null,"code":"upstream_error"}})");
  wire::Buffer anthropic;
  AppendErrorBody(BodyShape::kAnthropic, 401, "no key", "id", anthropic);
  EXPECT_EQ(
      anthropic.View(),
      R"({"type":"error","error":{"type":"authentication_error","message":"no key"},"request_id":"id"})");
  wire::Buffer problem;
  AppendErrorBody(BodyShape::kProblem, 504, "too late", {}, problem);
  EXPECT_EQ(problem.View(),
            R"({"type":"about:blank","title":"Gateway Timeout","status":504,"detail":"too late"})");
}

TEST(RefusalTest, TheShapeFollowsThePathUnlessItIsSet) {
  policy::AnswersConfig config;
  EXPECT_EQ(ShapeOf(config, "/v1/chat/completions"), BodyShape::kOpenAi);
  EXPECT_EQ(ShapeOf(config, "/openai/v1/embeddings"), BodyShape::kOpenAi);
  EXPECT_EQ(ShapeOf(config, "/v1/messages"), BodyShape::kAnthropic);
  EXPECT_EQ(ShapeOf(config, "/v1/messages/count_tokens"), BodyShape::kAnthropic);
  EXPECT_EQ(ShapeOf(config, "/v1/things"), BodyShape::kProblem);
  EXPECT_EQ(ShapeOf(config, "/"), BodyShape::kProblem);
  config.error_body = policy::ErrorBody::kAnthropic;
  EXPECT_EQ(ShapeOf(config, "/"), BodyShape::kAnthropic);
}

TEST(RefusalTest, FinishWritesTheWholeAnswer) {
  const std::vector<LimitVerdict> limits = {TokensDenied()};
  const Verdict verdict{
      .allowed = false, .limits = limits, .binding = limits.data(), .retry_after_ns = 644 * kMs};
  const policy::AnswersConfig config{.x_ratelimit = false, .ratelimit = false, .openai = false};
  wire::Buffer out;
  http1::ResponseWriter answer(out);
  answer.Begin(429);
  FinishTooManyRequests(verdict, config, BodyShape::kProblem, AdviseRetry(verdict, config, 0),
                        {.wall_ns = kWall}, false, answer);
  const std::string text(out.View());
  EXPECT_TRUE(
      text.starts_with("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nretry-after-ms: 644\r\n"
                       "Cache-Control: no-store\r\nContent-Type: application/problem+json\r\n"))
      << text;
  EXPECT_TRUE(text.ends_with("\"retry_after_at\":\"2026-11-30T20:00:01Z\"}")) << text;
}

}  // namespace
}  // namespace weir::answers
