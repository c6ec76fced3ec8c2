#include "doors/forward_auth/forward_auth.h"

#include <optional>
#include <string>

#include "answers/limit_headers.h"
#include "answers/refusal.h"
#include "doors/answer.h"
#include "doors/jitter.h"
#include "wire/uri/query_params.h"

namespace weir::doors {
namespace {

constexpr std::string_view kPath = "/v1/authorize";

// The call's own path, of a request that bears it behind the door's. Nothing: it does not.
std::optional<std::string_view> PathBehind(const http1::RequestHead& head) {
  if (head.path.size() == kPath.size()) return std::nullopt;
  return head.path.substr(kPath.size());
}

// The status of a denial: 429, or what ?deny says. Nothing: it says something else. Behind the
// door's path the query is the client's, which has no say in this.
std::optional<int> DenyStatus(const http1::RequestHead& head) {
  if (PathBehind(head)) return 429;
  std::string scratch;
  const std::optional<std::string_view> deny = uri::FindQueryParam(head.query, "deny", scratch);
  if (!deny || *deny == "429") return 429;
  if (*deny == "403") return 403;
  return std::nullopt;
}

bool BearsToken(const http1::RequestHead& head, const policy::Secret& token) {
  const http1::HeaderField* const field = head.headers.Find("x-weir-token");
  return field != nullptr && EqualSecrets(field->value, token.Reveal());
}

// What a proxy says of a call.
struct Said {
  std::optional<std::string_view> method, uri, host;

