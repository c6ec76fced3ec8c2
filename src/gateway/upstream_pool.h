// UpstreamPool: the connections of one loop to one named upstream.
//
// An upstream is a list of URLs; each URL's name stands for one or more addresses, looked up again
// as they age. A call goes to the address with the fewest calls under way, by lot among equals, on
// a kept-alive connection where there is a quiet one. An address that refuses is avoided for a
// while, unless all do.
//
// Thread safety: the loop's thread only.
// Ownership: shared by the policies that name it (a reload keeps the pool whose URLs and TLS
// settings stayed) and by the calls under way. Borrows the loop and the resolver. Bounds:
// kIdlePerAddress kept connections for each address, for kIdleNs at most; kMaxAddresses addresses.
//
//   std::optional<Loan> loan = pool->TakeIdle();                       // No wait, no allocation.
//   if (!loan) opened = co_await pool->Open(deadline_ns);
//   ...
//   pool->Return(std::move(*loan));                                    // or
//   pool->Drop(std::move(*loan))
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "metrics/weir_metrics.h"
#include "net/event_loop.h"
#include "net/resolver.h"
#include "net/stream.h"
#include "net/tls.h"
#include "policy/config.h"
#include "weir/result.h"

namespace weir::gateway {

class UpstreamPool : public std::enable_shared_from_this<UpstreamPool> {
 public:
  static constexpr size_t kIdlePerAddress = 64;
  static constexpr int64_t kIdleNs = 30'000'000'000;
  static constexpr int64_t kAvoidNs = 2'000'000'000;  // After a failed connect.
  static constexpr int64_t kLookUpNs =
      10'000'000'000;  // Names are asked for again after this; the resolver caches, too.
  static constexpr size_t kMaxAddresses = 256;

 private:
  struct Idle {
    std::unique_ptr<net::Stream> stream;
    int64_t since_ns = 0;
  };
  struct Address {
    net::Endpoint endpoint;
    size_t url = 0;
    int pending = 0;
    int64_t avoid_until_ns = 0;
    bool gone = false;  // No longer what the name stands for; kept until its calls have ended.
    std::vector<Idle> idle;
  };

 public:
  // A connection lent to one call. Ends with Return or Drop.
  struct Loan {
    std::unique_ptr<net::Stream> stream;
    size_t url = 0;  // Index in the configuration's urls.
    bool reused =
        false;  // It has carried calls before, so the other side may have closed it by now.

   private:
    friend class UpstreamPool;
    Address* address = nullptr;
  };

  struct Options {
    net::EventLoop* loop = nullptr;
    net::Resolver* resolver = nullptr;
    metrics::UpstreamSeries series;
    size_t shard = 0;
    uint64_t seed = 1;  // For the lot among equals.
  };
  // Never fails: an upstream whose certificates cannot be read answers every Open with the reason.
  static std::shared_ptr<UpstreamPool> Create(const policy::UpstreamConfig& config,
                                              const Options& options);
  ~UpstreamPool();

  // True when a pool made from `config` would reach the same servers in the same way.
  bool Serves(const policy::UpstreamConfig& config) const;

  // A kept connection to the least busy address; nothing when it has none (then Open).
  std::optional<Loan> TakeIdle();
  // A new connection to the least busy address. kUnavailable or kDeadlineExceeded say which address
  // failed and why.
  Task<Result<Loan>> Open(int64_t deadline_ns);

  // The answer was read whole and the connection can carry another call.
  void Return(Loan loan);
  // It cannot.
  void Drop(Loan loan);

  // "api.example.com" or "127.0.0.1:8000": the Host field for calls to a URL.
  const std::string& Authority(size_t url) const { return authorities_[url]; }
  const policy::UpstreamUrl& Url(size_t url) const { return config_.urls[url]; }
  const metrics::UpstreamSeries& series() const { return options_.series; }

  size_t idle_connections() const;
  size_t addresses() const { return addresses_.size(); }

 private:
  UpstreamPool(const policy::UpstreamConfig& config, const Options& options);
  Address* Pick();
  uint64_t Random();
  Task<Result<void>> LookUp();
  static Task<void> LookUpAgain(std::shared_ptr<UpstreamPool> pool);
  void Adopt(size_t url, const std::vector<net::Endpoint>& endpoints);
  void Begin(Address& address);
  void End(Address& address);
  void Reap();

  const policy::UpstreamConfig config_;
  const Options options_;
  std::vector<std::string> authorities_;
  std::unique_ptr<net::TlsContext> tls_;
  std::string tls_fault_;
  std::vector<std::unique_ptr<Address>> addresses_;
  bool names_ = false;  // Some URL holds a name, so that addresses age.
  bool looking_up_ = false;
  int64_t looked_up_ns_ = INT64_MIN / 2;
  uint64_t random_;
  net::Timer reaper_;  // Armed while connections are kept.
};

}  // namespace weir::gateway
