#include "gateway/call.h"

#include <algorithm>
#include <optional>

#include "gateway/access_log.h"
#include "gateway/admission.h"
#include "gateway/forward.h"
#include "gateway/loop_state.h"
#include "gateway/model_inspection.h"
#include "gateway/own_answer.h"

namespace weir::gateway {
namespace {

constexpr int64_t kDiscardBytes =
    256 * 1024;  // Of a refused call's body, so that the connection can stay.
constexpr int64_t kDiscardNs = 5'000'000'000;
constexpr int64_t kGatherBytes =
    32 * 1024;  // A body that short is read whole before the upstream is troubled.

// A client's own id may name the call when it is short and visible.
bool IsUsableId(std::string_view id) {
  return !id.empty() && id.size() <= 128 && std::ranges::all_of(id, [](char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '\\';
  });
}

void Begin(LoopState& state, Client& client, Call& call, size_t head_bytes) {
  call.head_bytes = head_bytes;
  call.start_ns = state.loop().now_ns();
  call.wall_ns = state.loop().wall_ns();
  call.view = state.View();
  call.keep_alive = call.head.keep_alive && !state.draining();
  const std::string_view id = call.head.headers.Value(http1::FieldId::kXRequestId);
  if (IsUsableId(id)) {
    call.request_id = id;
  } else {
    state.MakeRequestId(call.made_request_id);
    call.request_id = {call.made_request_id.data(), call.made_request_id.size()};
  }
  if (call.view->timeouts.total_ns > 0)
    call.deadline_ns = call.start_ns + call.view->timeouts.total_ns;
  call.body.Start(client.stream, client.in.View().substr(head_bytes), call.head,
                  {.body_bytes_max = call.view->policy->config().bounds.body_bytes,
                   .progress_timeout_ns = call.view->timeouts.write_ns,
                   .deadline_ns = call.deadline_ns});
}

// Writes the answer in call.out, and takes what is left of the body out of the way.
Task<Ending> SendOwnAnswer(LoopState& state, Client& client, Call& call) {
  call.answer_begun = true;
  const net::IoResult sent = co_await client.stream.Write(call.out.View());
  if (!sent.ok()) co_return Ending::kAbort;
  if (!call.keep_alive) co_return Ending::kClose;
  if (call.body.done()) co_return Ending::kKeep;
  const bool gone = co_await call.body.Discard(kDiscardBytes, state.loop().now_ns() + kDiscardNs);
  co_return gone ? Ending::kKeep : Ending::kClose;
}

Task<Ending> Refuse(LoopState& state, Client& client, Call& call, int status,
                    std::string_view message) {
  call.outcome = "refused";
  if (!call.body.done()) call.keep_alive = false;
  RenderError(state, call, status, message);
  co_return co_await SendOwnAnswer(state, client, call);
}

// Reads a short body to its end: one write to the upstream then, and it can be repeated. Nothing
// when that went well.
Task<std::optional<Ending>> GatherShortBody(LoopState& state, Client& client, Call& call) {
  const RequestBody::Piece piece = co_await call.body.ReadWhole(kGatherBytes);
  std::optional<Ending> ending;
  switch (piece.state) {
    case RequestBody::State::kGone:
      call.client_gone = true;
      ending = Ending::kAbort;
      break;
    case RequestBody::State::kTimedOut:
      ending = co_await Refuse(state, client, call, 408, "the body did not arrive in time");
      break;
    case RequestBody::State::kRefused:
      ending = co_await Refuse(state, client, call, piece.status, piece.reason);
      break;
    default:
      break;
  }
  co_return ending;
}

Task<Ending> Run(LoopState& state, Client& client, Call& call) {
  if (call.body.fault().state == RequestBody::State::kRefused) {
    call.keep_alive = false;
    const RequestBody::Piece& fault = call.body.fault();
    co_return co_await Refuse(state, client, call, fault.status, fault.reason);
  }
  // A refusal that leaves a long body, or one that may never come, closes the connection after
  // itself.
  const bool keep_alive = call.keep_alive;
  if (!call.body.done() &&
      (call.body.awaits_continue() || call.head.content_length > kDiscardBytes)) {
    call.keep_alive = false;
  }
  Admission admission = Admit(state, client, call);
  if (admission == Admission::kNeedsModel) {
    const Inspection inspection = co_await InspectModel(state, client, call);
    if (inspection.client_gone) {
      call.client_gone = true;
      call.outcome = "refused";
      co_return Ending::kAbort;
    }
    if (inspection.status != 0)
      co_return co_await Refuse(state, client, call, inspection.status, inspection.message);
    admission = Admit(state, client, call);
  }
  if (admission == Admission::kWaits) admission = co_await AwaitAdmission(state, call);
  if (admission == Admission::kAnswered) co_return co_await SendOwnAnswer(state, client, call);
  call.keep_alive = keep_alive && !state.draining();
  if (!call.body.whole() && call.head.body == http1::BodyKind::kLength &&
      call.head.content_length <= kGatherBytes && !call.body.awaits_continue()) {
    const std::optional<Ending> ended = co_await GatherShortBody(state, client, call);
    if (ended) co_return *ended;
  }
  co_return co_await Forward(state, client, call);
}

}  // namespace

Task<Ending> HandleCall(LoopState& state, Client& client, Call& call, size_t head_bytes) {
  Begin(state, client, call, head_bytes);
  const Ending ending = co_await Run(state, client, call);
  state.ReleaseSlots(call);
  if (call.streaming) state.metrics().OnStream(state.shard(), -1);
  if (call.client_gone && !call.answer_begun) call.status = 499;
  LogCall(state, call);
  if (ending != Ending::kKeep) co_return ending;
  call.body.Finish(client.in, head_bytes);
  co_return Ending::kKeep;
}

}  // namespace weir::gateway