  // What a header of that name says; nullptr: nothing of the call.
  std::optional<std::string_view>* Of(std::string_view name) {
    if (!name.starts_with('x') && !name.starts_with('X')) return nullptr;
    const auto is = [name](std::string_view other) { return http1::EqualIgnoreCase(name, other); };
    if (is("x-forwarded-method") || is("x-original-method")) return &method;
    if (is("x-forwarded-uri") || is("x-original-uri")) return &uri;
    return is("x-forwarded-host") ? &host : nullptr;
  }
};

// Proxies pass on what they do not set themselves, so a second, different value is the client's,
// and which one that is cannot be told: an error.
Result<Said> SaidIn(const http1::RequestHead& head) {
  Said said;
  for (const http1::HeaderField& field : head.headers) {
    std::optional<std::string_view>* const place = said.Of(field.name);
    if (place == nullptr) continue;
    if (*place && **place != field.value)
      return InvalidArgument(std::string(field.name) + ": two values that contradict each other");
    *place = field.value;
  }
  return said;
}

}  // namespace

bool ForwardAuth::Takes(std::string_view path) {
  return path.starts_with(kPath) && (path.size() == kPath.size() || path[kPath.size()] == '/');
}

Result<ForwardAuth::Original> ForwardAuth::OriginalOf(const http1::RequestHead& head,
                                                      bool trusted) {
  if (const std::optional<std::string_view> path = PathBehind(head))
    return Original{head.method, *path, head.host};
  if (!trusted) return Original{head.method, head.path, head.host};
  const Result<Said> said = SaidIn(head);
  if (!said) return std::unexpected(said.error());
  return Original{said->method.value_or(head.method), said->uri.value_or(head.path),
                  said->host.value_or(head.host)};
}

Result<void> ForwardAuth::Describe(const http1::RequestHead& head, const Original& original,
                                   const identity::Identity& who) {
  call_.Begin(worker_);
  call_.SetPlain(policy::kClientAttribute, who.client.view());
  call_.SetAddress(who.address);
  call_.SetPlain(policy::kMethodAttribute, original.method);
  call_.SetHost(original.host);
  for (const policy::AttributeTable::Header& header :
       worker_.policy_in_use().attributes().headers()) {
    if (const http1::HeaderField* field = head.headers.Find(header.field_name)) {
      call_.SetPlain(header.index, field->value);
    }
  }
  return call_.SetPath(original.uri);
}

bool ForwardAuth::Read(const net::HttpRequest& request, const policy::Secret& token,
                       Question& question, http1::ResponseWriter& answer) {
  const http1::RequestHead& head = request.head;
  const identity::IdentityResolver& resolver = worker_.identity();
  const identity::IpAddress peer = PeerAddress(request.peer);
  const bool trusted = resolver.options().trusted_proxies.Contains(peer);
  if (!token.empty() && !trusted && !BearsToken(head, token)) {
    AnswerError(
        request, 401, "unauthenticated",
        "X-Weir-Token with this door's token is required of peers outside identity.trusted_proxies",
        answer);
    return false;
  }
  const std::optional<int> deny_status = DenyStatus(head);
  if (!deny_status) {
    AnswerError(request, 400, "invalid_argument", "deny: must be 403 or 429", answer);
    return false;
  }
  identity::IdentityRequest who_asks(resolver, peer);
  for (const http1::HeaderField& field : head.headers) who_asks.Offer(field.name, field.value);
  question = {.who = resolver.Resolve(who_asks, worker_.identity_cache(), request.wall_ns),
              .deny_status = *deny_status};
  const Result<Original> original = OriginalOf(head, trusted);
  const Result<void> described = original ? Describe(head, *original, question.who)
                                          : Result<void>(std::unexpected(original.error()));
  if (described) return true;
  AnswerError(request, described.error(), answer);
  return false;
}

decide::DecideOptions ForwardAuth::OptionsOf(const Question& question) {
  return {.door = metrics::Door::kForwardAuth,
          .missing = policy::Missing::kEmpty,
          .client = question.who.client.view(),
          .client_hashed = true};
}

void ForwardAuth::Answer(const net::HttpRequest& request, const policy::Secret& token,
                         http1::ResponseWriter& answer) {
  Question question;
  if (!Read(request, token, question, answer)) return;
  Conclude(request, question, call_.attributes().Get(policy::kPathAttribute),
           worker_.Decide(call_.attributes(), decide::Costs::Requests(), OptionsOf(question),
                          worker_.engine().NowAt(request.now_ns, request.wall_ns)),
           answer);
}

Task<void> ForwardAuth::AnswerLater(const net::HttpRequest& request, const policy::Secret& token,
                                    http1::ResponseWriter& answer) {
  Question question;
  if (!Read(request, token, question, answer)) co_return;
  const core::Now now = worker_.engine().NowAt(request.now_ns, request.wall_ns);
  const decide::DecisionPtr decision =
      worker_.Begin(call_.attributes(), decide::Costs::Requests(), OptionsOf(question));
  if (const auto finished = worker_.FinishNow(*decision, now)) {
    const std::string_view here = call_.attributes().Get(policy::kPathAttribute);
    Conclude(request, question, here, *finished, answer);
    co_return;
  }
  // The attributes are the loop's: another call takes them while this one waits.
  const std::string path(call_.attributes().Get(policy::kPathAttribute));
  const Result<const decide::Verdict*> decided = co_await worker_.Finish(*decision, now);
  Conclude(request, question, path, decided, answer);
}

void ForwardAuth::Conclude(const net::HttpRequest& request, const Question& question,
                           std::string_view path, const Result<const decide::Verdict*>& decided,
                           http1::ResponseWriter& answer) {
  if (!decided) return AnswerError(request, decided.error(), answer);
  const http1::RequestHead& head = request.head;
  const decide::Verdict& verdict = **decided;
  // A call without a valid credential was charged to the limits of its address, so that guessing is
  // limited too.
  if (verdict.allowed && question.who.outcome != identity::IdentityOutcome::kOk) {
    return AnswerUnauthenticated(request, path, question.who.reason, answer);
  }
  const policy::AnswersConfig& config = worker_.policy_in_use().config().answers;
  const answers::RetryAdvice advice = answers::AdviseRetry(verdict, config, NextRandom(random_));
  answer.Begin(verdict.allowed ? 200 : question.deny_status);
  answer.Date(request.date);
  answer.Connection(head.keep_alive, head.minor_version);
  if (verdict.allowed) {
    answers::AppendLimitHeaders(verdict, config, advice, request.wall_ns, answer.out());
    return answer.Body({});
  }
  answers::FinishTooManyRequests(verdict, config, answers::ShapeOf(config, path), advice,
                                 {.wall_ns = request.wall_ns},
                                 head.method_id == http1::Method::kHead, answer);
}

void ForwardAuth::AnswerUnauthenticated(const net::HttpRequest& request, std::string_view path,
                                        std::string_view reason, http1::ResponseWriter& answer) {
  const policy::AnswersConfig& config = worker_.policy_in_use().config().answers;
  const answers::BodyShape shape = answers::ShapeOf(config, path);
  wire::Buffer body;
  answers::AppendErrorBody(shape, 401, reason, {}, body);
  BeginAnswer(request, 401, answers::ContentTypeOf(shape), answer);
  answer.TrustedFields("WWW-Authenticate: Bearer\r\nCache-Control: no-store\r\n");
  if (request.head.method_id == http1::Method::kHead)
    return answer.EndHeadOnly(static_cast<int64_t>(body.size()));
  answer.Body(body.View());
}

}  // namespace weir::doors
