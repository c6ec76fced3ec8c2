#include "net/connector.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "net/event.h"

namespace weir::net {
namespace {

// Wakes once the socket has connected or failed.
class ConnectWatcher final : public FdWatcher {
 public:
  explicit ConnectWatcher(EventLoop& loop) : event(loop) {}
  void OnEvents(uint32_t) override { event.Set(); }
  Event event;
};

}  // namespace

Task<Result<std::unique_ptr<Stream>>> Connect(EventLoop& loop, Endpoint endpoint,
                                              int64_t deadline_ns) {
  const auto failed = [&](int reason) {
    return MakeError(ErrorCode::kUnavailable,
                     "connect to " + endpoint.ToString() + ": " + std::strerror(reason));
  };
  const int fd = socket(endpoint.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) co_return failed(errno);
  if (!endpoint.is_unix()) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  if (connect(fd, endpoint.address(), endpoint.length()) < 0) {
    if (errno != EINPROGRESS) {
      const int reason = errno;
      close(fd);
      co_return failed(reason);
    }
    ConnectWatcher watcher(loop);
    if (auto watched = loop.Watch(fd, EPOLLOUT | EPOLLONESHOT, &watcher); !watched) {
      close(fd);
      co_return std::unexpected(watched.error());
    }
    const bool in_time = co_await watcher.event.WaitUntil(deadline_ns);
    loop.Unwatch(fd, &watcher);
    if (!in_time) {
      close(fd);
      co_return MakeError(ErrorCode::kDeadlineExceeded,
                          "connect to " + endpoint.ToString() + ": no answer in time");
    }
    int reason = 0;
    socklen_t length = sizeof reason;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &length);
    if (reason != 0) {
      close(fd);
      co_return failed(reason);
    }
  }
  co_return Stream::Adopt(loop, fd, endpoint);
}

}  // namespace weir::net
