#include "redis/call.h"

#include <cassert>

#include "redis/pipeline.h"
#include "wire/resp/command_writer.h"

namespace weir::redis {
namespace {

constexpr size_t kHeaderBytes = 24;  // "*1234567\r\n" and the like.

}  // namespace

void Request::AppendTo(wire::Buffer& out) const {
  if (asking) {
    const std::string_view ask[] = {"ASKING"};
    resp::AppendCommand(out, ask);
  }
  if (!words.empty()) {
    resp::AppendCommand(out, words);
    return;
  }
  resp::BeginCommand(out, 3 + keys.size() + args.size());
  resp::AppendWord(out, send_text ? std::string_view("EVAL") : std::string_view("EVALSHA"));
  resp::AppendWord(out, send_text ? text : sha1);
  resp::AppendWord(out, static_cast<int64_t>(keys.size()));
  for (const std::string_view key : keys) resp::AppendWord(out, key);
  for (const std::string_view arg : args) resp::AppendWord(out, arg);
}

size_t Request::Bytes() const {
  size_t bytes = 4 * kHeaderBytes;  // The command's name, counts, ASKING.
  for (const std::string_view word : words) bytes += resp::WordBytes(word);
  if (words.empty()) bytes += resp::WordBytes(send_text ? text : sha1);
  for (const std::string_view key : keys) bytes += resp::WordBytes(key);
  for (const std::string_view arg : args) bytes += resp::WordBytes(arg);
  return bytes;
}

Call::~Call() { Detach(); }

void Call::Detach() {
  Leave();
  if (queue_ != nullptr) queue_->Remove(*this);
  if (pipeline_ != nullptr) pipeline_->Abandon(*this);
}

void Call::Finish(Outcome outcome, Error fault) {
  assert(state_ != State::kDone);
  Detach();
  state_ = State::kDone;
  outcome_ = outcome;
  fault_ = std::move(fault);
  Done();
}

void Call::FinishWith(resp::Value reply) {
  reply_ = std::move(reply);
  Finish(Outcome::kReply);
}

CallQueue::~CallQueue() { assert(empty()); }

void CallQueue::PushBack(Call& call) {
  assert(call.queue_ == nullptr && call.pipeline_ == nullptr);
  call.state_ = Call::State::kWaiting;
  call.queue_ = this;
  call.previous_ = last_;
  call.next_ = nullptr;
  (last_ != nullptr ? last_->next_ : first_) = &call;
  last_ = &call;
  ++size_;
}

void CallQueue::PushFront(Call& call) {
  assert(call.queue_ == nullptr && call.pipeline_ == nullptr);
  call.state_ = Call::State::kWaiting;
  call.queue_ = this;
  call.previous_ = nullptr;
  call.next_ = first_;
  (first_ != nullptr ? first_->previous_ : last_) = &call;
  first_ = &call;
  ++size_;
}

void CallQueue::Remove(Call& call) {
  assert(call.queue_ == this);
  (call.previous_ != nullptr ? call.previous_->next_ : first_) = call.next_;
  (call.next_ != nullptr ? call.next_->previous_ : last_) = call.previous_;
  call.previous_ = call.next_ = nullptr;
  call.queue_ = nullptr;
  --size_;
}

void CallQueue::FinishAll(Call::Outcome outcome, const Error& fault) {
  // Done may bring new calls; those are not among the ones meant.
  for (size_t left = size_; left > 0 && first_ != nullptr; --left) first_->Finish(outcome, fault);
}

}  // namespace weir::redis
