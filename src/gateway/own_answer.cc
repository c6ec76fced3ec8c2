#include "gateway/own_answer.h"

#include "answers/refusal.h"
#include "gateway/loop_state.h"
#include "net/http_service.h"
#include "wire/http1/response_writer.h"
#include "wire/uri/canonical_path.h"

namespace weir::gateway {
namespace {

// The part that all of them share: status line, date, connection, request id, CORS.
void Begin(LoopState& state, Call& call, int status, http1::ResponseWriter& writer) {
  call.status = status;
  call.out.Clear();
  writer.Begin(status);
  writer.Date(net::HttpDateOf(state.loop().wall_ns()));
  writer.Connection(call.keep_alive, call.head.minor_version);
  if (!call.request_id.empty()) writer.Field("x-request-id", call.request_id);
}

const policy::AnswersConfig& ConfigOf(const Call& call) {
  return call.view->policy->config().answers;
}

answers::BodyShape ShapeOf(const Call& call) {
  return answers::ShapeOf(ConfigOf(call), call.path.empty() ? call.head.path : call.path);
}

}  // namespace

void RenderError(LoopState& state, Call& call, int status, std::string_view message) {
  http1::ResponseWriter writer(call.out);
  Begin(state, call, status, writer);
  call.view->cors.AppendFields(call.head.headers.Value(http1::FieldId::kOrigin), call.out);
  writer.TrustedFields(call.limit_fields.View());
  const answers::BodyShape shape = ShapeOf(call);
  writer.Field("Content-Type", answers::ContentTypeOf(shape));
  writer.Field("Cache-Control", "no-store");
  if (status == 401) writer.Field("WWW-Authenticate", "Bearer");
  if (status == 405) writer.Field("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
  if (call.head.method_id == http1::Method::kHead) {
    wire::Buffer body;
    answers::AppendErrorBody(shape, status, message, call.request_id, body);
    writer.EndHeadOnly(static_cast<int64_t>(body.size()));
    return;
  }
  writer.BeginBody();
  answers::AppendErrorBody(shape, status, message, call.request_id, call.out);
  writer.EndBody();
}

void RenderDenial(LoopState& state, Call& call, const decide::Verdict& verdict,
                  const answers::RetryAdvice& advice) {
  http1::ResponseWriter writer(call.out);
  Begin(state, call, 429, writer);
  call.view->cors.AppendFields(call.head.headers.Value(http1::FieldId::kOrigin), call.out);
  answers::FinishTooManyRequests(
      verdict, ConfigOf(call), ShapeOf(call), advice,
      {.wall_ns = state.loop().wall_ns(), .model = call.model, .request_id = call.request_id},
      call.head.method_id == http1::Method::kHead, writer);
}

void RenderPreflight(LoopState& state, Call& call) {
  http1::ResponseWriter writer(call.out);
  Begin(state, call, 204, writer);
  call.view->cors.AppendPreflightFields(call.head, call.out);
  writer.End();
}

void RenderHeadError(LoopState& state, int status, std::string_view reason, wire::Buffer& out) {
  out.Clear();
  http1::ResponseWriter writer(out);
  writer.Begin(status);
  writer.Date(net::HttpDateOf(state.loop().wall_ns()));
  writer.Connection(false, 1);
  writer.Field("Content-Type", answers::ContentTypeOf(answers::BodyShape::kProblem));
  writer.Field("Cache-Control", "no-store");
  writer.BeginBody();
  answers::AppendErrorBody(answers::BodyShape::kProblem, status, reason, {}, out);
  writer.EndBody();
}

}  // namespace weir::gateway
