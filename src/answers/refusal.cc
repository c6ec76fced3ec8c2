#include "answers/refusal.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <initializer_list>

#include "core/int128.h"
#include "wire/durations.h"
#include "wire/http1/dates.h"
#include "wire/json/writer.h"

namespace weir::answers {
namespace {

using decide::LimitVerdict;
using decide::Verdict;

constexpr int64_t kMicrosPerUsd = 1'000'000;
constexpr std::string_view kQuotaExceededType =
    "https://iana.org/assignments/http-problem-types#quota-exceeded";
constexpr std::string_view kQuotaExceededTitle =
    "Request cannot be satisfied as assigned quota has been exceeded";

// What an error is called in each shape.
struct ErrorNames {
  int status;
  std::string_view openai_type;
  std::string_view openai_code;
  std::string_view anthropic_type;
};
constexpr std::array kErrorNames = {
    ErrorNames{400, "invalid_request_error", "bad_request", "invalid_request_error"},
    ErrorNames{401, "invalid_request_error", "invalid_api_key", "authentication_error"},
    ErrorNames{403, "invalid_request_error", "permission_denied", "permission_error"},
    ErrorNames{404, "invalid_request_error", "not_found", "not_found_error"},
    ErrorNames{405, "invalid_request_error", "method_not_allowed", "invalid_request_error"},
    ErrorNames{408, "invalid_request_error", "request_timeout", "timeout_error"},
    ErrorNames{413, "invalid_request_error", "payload_too_large", "request_too_large"},
    ErrorNames{431, "invalid_request_error", "headers_too_large", "invalid_request_error"},
    ErrorNames{502, "api_error", "upstream_error", "api_error"},
    ErrorNames{503, "api_error", "overloaded", "overloaded_error"},
    ErrorNames{504, "api_error", "upstream_timeout", "timeout_error"},
};

ErrorNames NamesOf(int status) {
  for (const ErrorNames& names : kErrorNames) {
    if (names.status == status) return names;
  }
  if (status >= 500) return {status, "api_error", "internal_error", "api_error"};
  return {status, "invalid_request_error", "bad_request", "invalid_request_error"};
}

// Text in the middle of a JSON string: what stands in it needs no escape, or is escaped by Quoted.
void AppendAmount(wire::Buffer& out, Unit unit, int64_t amount) {
  if (unit != Unit::kUsd) return out.AppendDecimal(amount);
  out.AppendDecimal(amount / kMicrosPerUsd);
  char digits[7] = {'.', '0', '0', '0', '0', '0', '0'};
  int64_t rest = amount % kMicrosPerUsd;
  for (int i = 6; i > 0; --i, rest /= 10) digits[i] = static_cast<char>('0' + rest % 10);
  int length = 7;
  while (length > 1 && digits[length - 1] == '0') --length;
  if (length > 1) out.Append({digits, static_cast<size_t>(length)});
}

// Escapes the text as JSON, without its quotes.
void AppendEscaped(wire::Buffer& out, std::string_view text) {
  const size_t quote_at = out.size();
  json::AppendString(out, text);
  char* const begin = out.data() + quote_at;
  const size_t inside = out.size() - quote_at - 2;
  std::memmove(begin, begin + 1, inside);
  out.Truncate(quote_at + inside);
}

bool BudgetSpent(const LimitVerdict& limit, const RetryAdvice& advice) {
  return limit.unit == Unit::kUsd ||
         (!advice.helps && limit.cost <= limit.quota && !limit.attribute_missing);
}

void AppendMessage(const LimitVerdict& limit, const RetryAdvice& advice, std::string_view model,
                   wire::Buffer& out) {
  const std::string_view unit = UnitName(limit.unit);
  if (limit.attribute_missing) {
    out.Append("The call lacks an attribute that limit ");
    AppendEscaped(out, limit.name);
    return out.Append(" needs.");
  }
  out.Append("Rate limit reached for ");
  AppendEscaped(out, model.empty() ? std::string_view("this client") : model);
  out.Append(" on ");
  out.Append(unit);
  out.Append(" (");
  AppendEscaped(out, limit.name);
  out.Append("): Limit ");
  AppendAmount(out, limit.unit, limit.quota);
  out.Append(", Used ");
  AppendAmount(out, limit.unit, std::max<int64_t>(limit.quota - limit.remaining, 0));
  out.Append(", Requested ");
  AppendAmount(out, limit.unit, limit.cost);
  if (!advice.helps) return out.Append(". Waiting does not help.");
  out.Append(". Please try again in ");
  wire::AppendDuration(out, std::chrono::milliseconds(advice.milliseconds));
  out.Append('.');
}

// `,"retry_after_seconds":3,"retry_after_ms":2350,"retry_after_at":"2026-11-30T20:00:03Z"`
void AppendRetryMembers(const RetryAdvice& advice, int64_t wall_ns, wire::Buffer& out) {
  if (!advice.helps)
    return out.Append(R"(,"retry_after_seconds":null,"retry_after_ms":null,"retry_after_at":null)");
  out.Append(R"(,"retry_after_seconds":)");
  out.AppendDecimal(advice.seconds);
  out.Append(R"(,"retry_after_ms":)");
  out.AppendDecimal(advice.milliseconds);
  out.Append(R"(,"retry_after_at":")");
  const int64_t at_ns = wall_ns + advice.milliseconds * 1'000'000;
  out.Append(http1::FormatRfc3339(core::CeilDiv64(at_ns, 1'000'000'000)).view());
  out.Append('"');
}

void AppendLimitName(const LimitVerdict& limit, wire::Buffer& out) {
  out.Append(R"(,"limit":)");
  json::AppendString(out, limit.name);
}

void AppendProblem(const Verdict& verdict, const RetryAdvice& advice, int64_t wall_ns,
                   wire::Buffer& out) {
  out.Append(R"({"type":")");
  out.Append(kQuotaExceededType);
  out.Append(R"(","title":")");
  out.Append(kQuotaExceededTitle);
  out.Append(R"(","status":429,"violated-policies":[)");
  bool first = true;
  for (const LimitVerdict& limit : verdict.limits) {
    if (limit.shadow || limit.allowed) continue;
    if (!first) out.Append(',');
    first = false;
    json::AppendString(out, limit.name);
  }
  out.Append(']');
  AppendLimitName(*verdict.binding, out);
  AppendRetryMembers(advice, wall_ns, out);
  out.Append('}');
}

bool OneOf(std::string_view text, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

BodyShape ShapeOfPath(std::string_view path) {
  const size_t version = path.find("/v1/");
  if (version == std::string_view::npos) return BodyShape::kProblem;
  const std::string_view rest = path.substr(version + 4);
  const std::string_view endpoint = rest.substr(0, rest.find('/'));
  if (OneOf(endpoint, {"messages", "complete"})) return BodyShape::kAnthropic;
  const bool openai = OneOf(
      endpoint, {"chat", "completions", "embeddings", "responses", "models", "images", "audio",
                 "moderations", "files", "uploads", "batches", "fine_tuning", "assistants",
                 "threads", "vector_stores", "realtime", "conversations", "evals", "videos"});
  return openai ? BodyShape::kOpenAi : BodyShape::kProblem;
}

}  // namespace

BodyShape ShapeOf(const policy::AnswersConfig& config, std::string_view canonical_path) {
  switch (config.error_body) {
    case policy::ErrorBody::kOpenAi:
      return BodyShape::kOpenAi;
    case policy::ErrorBody::kAnthropic:
      return BodyShape::kAnthropic;
    case policy::ErrorBody::kProblem:
      return BodyShape::kProblem;
    case policy::ErrorBody::kAuto:
      break;
  }
  return ShapeOfPath(canonical_path);
}

std::string_view ContentTypeOf(BodyShape shape) {
  return shape == BodyShape::kProblem ? "application/problem+json" : "application/json";
}

void AppendTooManyRequests(const Verdict& verdict, BodyShape shape, const RetryAdvice& advice,
                           const RefusalContext& context, wire::Buffer& out) {
  if (shape == BodyShape::kProblem) return AppendProblem(verdict, advice, context.wall_ns, out);
  const LimitVerdict& limit = *verdict.binding;
  const bool spent = BudgetSpent(limit, advice);
  if (shape == BodyShape::kOpenAi) {
    out.Append(R"({"error":{"message":")");
    AppendMessage(limit, advice, context.model, out);
    out.Append(R"(","type":")");
    out.Append(spent ? std::string_view("insufficient_quota") : UnitName(limit.unit));
    out.Append(R"(","param":null,"code":")");
    out.Append(spent ? "insufficient_quota" : "rate_limit_exceeded");
    out.Append('"');
    AppendLimitName(limit, out);
    AppendRetryMembers(advice, context.wall_ns, out);
    return out.Append("}}");
  }
  out.Append(R"({"type":"error","error":{"type":"rate_limit_error","message":")");
  AppendMessage(limit, advice, context.model, out);
  out.Append('"');
  AppendLimitName(limit, out);
  AppendRetryMembers(advice, context.wall_ns, out);
  out.Append('}');
  if (!context.request_id.empty()) {
    out.Append(R"(,"request_id":)");
    json::AppendString(out, context.request_id);
  }
  out.Append('}');
}

void AppendErrorBody(BodyShape shape, int status, std::string_view message,
                     std::string_view request_id, wire::Buffer& out) {
  const ErrorNames names = NamesOf(status);
  json::Writer writer(out);
  writer.BeginObject();
  switch (shape) {
    case BodyShape::kOpenAi:
      writer.Key("error").BeginObject().Key("message").String(message).Key("type").String(
          names.openai_type);
      writer.Key("param").Null().Key("code").String(names.openai_code).EndObject();
      break;
    case BodyShape::kAnthropic:
      writer.Key("type").String("error").Key("error").BeginObject();
      writer.Key("type").String(names.anthropic_type).Key("message").String(message).EndObject();
      if (!request_id.empty()) writer.Key("request_id").String(request_id);
      break;
    case BodyShape::kProblem:
      writer.Key("type").String("about:blank").Key("title").String(http1::ReasonPhrase(status));
      writer.Key("status").Int(status).Key("detail").String(message);
      if (!request_id.empty()) writer.Key("request_id").String(request_id);
      break;
  }
  writer.EndObject();
}

void FinishTooManyRequests(const Verdict& verdict, const policy::AnswersConfig& config,
                           BodyShape shape, const RetryAdvice& advice,
                           const RefusalContext& context, bool head_only,
                           http1::ResponseWriter& answer) {
  AppendLimitHeaders(verdict, config, advice, context.wall_ns, answer.out());
  answer.TrustedFields("Cache-Control: no-store\r\n");
  answer.TrustedFields(shape == BodyShape::kProblem ? "Content-Type: application/problem+json\r\n"
                                                    : "Content-Type: application/json\r\n");
  if (head_only) {
    static thread_local wire::Buffer body;
    body.Clear();
    AppendTooManyRequests(verdict, shape, advice, context, body);
    return answer.EndHeadOnly(static_cast<int64_t>(body.size()));
  }
  answer.BeginBody();
  AppendTooManyRequests(verdict, shape, advice, context, answer.out());
  answer.EndBody();
}

}  // namespace weir::answers
