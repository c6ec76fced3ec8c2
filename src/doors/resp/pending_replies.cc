#include "doors/resp/pending_replies.h"

#include <utility>

#include "base/when_all.h"
#include "doors/check_api/decision_json.h"
#include "doors/resp/connection_commands.h"
#include "doors/resp/throttle.h"

namespace weir::doors::resp {

void PendingReplies::Add(decide::DecisionPtr decision, bool throttle, size_t at) {
  Waiting& waiting = waiting_.emplace_back();
  waiting.at = at;
  waiting.throttle = throttle;
  waiting.decision = std::move(decision);
  ends_ = false;
}

void PendingReplies::Add(ReservationEnd end, size_t at) {
  Waiting& waiting = waiting_.emplace_back();
  waiting.at = at;
  waiting.end = std::move(end);
  ends_ = true;
}

bool PendingReplies::FinishNow(Waiting& waiting, core::Now now) {
  if (!waiting.decision) return false;
  const auto finished = worker_.FinishNow(*waiting.decision, now);
  if (finished) waiting.verdict = *finished;
  return finished.has_value();
}

Task<void> PendingReplies::Finish(Waiting& waiting, core::Now now) {
  if (waiting.decision) {
    waiting.verdict = co_await worker_.Finish(*waiting.decision, now);
  } else {
    waiting.settled = co_await checks_.SettleLater(waiting.end, now);
  }
}

Task<void> PendingReplies::Await(core::Now now, wire::Buffer& out) {
  if (empty()) co_return;
  std::vector<Task<void>> tasks;
  tasks.reserve(waiting_.size());
  for (Waiting& waiting : waiting_) {
    if (!FinishNow(waiting, now)) tasks.push_back(Finish(waiting, now));
  }
  if (!tasks.empty()) co_await WhenAll(std::move(tasks));
  wire::Buffer whole(out.size() + 256 * waiting_.size());
  size_t copied = 0;
  for (const Waiting& waiting : waiting_) {
    whole.Append(out.View().substr(copied, waiting.at - copied));
    copied = waiting.at;
    Append(waiting, whole);
  }
  whole.Append(out.View().substr(copied));
  out = std::move(whole);
  waiting_.clear();
}

void PendingReplies::Append(const Waiting& waiting, wire::Buffer& out) {
  weir::resp::ReplyWriter reply(out, 2);  // Bulk strings, integers and errors: alike in both.
  const bool decided = waiting.decision != nullptr;
  if (decided && !waiting.verdict) return AppendError(waiting.verdict.error(), reply);
  if (!decided && !waiting.settled) return AppendError(waiting.settled.error(), reply);
  if (waiting.throttle) return AppendThrottle(**waiting.verdict, reply);
  json_.Clear();
  if (decided) {
    AppendDecision(**waiting.verdict, json_);
  } else {
    AppendSettled(waiting.end.reservation, *waiting.settled, json_);
  }
  reply.Bulk(json_.View());
}

}  // namespace weir::doors::resp
