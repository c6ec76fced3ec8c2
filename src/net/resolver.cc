#include "net/resolver.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "net/event.h"

namespace weir::net {

// One waiting look-up. The worker owns it too, so that a loop that ends in between leaves nothing
// dangling.
struct Resolver::Pending {
  std::string host;
  int port = 0;
  EventLoop* loop = nullptr;
  std::optional<Result<std::vector<Endpoint>>> answer;
  Event* done = nullptr;
};

Resolver::Resolver(const Options& options) : options_(options), thread_([this] { Work(); }) {}

Resolver::~Resolver() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

Task<Result<std::vector<Endpoint>>> Resolver::Resolve(EventLoop& loop, std::string host, int port) {
  if (auto literal =
          Endpoint::Parse((host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" +
                          std::to_string(port))) {
    co_return std::vector<Endpoint>{*literal};
  }
  auto pending = std::make_shared<Pending>();
  Event done(loop);
  {
    std::lock_guard lock(mutex_);
    const auto known = known_.find({host, port});
    if (known != known_.end() && loop.now_ns() - known->second.looked_up_ns < options_.ttl_ns) {
      co_return known->second.endpoints;
    }
    if (queue_.size() >= options_.max_pending) {
      co_return MakeError(ErrorCode::kResourceExhausted, "too many name look-ups wait");
    }
    pending->host = host;
    pending->port = port;
    pending->loop = &loop;
    pending->done = &done;
    queue_.push_back(pending);
  }
  wake_.notify_one();
  co_await done.Wait();
  std::lock_guard lock(mutex_);
  const auto known = known_.find({host, port});
  if (pending->answer->has_value()) {
    if (known != known_.end() || known_.size() < options_.max_names) {
      known_[{host, port}] = Known{**pending->answer, loop.now_ns()};
    }
  } else if (known != known_.end()) {
    co_return known->second
        .endpoints;  // The name server is away: the last known addresses are the best there is.
  }
  co_return std::move(*pending->answer);
}

void Resolver::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    std::shared_ptr<Pending> pending = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    pending->answer = LookUp(pending->host, pending->port);
    pending->loop->Post([pending] { pending->done->Set(); });
    lock.lock();
  }
}

Result<std::vector<Endpoint>> Resolver::LookUp(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failure != 0)
    return MakeError(ErrorCode::kUnavailable,
                     "cannot resolve " + host + ": " + gai_strerror(failure));
  std::vector<Endpoint> endpoints;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    endpoints.push_back(Endpoint::FromSockaddr(one->ai_addr, one->ai_addrlen));
  }
  freeaddrinfo(found);
  return endpoints;
}

}  // namespace weir::net
