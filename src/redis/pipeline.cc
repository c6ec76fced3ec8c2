#include "redis/pipeline.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

namespace weir::redis {
namespace {

constexpr size_t kKeepBufferBytes = 256 << 10;

}  // namespace

Pipeline::~Pipeline() {
  for (Place& place : under_way_) {
    if (place.call == nullptr) continue;
    place.call->pipeline_ = nullptr;
    place.call->place_ = nullptr;
  }
}

int64_t Pipeline::Send(CallQueue& waiting, size_t bytes_max) {
  assert(out_.empty());
  int64_t earliest_ns = INT64_MAX;
  while (!waiting.empty() && has_room() && out_.size() < bytes_max) {
    Call& call = *waiting.front();
    waiting.Remove(call);
    const size_t before = out_.size();
    call.request.AppendTo(out_);
    encoded_ += out_.size() - before;
    if (call.request.asking) {
      under_way_.push_back({.deadline_ns = call.deadline_ns, .end = encoded_});
    }
    under_way_.push_back(
        {.call = &call, .deadline_ns = call.deadline_ns, .end = encoded_, .is_call = true});
    call.state_ = Call::State::kUnderWay;
    call.was_sent_ = true;
    call.pipeline_ = this;
    call.place_ = &under_way_.back();
    earliest_ns = std::min(earliest_ns, call.deadline_ns);
  }
  return earliest_ns;
}

int64_t Pipeline::EarliestDeadlineNs() const {
  int64_t earliest_ns = INT64_MAX;
  for (const Place& place : under_way_) earliest_ns = std::min(earliest_ns, place.deadline_ns);
  return earliest_ns;
}

void Pipeline::Wrote(size_t bytes) {
  written_ += bytes;
  out_.Consume(bytes);
  if (out_.empty()) out_.ClearAndShrink(kKeepBufferBytes);
}

void Pipeline::Abandon(Call& call) {
  Place& place = *static_cast<Place*>(call.place_);
  place.call = nullptr;
  place.on_late = std::move(call.on_late);
  place.on_late_error = std::move(call.on_late_error);
  call.pipeline_ = nullptr;
  call.place_ = nullptr;
}

Result<void> Pipeline::Receive(std::string_view bytes) {
  for (;;) {
    switch (parser_.Next(bytes)) {
      case resp::ReplyParser::State::kNeedMore:
        return {};
      case resp::ReplyParser::State::kBroken:
        return MakeError(ErrorCode::kUnavailable, std::string(parser_.fault()));
      case resp::ReplyParser::State::kValue:
        break;
    }
    resp::Value reply = parser_.Take();
    if (reply.type == resp::Type::kPush) continue;
    if (under_way_.empty()) {
      return MakeError(ErrorCode::kUnavailable,
                       reply.IsError() ? "the server ended the connection with an error"
                                       : "a reply that answers nothing");
    }
    OnReply(std::move(reply));
  }
}

void Pipeline::OnReply(resp::Value reply) {
  Place place = std::move(under_way_.front());
  under_way_.pop_front();
  if (place.call != nullptr) {
    place.call->pipeline_ = nullptr;
    place.call->place_ = nullptr;
    ++replies_;
    place.call->FinishWith(std::move(reply));
  } else if (place.is_call) {
    ++replies_;
    ++late_replies_;
    if (reply.IsError()) {
      if (place.on_late_error) place.on_late_error(reply.text);
    } else if (place.on_late) {
      place.on_late(std::move(reply));
    }
  }
}

void Pipeline::Cancel() {
  // By index: ending a call changes its place, not the number of places.
  for (size_t i = 0; i < under_way_.size(); ++i) {
    if (under_way_[i].call != nullptr) under_way_[i].call->Finish(Call::Outcome::kCancelled);
  }
}

void Pipeline::Fail(CallQueue& waiting, const Error& fault) {
  std::deque<Place> ended = std::exchange(under_way_, {});
  out_.Clear();
  for (auto place = ended.rbegin(); place != ended.rend(); ++place) {
    if (place->call == nullptr || place->end <= written_) continue;
    place->call->pipeline_ = nullptr;
    place->call->place_ = nullptr;
    place->call->was_sent_ = false;
    waiting.PushFront(*place->call);
    place->call = nullptr;
  }
  while (!ended.empty()) {
    Place& place = ended.front();
    if (place.call != nullptr) place.call->Finish(Call::Outcome::kLost, fault);
    ended.pop_front();
  }
}

}  // namespace weir::redis
