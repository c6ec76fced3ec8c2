#include "gateway/admission.h"

#include <algorithm>

#include "answers/limit_headers.h"
#include "gateway/loop_state.h"
#include "gateway/own_answer.h"
#include "gateway/upstream_request.h"
#include "wire/uri/canonical_path.h"

namespace weir::gateway {
namespace {

using http1::FieldId;
using http1::Method;

Admission Refuse(LoopState& state, Call& call, int status, std::string_view message) {
  call.outcome = "refused";
  RenderError(state, call, status, message);
  return Admission::kAnswered;
}

// Without a port, without the last dot, in lower case: the one form that limits count under.
void SetHost(std::string_view host, std::string& out) {
  if (host.starts_with('[')) {
    host = host.substr(0, host.find(']') + 1);
  } else {
    host = host.substr(0, host.find(':'));
  }
  if (host.ends_with('.')) host.remove_suffix(1);
  out.assign(host);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
}

void SetTarget(const policy::Route& route, const Call& call, std::string& target) {
  target.clear();
  policy::AppendUpstreamPath(route, call.path, target);
  if (call.head.has_query) {
    target += '?';
    target += call.head.query;
  }
}

void Identify(LoopState& state, const Client& client, Call& call) {
  const identity::IdentityResolver& resolver = state.worker().identity();
  call.trusted_peer = resolver.options().trusted_proxies.Contains(client.address);
  identity::IdentityRequest request(resolver, client.address);
  for (const http1::HeaderField& field : call.head.headers) request.Offer(field.name, field.value);
  call.identity =
      resolver.Resolve(request, state.worker().identity_cache(), state.loop().wall_ns());
}

void SetAttributes(const Call& call, policy::Attributes& attributes) {
  attributes.Set(policy::kClientAttribute, call.identity.client.view());
  attributes.Set(policy::kIpAttribute, call.identity.ip.view());
  attributes.SetAddress(call.identity.address.bits());
  attributes.Set(policy::kMethodAttribute, call.head.method);
  attributes.Set(policy::kHostAttribute, call.host);
  attributes.Set(policy::kPathAttribute, uri::WithoutTrailingSlash(call.path));
  for (const HeaderAttribute& header : call.view->headers) {
    const http1::HeaderField* field = header.id != FieldId::kOther
                                          ? call.head.headers.Find(header.id)
                                          : call.head.headers.Find(header.name);
    if (field != nullptr) attributes.Set(header.index, field->value);
  }
  if (!call.model.empty()) attributes.Set(policy::kModelAttribute, call.model);
}

// What can be refused for the head alone.
const char* FaultOfHead(const Call& call, int& status) {
  const http1::RequestHead& head = call.head;
  // Upstreams that take `post` for POST would serve it past the limits on POST.
  if (head.method_id == Method::kOther &&
      std::ranges::any_of(head.method, [](char c) { return c >= 'a' && c <= 'z'; })) {
    status = 501;
    return "methods are written in capitals";
  }
  if (head.method_id == Method::kConnect || head.method_id == Method::kTrace) {
    status = 405;  // TRACE would show the upstream's credential to the client.
    return "this method is not supported here";
  }
  if (head.content_length > call.view->policy->config().bounds.body_bytes) {
    status = 413;
    return "the body is too large";
  }
  return nullptr;
}

bool IsKnown(const Call& call) { return call.identity.outcome == identity::IdentityOutcome::kOk; }

Admission Conclude(LoopState& state, Call& call, const Result<const decide::Verdict*>& decided) {
  if (!decided) return Refuse(state, call, 503, "too many calls are under way");
  const decide::Verdict& verdict = **decided;
  const policy::AnswersConfig& config = call.view->policy->config().answers;
  const answers::RetryAdvice advice =
      answers::AdviseRetry(verdict, config, config.retry_jitter.count() > 0 ? state.Random() : 0);
  call.source = verdict.source;
  if (verdict.binding != nullptr) call.limit.assign(verdict.binding->name);
  if (!verdict.allowed) {
    call.outcome = "denied";
    RenderDenial(state, call, verdict, advice);
    return Admission::kAnswered;
  }
  answers::AppendLimitHeaders(verdict, config, advice, state.loop().wall_ns(), call.limit_fields);
  if (verdict.reservation) {
    call.reservation = verdict.reservation;
    state.HoldSlots(call);
  }
  if (!IsKnown(call)) return Refuse(state, call, 401, call.identity.reason);
  call.outcome = "allowed";
  SetTarget(*call.route, call, call.target);
  call.upgrade = MayUpgrade(call.head);
  return Admission::kForward;
}

Admission Decide(LoopState& state, Call& call, const policy::Attributes& attributes) {
  const decide::DecideOptions options{.door = metrics::Door::kGateway,
                                      .missing = policy::Missing::kEmpty,
                                      // A call that ends in 401 is charged, so that guessing keys
                                      // is limited; it holds no parallel slot.
                                      .reserve_ttl_ns = IsKnown(call) ? LoopState::kSlotTtlNs : 0,
                                      .reserve_parallel_only = true,
                                      .client = call.identity.client.view(),
                                      .client_hashed = true};
  const decide::Costs costs = decide::Costs::Requests();
  if (state.worker().waits()) {
    call.decision = state.worker().Begin(attributes, costs, options);
    const auto finished = state.worker().FinishNow(*call.decision, state.Now());
    if (!finished) return Admission::kWaits;
    const Admission admission = Conclude(state, call, *finished);
    call.decision.reset();
    return admission;
  }
  return Conclude(state, call, state.worker().Decide(attributes, costs, options, state.Now()));
}

}  // namespace

Admission Admit(LoopState& state, const Client& client, Call& call) {
  call.view = state.View();
  if (call.view->cors.IsPreflight(call.head)) {
    call.outcome = "preflight";
    RenderPreflight(state, call);
    return Admission::kAnswered;
  }
  int status = 0;
  if (const char* fault = FaultOfHead(call, status)) return Refuse(state, call, status, fault);

  const uri::CanonicalOutcome canonical = uri::CanonicalPath(call.head.path, call.path_scratch);
  if (!canonical.ok()) return Refuse(state, call, 400, canonical.error);
  call.path = canonical.path;
  SetHost(call.head.host, call.host);
  call.route = call.view->policy->routes().Find(call.head.method, call.host, call.path);
  if (call.route == nullptr) return Refuse(state, call, 404, "no route for this path");
  call.upstream = &call.view->upstreams[static_cast<size_t>(call.route->upstream)];

  Identify(state, client, call);
  policy::Attributes attributes;
  SetAttributes(call, attributes);
  if (!call.model_known && !call.body.none() && call.view->NeedsModel(attributes))
    return Admission::kNeedsModel;
  return Decide(state, call, attributes);
}

Task<Admission> AwaitAdmission(LoopState& state, Call& call) {
  const Result<const decide::Verdict*> decided =
      co_await state.worker().Finish(*call.decision, state.Now());
  const Admission admission = Conclude(state, call, decided);
  call.decision.reset();
  co_return admission;
}

}  // namespace weir::gateway
