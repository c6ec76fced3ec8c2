// What the parts of one client share: its loop, options, dialer, deadlines and counters.
//
// Thread safety: the loop's thread only. Ownership: held by the client and by every task that still
// runs for it.
#pragma once

#include <coroutine>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/event_loop.h"
#include "redis/call.h"
#include "redis/client.h"
#include "redis/client_options.h"
#include "redis/deadline_wheel.h"
#include "redis/dialer.h"

namespace weir::redis {

struct Shared {
  Shared(net::EventLoop& the_loop, net::Resolver& resolver, ClientOptions the_options)
      : loop(the_loop),
        options(std::move(the_options)),
        dialer(the_loop, resolver, options.tls, options.insecure),
        wheel(the_loop.now_ns()),
        timer(the_loop, [this] { Expire(); }) {}

  // The call ends with kDeadline when its deadline comes first.
  void Watch(Call& call) {
    if (call.state() == Call::State::kDone) return;
    wheel.Add(call, call.deadline_ns);
    if (timer.armed() && armed_ns <= call.deadline_ns) return;
    armed_ns = wheel.NextNs();
    timer.ArmAt(armed_ns);
  }

  void Notice(std::string_view sentence) {
    if (options.on_notice) options.on_notice(sentence);
  }

  net::EventLoop& loop;
  const ClientOptions options;
  Dialer dialer;
  DeadlineWheel wheel;
  net::Timer timer;
  int64_t armed_ns = 0;
  std::string last_fault;
  uint64_t connects = 0;
  uint64_t connects_failed = 0;
  uint64_t late_replies = 0;  // Of connections that have ended.
  uint64_t topology_changes = 0;

 private:
  void Expire() {
    wheel.Expire(loop.now_ns(), [](DeadlineWheel::Entry& entry) {
      static_cast<Call&>(entry).Finish(Call::Outcome::kDeadline);
    });
    armed_ns = wheel.NextNs();
    if (armed_ns != DeadlineWheel::kNever) timer.ArmAt(armed_ns);
  }
};

// A call that a coroutine waits for.
class AwaitedCall final : public Call {
 public:
  AwaitedCall(net::EventLoop& loop, const Request& what, int64_t deadline)
      : Call(what, deadline), loop_(loop) {}

  bool await_ready() const noexcept { return state() == State::kDone; }
  void await_suspend(std::coroutine_handle<> caller) noexcept { caller_ = caller; }
  void await_resume() const noexcept {}

 private:
  void Done() override {
    if (caller_) loop_.ResumeSoon(caller_);
  }

  net::EventLoop& loop_;
  std::coroutine_handle<> caller_;
};

}  // namespace weir::redis
