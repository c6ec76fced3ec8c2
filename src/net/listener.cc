#include "net/listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace weir::net {
namespace {

constexpr int kBacklog = 4096;
constexpr int kAcceptsPerEvent =
    64;  // So that a flood of connections does not starve those that are open.
constexpr int64_t kPauseNs = 100'000'000;

std::unexpected<Error> Failed(const Endpoint& endpoint) {
  const int reason = errno;
  std::string message = endpoint.ToString() + ": " + std::strerror(reason);
  if (reason == EADDRINUSE)
    message += "; another process listens there: stop it, or choose another address under `listen`";
  if (reason == EACCES)
    message += "; ports below 1024 need the right to bind them (CAP_NET_BIND_SERVICE)";
  return MakeError(ErrorCode::kUnavailable, std::move(message));
}

// A socket file whose owner is gone refuses connections; only then may it be replaced.
void RemoveStaleFile(const Endpoint& endpoint) {
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return;
  if (connect(probe, endpoint.address(), endpoint.length()) < 0 && errno == ECONNREFUSED) {
    unlink(reinterpret_cast<const sockaddr_un*>(endpoint.address())->sun_path);
  }
  close(probe);
}

// SO_REUSEPORT, which the loops of one process need, would let a second process of the same user
// share the port without a word, and every limit would then count twice. A bind without it fails
// while anybody listens there.
Result<void> RefuseSecondProcess(const Endpoint& endpoint) {
  if (endpoint.is_unix() || endpoint.port() == 0) return {};
  const int probe = socket(endpoint.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return Failed(endpoint);
  const int on = 1;
  setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  Result<void> free;
  if (bind(probe, endpoint.address(), endpoint.length()) < 0) free = Failed(endpoint);
  close(probe);
  return free;
}

}  // namespace

Result<std::unique_ptr<Listener>> Listener::Open(EventLoop& loop, const Endpoint& endpoint,
                                                 OnAccept on_accept) {
  if (auto free = RefuseSecondProcess(endpoint); !free) return std::unexpected(free.error());
  return Bind(loop, endpoint, std::move(on_accept));
}

Result<std::unique_ptr<Listener>> Listener::Bind(EventLoop& loop, const Endpoint& endpoint,
                                                 OnAccept on_accept) {
  const int fd = socket(endpoint.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed(endpoint);
  const int on = 1;
  if (endpoint.is_unix()) {
    RemoveStaleFile(endpoint);
  } else {
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (bind(fd, endpoint.address(), endpoint.length()) < 0 || listen(fd, kBacklog) < 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) < 0) {
    auto failed = Failed(endpoint);
    close(fd);
    return failed;
  }
  const Endpoint real = endpoint.is_unix()
                            ? endpoint
                            : Endpoint::FromSockaddr(reinterpret_cast<sockaddr*>(&bound), length);
  std::unique_ptr<Listener> listener(new Listener(loop, fd, real, std::move(on_accept)));
  listener->owns_file_ = endpoint.is_unix();
  if (auto watched = loop.Watch(fd, EPOLLIN | EPOLLEXCLUSIVE, listener.get()); !watched) {
    return std::unexpected(watched.error());
  }
  return listener;
}

Result<std::unique_ptr<Listener>> Listener::Share(EventLoop& loop, OnAccept on_accept) const {
  if (!endpoint_.is_unix()) return Bind(loop, endpoint_, std::move(on_accept));
  const int fd = dup(fd_);
  if (fd < 0) return Failed(endpoint_);
  std::unique_ptr<Listener> listener(new Listener(loop, fd, endpoint_, std::move(on_accept)));
  if (auto watched = loop.Watch(fd, EPOLLIN | EPOLLEXCLUSIVE, listener.get()); !watched) {
    return std::unexpected(watched.error());
  }
  return listener;
}

Listener::Listener(EventLoop& loop, int fd, const Endpoint& endpoint, OnAccept on_accept)
    : loop_(loop),
      fd_(fd),
      endpoint_(endpoint),
      on_accept_(std::move(on_accept)),
      resume_(loop, [this] {
        if (fd_ >= 0) (void)loop_.Watch(fd_, EPOLLIN | EPOLLEXCLUSIVE, this);
      }) {}

Listener::~Listener() { Close(); }

void Listener::Close() {
  if (fd_ < 0) return;
  resume_.Cancel();
  loop_.Unwatch(fd_, this);
  close(fd_);
  fd_ = -1;
  if (owns_file_) unlink(reinterpret_cast<const sockaddr_un*>(endpoint_.address())->sun_path);
}

void Listener::PauseAccepting() {
  loop_.Unwatch(fd_, this);
  resume_.ArmAt(loop_.now_ns() + kPauseNs);
}

void Listener::OnEvents(uint32_t) {
  for (int i = 0; i < kAcceptsPerEvent && fd_ >= 0; ++i) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    const int fd =
        accept4(fd_, reinterpret_cast<sockaddr*>(&peer), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        PauseAccepting();
      return;
    }
    if (!endpoint_.is_unix()) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    auto stream = Stream::Adopt(loop_, fd,
                                Endpoint::FromSockaddr(reinterpret_cast<sockaddr*>(&peer), length));
    if (stream) on_accept_(std::move(*stream));
  }
}

}  // namespace weir::net
