#include "cli/signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace weir::cli {
namespace {

sigset_t Handled() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  return set;
}

}  // namespace

void Signals::Block() {
  const sigset_t set = Handled();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

Result<std::unique_ptr<Signals>> Signals::Watch(net::EventLoop& loop, OnSignal on_signal) {
  const sigset_t set = Handled();
  const int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (fd < 0)
    return MakeError(ErrorCode::kUnavailable, std::string("signalfd: ") + std::strerror(errno));
  std::unique_ptr<Signals> signals(new Signals(loop, fd, std::move(on_signal)));
  if (auto watched = loop.Watch(fd, EPOLLIN, signals.get()); !watched)
    return std::unexpected(watched.error());
  return signals;
}

Signals::~Signals() {
  loop_.Unwatch(fd_, this);
  close(fd_);
}

void Signals::OnEvents(uint32_t) {
  signalfd_siginfo info;
  while (read(fd_, &info, sizeof info) == sizeof info) on_signal_(static_cast<int>(info.ssi_signo));
}

}  // namespace weir::cli
