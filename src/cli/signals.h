// Signals: the process's signals as events of a loop, by signalfd. No code runs in a signal
// handler.
//
// Thread safety: Block before any other thread starts, so that none of them gets a signal; the rest
// on the loop's thread.
//
//   Signals::Block();
//   Result<std::unique_ptr<Signals>> signals = Signals::Watch(loop, [&](int number) { … });
#pragma once

#include <functional>
#include <memory>

#include "net/event_loop.h"
#include "weir/result.h"

namespace weir::cli {

class Signals final : private net::FdWatcher {
 public:
  using OnSignal = std::move_only_function<void(int number)>;

  // Holds back SIGTERM, SIGINT and SIGHUP in this thread and those that it starts, and ignores
  // SIGPIPE for good.
  static void Block();

  // Calls `on_signal` on the loop for each that arrives. kUnavailable when the kernel gives no
  // descriptor.
  static Result<std::unique_ptr<Signals>> Watch(net::EventLoop& loop, OnSignal on_signal);
  ~Signals();

 private:
  Signals(net::EventLoop& loop, int fd, OnSignal on_signal)
      : loop_(loop), fd_(fd), on_signal_(std::move(on_signal)) {}
  void OnEvents(uint32_t events) override;

  net::EventLoop& loop_;
  const int fd_;
  OnSignal on_signal_;
};

}  // namespace weir::cli
