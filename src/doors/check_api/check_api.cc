#include "doors/check_api/check_api.h"

#include <string>
#include <utility>

#include "answers/limit_headers.h"
#include "doors/answer.h"
#include "doors/check_api/ad_hoc_rule.h"
#include "doors/check_api/decision_json.h"
#include "doors/jitter.h"
#include "policy/describe.h"
#include "wire/json/writer.h"
#include "wire/uri/query_params.h"

namespace weir::doors {
namespace {

constexpr Endpoint kEndpoints[] = {{"POST", "/v1/check"},
                                   {"POST", "/v1/settle"},
                                   {"POST", "/v1/release"},
                                   {"GET, HEAD", "/v1/limits"},
                                   {"GET, POST", "/v1/authorize"}};

decide::Costs CostsOf(const json::UnitAmounts& amounts) {
  return {.amount = amounts.amount, .given = amounts.given};
}

const policy::Secret& TokenOf(const policy::Policy& policy) {
  static const policy::Secret kNone;
  return policy.config().listen.api ? policy.config().listen.api->token : kNone;
}

// ?status=429
bool WantsStatus(const http1::RequestHead& head) {
  if (!head.has_query) return false;
  std::string scratch;
  return uri::FindQueryParam(head.query, "status", scratch) == "429";
}

void AppendSettled(std::string_view reservation, const decide::Settled& settled,
                   wire::Buffer& out) {
  json::Writer writer(out);
  writer.BeginObject().Key("reservation").String(reservation).Key("charged").BeginObject();
  for (int i = 0; i < kUnitCount; ++i) {
    if ((settled.given >> i & 1) == 0) continue;
    writer.Key(JsonUnitName(static_cast<Unit>(i))).Int(settled.charged[static_cast<size_t>(i)]);
  }
  writer.EndObject().EndObject();
}

void AnswerSettled(const net::HttpRequest& request, std::string_view reservation,
                   const Result<decide::Settled>& settled, http1::ResponseWriter& answer) {
  if (!settled) return AnswerError(request, settled.error(), answer);
  wire::Buffer body;
  AppendSettled(reservation, *settled, body);
  AnswerJson(request, 200, body.View(), answer);
}

Error UnknownReservation() { return {ErrorCode::kNotFound, "reservation: unknown or expired"}; }

}  // namespace

CheckApi::CheckApi(decide::Worker& worker, uint64_t jitter_seed)
    : worker_(worker),
      forward_auth_(worker, jitter_seed ^ 0x9e3779b97f4a7c15u),
      random_(jitter_seed) {}

CheckApi::CheckApi(decide::Worker& worker) : CheckApi(worker, decide::RandomIds().Next().low) {}

void CheckApi::Answer(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  const http1::RequestHead& head = request.head;
  const policy::Secret& token = TokenOf(worker_.policy());
  if (head.path == "/v1/authorize") return forward_auth_.Answer(request, token, answer);
  if (!MayAsk(request, token)) {
    return AnswerError(request, 401, "unauthenticated",
                       "Authorization: Bearer with this door's token is required", answer);
  }
  const bool post = head.method_id == http1::Method::kPost;
  if (head.path == "/v1/check" && post) return AnswerCheck(request, answer);
  if (head.path == "/v1/settle" && post) return AnswerSettle(request, answer);
  if (head.path == "/v1/release" && post) return AnswerRelease(request, answer);
  if (head.path == "/v1/limits" && IsGet(head)) return AnswerLimits(request, answer);
  for (const Endpoint& endpoint : kEndpoints) {
    if (endpoint.path == head.path) return AnswerNoSuchMethod(request, kEndpoints, answer);
  }
  AnswerNoSuchPath(request, kEndpoints, answer);
}

void CheckApi::AnswerCheck(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  if (!parser_.ParseCheck(request.body))
    return AnswerError(request, 400, "invalid_argument", parser_.error(), answer);
  const core::Now now = NowOf(request);
  if (parser_.is_batch()) return AnswerBatch(request, now, answer);
  const bool wants_status = WantsStatus(request.head);
  const Result<const decide::Verdict*> decided = DecideItem(parser_.items()[0], wants_status, now);
  if (!decided) return AnswerError(request, decided.error(), answer);
  const decide::Verdict& verdict = **decided;
  BeginAnswer(request, wants_status && !verdict.allowed ? 429 : 200, "application/json", answer);
  if (wants_status) {
    const policy::AnswersConfig& config = worker_.policy().config().answers;
    const answers::RetryAdvice advice = answers::AdviseRetry(verdict, config, NextRandom(random_));
    answers::AppendLimitHeaders(verdict, config, advice, request.wall_ns, answer.out());
    if (!verdict.allowed) answer.TrustedFields("Cache-Control: no-store\r\n");
  }
  answer.BeginBody();
  AppendDecision(verdict, answer.out());
  answer.EndBody();
}

void CheckApi::AnswerBatch(const net::HttpRequest& request, core::Now now,
                           http1::ResponseWriter& answer) {
  BeginAnswer(request, 200, "application/json", answer);
  answer.BeginBody();
  wire::Buffer& out = answer.out();
  out.Append(R"({"results":[)");
  bool first = true;
  for (const json::CheckItem& item : parser_.items()) {
    if (!first) out.Append(',');
    first = false;
    if (!item.error.empty()) {
      AppendError("invalid_argument", item.error, out);
      continue;
    }
    const Result<const decide::Verdict*> decided = DecideItem(item, false, now);
    if (decided) {
      AppendDecision(**decided, out);
    } else {
      AppendError(CodeName(decided.error().code), decided.error().message, out);
    }
  }
  out.Append("]}");
  answer.EndBody();
}

Result<const decide::Verdict*> CheckApi::DecideItem(const json::CheckItem& item, bool for_headers,
                                                    core::Now now) {
  decide::DecideOptions options{.door = metrics::Door::kApi,
                                .missing = policy::Missing::kSkip,
                                .peek = item.peek,
                                .reserve_ttl_ns = item.reserve ? item.reserve_ttl.count() : 0,
                                .next_unit = for_headers};
  if (item.rule) return DecideRule(item, options, now);
  call_.Begin(worker_);
  for (const json::NameValue& attribute : item.attributes) {
    Result<void> set = call_.Set(attribute.name, attribute.value);
    if (!set) return std::unexpected(std::move(set.error()));
  }
  if (item.api_key) {
    Result<void> set = call_.SetApiKey(*item.api_key);
    if (!set) return std::unexpected(std::move(set.error()));
  }
  options.client_hashed = call_.client_hashed();
  return worker_.Decide(call_.attributes(), CostsOf(item.cost), options, now);
}

Result<const decide::Verdict*> CheckApi::DecideRule(const json::CheckItem& item,
                                                    const decide::DecideOptions& options,
                                                    core::Now now) {
  const Result<core::MeterSpec> spec = SpecOf(*item.rule);
  if (!spec) return std::unexpected(spec.error());
  const uint8_t requests_only = static_cast<uint8_t>(1u << static_cast<unsigned>(Unit::kRequests));
  if (item.cost.given != requests_only)
    return InvalidArgument("cost: a rule that comes with the call counts requests");
  return worker_.DecideAdHoc({.key = item.key, .spec = *spec, .name = "ad-hoc"},
                             item.cost[Unit::kRequests], options, now);
}

void CheckApi::AnswerSettle(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  json::SettleRequest settle;
  if (!parser_.ParseSettle(request.body, settle)) {
    return AnswerError(request, 400, "invalid_argument", parser_.error(), answer);
  }
  const std::optional<decide::ReservationId> id = decide::ParseReservationId(settle.reservation);
  if (!id) return AnswerError(request, UnknownReservation(), answer);
  AnswerSettled(request, settle.reservation,
                worker_.Settle(*id, CostsOf(settle.actual), NowOf(request)), answer);
}

void CheckApi::AnswerRelease(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  json::ReleaseRequest release;
  if (!parser_.ParseRelease(request.body, release)) {
    return AnswerError(request, 400, "invalid_argument", parser_.error(), answer);
  }
  const std::optional<decide::ReservationId> id = decide::ParseReservationId(release.reservation);
  if (!id) return AnswerError(request, UnknownReservation(), answer);
  AnswerSettled(request, release.reservation, worker_.Release(*id, NowOf(request)), answer);
}

void CheckApi::AnswerLimits(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  AnswerJson(request, 200, policy::ToJson(worker_.policy()), answer);
}

}  // namespace weir::doors
