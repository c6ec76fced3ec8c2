// One command on its way: what to send, where it is, how it ended. The pieces that queues and
// pipelines are made of.
//
// Thread safety: the loop's thread only. Ownership: a Call belongs to the coroutine that waits for
// it and leaves its queue, its pipeline and the wheel when it is destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "redis/client_options.h"
#include "redis/deadline_wheel.h"
#include "wire/buffer.h"
#include "wire/resp/value.h"

namespace weir::redis {

class Pipeline;

// What to send. Views must stay valid as long as the call.
struct Request {
  std::span<const std::string_view> words;  // A plain command; or, when empty, a script:
  std::string_view sha1, text;
  std::span<const std::string_view> keys, args;
  bool send_text = false;  // EVAL rather than EVALSHA.
  bool asking = false;     // ASKING first.

  void AppendTo(wire::Buffer& out) const;
  size_t Bytes() const;  // At least what AppendTo adds.
};

class Call : public DeadlineWheel::Entry {
 public:
  enum class State : uint8_t { kIdle, kWaiting, kUnderWay, kDone };
  enum class Outcome : uint8_t {
    kReply,      // reply
    kLost,       // Sent, and the connection ended: what became of it is unknown. fault
    kNotSent,    // No connection. fault
    kRoute,      // Not sent: find out anew where to.
    kDeadline,   // See was_sent.
    kCancelled,  // The client is gone. See was_sent.
  };
  using OnLate = std::move_only_function<void(resp::Value)>;
  using OnLateError = std::move_only_function<void(std::string_view text)>;

  Call(const Request& what, int64_t deadline) : request(what), deadline_ns(deadline) {}
  virtual ~Call();

  const Request& request;
  const int64_t deadline_ns;
  OnLate on_late;             // The answer, when it comes after the deadline and is not an error.
  OnLateError on_late_error;  // When it is.

  State state() const { return state_; }
  Outcome outcome() const { return outcome_; }
  bool was_sent() const { return was_sent_; }
  resp::Value& reply() { return reply_; }
  const Error& fault() const { return fault_; }

  // Ends the call, wherever it is. Once.
  void Finish(Outcome outcome, Error fault = {});
  void FinishWith(resp::Value reply);

 protected:
  // The call has ended. May not destroy it at once.
  virtual void Done() = 0;

 private:
  friend class CallQueue;
  friend class Pipeline;
  void Detach();

  State state_ = State::kIdle;
  Outcome outcome_ = Outcome::kReply;
  bool was_sent_ = false;
  class CallQueue* queue_ = nullptr;  // While it waits.
  Call* previous_ = nullptr;
  Call* next_ = nullptr;
  Pipeline* pipeline_ = nullptr;  // While it is under way.
  void* place_ = nullptr;         // In that pipeline.
  resp::Value reply_;
  Error fault_;
};

// Calls that wait to be sent, first come first served. Does not own them.
class CallQueue {
 public:
  CallQueue() = default;
  ~CallQueue();
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  void PushBack(Call& call);
  void PushFront(Call& call);
  Call* front() const { return first_; }
  Call* Next(const Call& call) const { return call.next_; }
  void Remove(Call& call);
  bool empty() const { return first_ == nullptr; }
  size_t size() const { return size_; }
  // Ends all of them.
  void FinishAll(Call::Outcome outcome, const Error& fault);

 private:
  Call* first_ = nullptr;
  Call* last_ = nullptr;
  size_t size_ = 0;
};

}  // namespace weir::redis
