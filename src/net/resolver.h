// Resolver: names to addresses by the system's resolver, on a thread of its own, remembered for a
// while.
//
// Thread safety: Resolve is called on a loop's thread; many loops may share one Resolver.
// Ownership: destroy it when its loops have stopped running, and before they are destroyed.
// Bounds: at most `max_pending` look-ups wait; answers are kept for `ttl_ns`, and used past it only
// while a newer look-up fails.
//
//   Resolver resolver;
//   Result<std::vector<Endpoint>> found = co_await resolver.Resolve(loop, "localhost", 8080);
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/endpoint.h"
#include "net/event_loop.h"
#include "weir/result.h"

namespace weir::net {

class Resolver {
 public:
  struct Options {
    int64_t ttl_ns = 30'000'000'000;  // Names are looked up again as they age.
    size_t max_pending = 256;
    size_t max_names = 4096;
  };
  Resolver() : Resolver(Options()) {}
  explicit Resolver(const Options& options);
  ~Resolver();

  // Every address of `host` (a name or a literal). kUnavailable when it has none,
  // kResourceExhausted when too many look-ups wait.
  Task<Result<std::vector<Endpoint>>> Resolve(EventLoop& loop, std::string host, int port);

 private:
  struct Pending;
  struct Known {
    std::vector<Endpoint> endpoints;
    int64_t looked_up_ns = 0;
  };
  void Work();
  static Result<std::vector<Endpoint>> LookUp(const std::string& host, int port);

  const Options options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // Guarded by mutex_, as are the next two.
  std::deque<std::shared_ptr<Pending>> queue_;
  std::map<std::pair<std::string, int>, Known> known_;
  std::thread thread_;
};

}  // namespace weir::net
