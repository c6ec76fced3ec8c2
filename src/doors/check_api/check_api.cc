#include "doors/check_api/check_api.h"

#include <string>
#include <utility>

#include "answers/limit_headers.h"
#include "base/when_all.h"
#include "doors/answer.h"
#include "doors/check_api/decision_json.h"
#include "doors/jitter.h"
#include "policy/describe.h"
#include "wire/json/writer.h"
#include "wire/uri/query_params.h"

namespace weir::doors {
namespace {

constexpr std::string_view kSettlePath = "/v1/settle";
constexpr std::string_view kReleasePath = "/v1/release";
constexpr Endpoint kEndpoints[] = {{"POST", "/v1/check"},
                                   {"POST", kSettlePath},
                                   {"POST", kReleasePath},
                                   {"GET, HEAD", "/v1/limits"},
                                   {"GET, POST", "/v1/authorize"}};

const policy::Secret& TokenOf(const policy::Policy& policy) {
  static const policy::Secret kNone;
  return policy.config().listen.api ? policy.config().listen.api->token : kNone;
}

// Whether a denial is a 429, as ?status=429 asks.
Result<bool> WantsStatus(const http1::RequestHead& head, bool batch) {
  if (!head.has_query) return false;
  std::string scratch;
  const std::optional<std::string_view> status = uri::FindQueryParam(head.query, "status", scratch);
  if (status && *status != "429") {
    return InvalidArgument(
        "status: must be 429, or left out for denials with 200; "
        "/v1/authorize?deny=403 is there for proxies that know no other");
  }
  if (status && batch) return InvalidArgument("status: not with a batch, whose items differ");
  if (!uri::DoubledQueryParam(head.query).empty())
    return InvalidArgument("the query: names something twice");
  return status.has_value();
}

void AnswerSettled(const net::HttpRequest& request, std::string_view reservation,
                   const Result<decide::Settled>& settled, http1::ResponseWriter& answer) {
  if (!settled) return AnswerError(request, settled.error(), answer);
  wire::Buffer body;
  AppendSettled(reservation, *settled, body);
  AnswerJson(request, 200, body.View(), answer);
}

constexpr std::string_view kBatchFront = R"({"results":[)";
constexpr std::string_view kBatchBack = "]}";

}  // namespace

CheckApi::CheckApi(decide::Worker& worker, uint64_t jitter_seed)
    : worker_(worker),
      checks_(worker, metrics::Door::kApi),
      forward_auth_(worker, jitter_seed ^ 0x9e3779b97f4a7c15u),
      random_(jitter_seed) {}

CheckApi::CheckApi(decide::Worker& worker) : CheckApi(worker, decide::RandomIds().Next().low) {}

void CheckApi::Answer(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  const http1::RequestHead& head = request.head;
  const policy::Secret& token = TokenOf(worker_.policy());
  if (ForwardAuth::Takes(head.path)) return forward_auth_.Answer(request, token, answer);
  if (!MayAsk(request, token)) {
    return AnswerError(request, 401, "unauthenticated",
                       "Authorization: Bearer with this door's token is required", answer);
  }
  const bool post = head.method_id == http1::Method::kPost;
  if (head.path == "/v1/check" && post) return AnswerCheck(request, answer);
  if ((head.path == kSettlePath || head.path == kReleasePath) && post)
    return AnswerEnd(request, answer);
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
  const Result<bool> wants_status = WantsStatus(request.head, parser_.is_batch());
  if (!wants_status) return AnswerError(request, wants_status.error(), answer);
  if (parser_.is_batch()) return AnswerBatch(request, now, answer);
  AnswerVerdict(request, checks_.Decide(parser_.items()[0], *wants_status, now), *wants_status,
                answer);
}

void CheckApi::AnswerVerdict(const net::HttpRequest& request,
                             const Result<const decide::Verdict*>& decided, bool wants_status,
                             http1::ResponseWriter& answer) {
  if (!decided) return AnswerError(request, decided.error(), answer);
  const decide::Verdict& verdict = **decided;
  BeginAnswer(request, wants_status && !verdict.allowed ? 429 : 200, "application/json", answer);
  if (wants_status) {
    const policy::AnswersConfig& config = worker_.policy_in_use().config().answers;
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
  out.Append(kBatchFront);
  bool first = true;
  for (const json::CheckItem& item : parser_.items()) {
    if (!first) out.Append(',');
    first = false;
    AppendItem(checks_.Decide(item, false, now), out);
  }
  out.Append(kBatchBack);
  answer.EndBody();
}

void CheckApi::AppendItem(const Result<const decide::Verdict*>& decided, wire::Buffer& out) {
  if (decided) {
    AppendDecision(**decided, out);
  } else {
    AppendError(CodeName(decided.error().code), decided.error().message, out);
  }
}

// Over a shared store
// ----------------------------------------------------------------------------------------------------

Task<void> CheckApi::AnswerLater(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  const http1::RequestHead& head = request.head;
  const policy::Secret& token = TokenOf(worker_.policy());
  if (ForwardAuth::Takes(head.path)) {
    co_await forward_auth_.AnswerLater(request, token, answer);
    co_return;
  }
  if (head.method_id == http1::Method::kPost && MayAsk(request, token)) {
    if (head.path == "/v1/check") {
      co_await CheckLater(request, answer);
      co_return;
    }
    if (head.path == kSettlePath || head.path == kReleasePath) {
      co_await EndLater(request, answer);
      co_return;
    }
  }
  Answer(request, answer);
}

Task<void> CheckApi::FinishItem(Item& item, core::Now now) {
  item.verdict = co_await worker_.Finish(**item.decision, now);
}

// The parser and the attributes are the loop's: what a decision needs of them it has once Begin is
// through, before anything waits.
Task<void> CheckApi::CheckLater(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  if (!parser_.ParseCheck(request.body)) {
    AnswerError(request, 400, "invalid_argument", parser_.error(), answer);
    co_return;
  }
  const core::Now now = NowOf(request);
  const bool batch = parser_.is_batch();
  const Result<bool> asked_status = WantsStatus(request.head, batch);
  if (!asked_status) {
    AnswerError(request, asked_status.error(), answer);
    co_return;
  }
  const bool wants_status = *asked_status;
  std::vector<Item> items;
  items.reserve(parser_.items().size());
  std::vector<Task<void>> tasks;
  for (const json::CheckItem& asked : parser_.items()) {
    Item& item = items.emplace_back(checks_.Begin(asked, wants_status));
    if (!item.decision) {
      item.verdict = std::unexpected(item.decision.error());
    } else if (const auto finished = worker_.FinishNow(**item.decision, now)) {
      item.verdict = *finished;
    } else {
      tasks.push_back(FinishItem(item, now));
    }
  }
  if (!tasks.empty()) co_await WhenAll(std::move(tasks));
  if (!batch) {
    AnswerVerdict(request, items[0].verdict, wants_status, answer);
    co_return;
  }
  BeginAnswer(request, 200, "application/json", answer);
  answer.BeginBody();
  wire::Buffer& out = answer.out();
  out.Append(kBatchFront);
  for (const Item& item : items) {
    if (&item != &items.front()) out.Append(',');
    AppendItem(item.verdict, out);
  }
  out.Append(kBatchBack);
  answer.EndBody();
}

std::optional<ReservationEnd> CheckApi::ReadEnd(const net::HttpRequest& request,
                                                http1::ResponseWriter& answer) {
  json::SettleRequest settle;
  json::ReleaseRequest release;
  const bool settles = request.head.path == kSettlePath;
  if (!(settles ? parser_.ParseSettle(request.body, settle)
                : parser_.ParseRelease(request.body, release))) {
    AnswerError(request, 400, "invalid_argument", parser_.error(), answer);
    return std::nullopt;
  }
  return settles ? SettleOf(settle.reservation, settle.actual) : ReleaseOf(release.reservation);
}

void CheckApi::AnswerEnd(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  const std::optional<ReservationEnd> end = ReadEnd(request, answer);
  if (!end) return;
  AnswerSettled(request, end->reservation, checks_.Settle(*end, NowOf(request)), answer);
}

Task<void> CheckApi::EndLater(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  const std::optional<ReservationEnd> end = ReadEnd(request, answer);
  if (!end) co_return;
  const Result<decide::Settled> settled = co_await checks_.SettleLater(*end, NowOf(request));
  AnswerSettled(request, end->reservation, settled, answer);
}

void CheckApi::AnswerLimits(const net::HttpRequest& request, http1::ResponseWriter& answer) {
  AnswerJson(request, 200, policy::ToJson(worker_.policy()), answer);
}

}  // namespace weir::doors
