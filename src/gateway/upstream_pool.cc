#include "gateway/upstream_pool.h"

#include <algorithm>
#include <utility>

#include "net/connector.h"

namespace weir::gateway {
namespace {

constexpr int64_t kReapPeriodNs = 5'000'000'000;

std::string AuthorityOf(const policy::UpstreamUrl& url) {
  std::string text = url.host.find(':') != std::string::npos ? "[" + url.host + "]" : url.host;
  if (url.port != (url.tls ? 443 : 80)) text += ":" + std::to_string(url.port);
  return text;
}

bool IsLiteral(const policy::UpstreamUrl& url) {
  const std::string host =
      url.host.find(':') != std::string::npos ? "[" + url.host + "]" : url.host;
  return net::Endpoint::Parse(host + ":" + std::to_string(url.port)).has_value();
}

}  // namespace

std::shared_ptr<UpstreamPool> UpstreamPool::Create(const policy::UpstreamConfig& config,
                                                   const Options& options) {
  std::shared_ptr<UpstreamPool> pool(new UpstreamPool(config, options));
  if (std::ranges::any_of(config.urls, &policy::UpstreamUrl::tls)) {
    auto context = net::TlsContext::Client({.ca_file = config.tls_ca, .alpn = {"http/1.1"}});
    if (context) {
      pool->tls_ = std::move(*context);
    } else {
      pool->tls_fault_ = context.error().message;
    }
  }
  return pool;
}

UpstreamPool::UpstreamPool(const policy::UpstreamConfig& config, const Options& options)
    : config_(config),
      options_(options),
      random_(options.seed | 1),
      reaper_(*options.loop, [this] { Reap(); }) {
  for (const policy::UpstreamUrl& url : config_.urls) {
    authorities_.push_back(AuthorityOf(url));
    names_ = names_ || !IsLiteral(url);
  }
}

UpstreamPool::~UpstreamPool() {
  for (const auto& address : addresses_) {
    options_.series.connections.Add(options_.shard, -static_cast<int64_t>(address->idle.size()));
  }
}

bool UpstreamPool::Serves(const policy::UpstreamConfig& config) const {
  return config.name == config_.name && config.urls == config_.urls &&
         config.tls_ca == config_.tls_ca && config.tls_server_name == config_.tls_server_name;
}

uint64_t UpstreamPool::Random() {  // xorshift64: spreads load, guards nothing.
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

UpstreamPool::Address* UpstreamPool::Pick() {
  const int64_t now_ns = options_.loop->now_ns();
  Address* best = nullptr;
  Address* soonest = nullptr;  // When all are to be avoided: the one that was tried longest ago.
  uint64_t equals = 0;
  for (const auto& address : addresses_) {
    if (address->gone) continue;
    if (soonest == nullptr || address->avoid_until_ns < soonest->avoid_until_ns)
      soonest = address.get();
    if (now_ns < address->avoid_until_ns) continue;
    if (best == nullptr || address->pending < best->pending) {
      best = address.get();
      equals = 1;
    } else if (address->pending == best->pending && Random() % ++equals == 0) {
      best = address.get();
    }
  }
  return best != nullptr ? best : soonest;
}

void UpstreamPool::Begin(Address& address) {
  ++address.pending;
  options_.series.pending.Add(options_.shard, 1);
}

void UpstreamPool::End(Address& address) {
  --address.pending;
  options_.series.pending.Add(options_.shard, -1);
  if (address.gone && address.pending == 0) {
    options_.series.connections.Add(options_.shard, -static_cast<int64_t>(address.idle.size()));
    std::erase_if(addresses_, [&](const auto& one) { return one.get() == &address; });
  }
}

std::optional<UpstreamPool::Loan> UpstreamPool::TakeIdle() {
  if (addresses_.empty()) return std::nullopt;
  const int64_t now_ns = options_.loop->now_ns();
  if (names_ && !looking_up_ && now_ns - looked_up_ns_ >= kLookUpNs) {
    options_.loop->Spawn(LookUpAgain(shared_from_this()));
  }
  Address* address = Pick();
  if (address == nullptr) return std::nullopt;
  while (!address->idle.empty()) {
    Idle kept = std::move(address->idle.back());
    address->idle.pop_back();
    if (now_ns - kept.since_ns >= kIdleNs || !kept.stream->IsQuiet()) {
      options_.series.connections.Add(options_.shard, -1);
      continue;
    }
    kept.stream->OnHangup(nullptr);
    Loan loan;
    loan.stream = std::move(kept.stream);
    loan.url = address->url;
    loan.reused = true;
    loan.address = address;
    Begin(*address);
    return loan;
  }
  return std::nullopt;
}

Task<Result<UpstreamPool::Loan>> UpstreamPool::Open(int64_t deadline_ns) {
  const std::shared_ptr<UpstreamPool> self =
      shared_from_this();  // A reload may drop the last policy that names it.
  if (addresses_.empty()) {
    Result<void> found = co_await LookUp();
    if (!found) co_return std::unexpected(found.error());
  }
  Address* address = Pick();
  if (address == nullptr)
    co_return MakeError(ErrorCode::kUnavailable, config_.name + ": no address");
  const policy::UpstreamUrl& url = config_.urls[address->url];
  if (url.tls && tls_ == nullptr) co_return MakeError(ErrorCode::kUnavailable, tls_fault_);

  Begin(*address);  // Counts as busy from now on, and keeps the address in the list.
  Result<std::unique_ptr<net::Stream>> stream =
      co_await net::Connect(*options_.loop, address->endpoint, deadline_ns);
  if (stream && url.tls) {
    const std::string& name = config_.tls_server_name.empty() ? url.host : config_.tls_server_name;
    Result<void> started = co_await (*stream)->StartTlsClient(*tls_, name, deadline_ns);
    if (!started) stream = std::unexpected(started.error());
  }
  if (!stream) {
    address->avoid_until_ns = options_.loop->now_ns() + kAvoidNs;
    End(*address);
    co_return std::unexpected(std::move(stream.error()));
  }
  address->avoid_until_ns = 0;
  options_.series.connections.Add(options_.shard, 1);
  Loan loan;
  loan.stream = std::move(*stream);
  loan.url = address->url;
  loan.address = address;
  co_return loan;
}

void UpstreamPool::Return(Loan loan) {
  Address& address = *loan.address;
  if (address.gone || address.idle.size() >= kIdlePerAddress || loan.stream->peer_hung_up()) {
    Drop(std::move(loan));
    return;
  }
  const int64_t now_ns = options_.loop->now_ns();
  // One that the other side closes is thrown away at once. Not in the callback, which must not
  // destroy its stream.
  loan.stream->OnHangup([this] { reaper_.ArmAt(options_.loop->now_ns()); });
  address.idle.push_back({std::move(loan.stream), now_ns});
  if (!reaper_.armed()) reaper_.ArmAt(now_ns + kReapPeriodNs);
  End(address);
}

void UpstreamPool::Drop(Loan loan) {
  options_.series.connections.Add(options_.shard, -1);
  loan.stream.reset();
  End(*loan.address);
}

void UpstreamPool::Reap() {
  const int64_t now_ns = options_.loop->now_ns();
  bool kept_any = false;
  for (const auto& address : addresses_) {
    const size_t dropped = std::erase_if(address->idle, [&](const Idle& kept) {
      return kept.stream->peer_hung_up() || now_ns - kept.since_ns >= kIdleNs;
    });
    options_.series.connections.Add(options_.shard, -static_cast<int64_t>(dropped));
    kept_any = kept_any || !address->idle.empty();
  }
  if (kept_any) reaper_.ArmAt(now_ns + kReapPeriodNs);
}

Task<void> UpstreamPool::LookUpAgain(std::shared_ptr<UpstreamPool> pool) {
  Result<void> found = co_await pool->LookUp();
  (void)found;  // While a name cannot be found its last known addresses go on serving.
}

Task<Result<void>> UpstreamPool::LookUp() {
  looking_up_ = true;
  Result<void> outcome;
  for (size_t url = 0; url < config_.urls.size(); ++url) {
    Result<std::vector<net::Endpoint>> found = co_await options_.resolver->Resolve(
        *options_.loop, config_.urls[url].host, config_.urls[url].port);
    if (found) {
      Adopt(url, *found);
    } else {
      outcome = std::unexpected(found.error());
    }
  }
  looking_up_ = false;
  looked_up_ns_ = options_.loop->now_ns();
  if (!addresses_.empty()) outcome = {};
  co_return outcome;
}

void UpstreamPool::Adopt(size_t url, const std::vector<net::Endpoint>& endpoints) {
  const auto stands = [&](const Address& address) {
    return std::ranges::find(endpoints, address.endpoint) != endpoints.end();
  };
  for (const auto& address : addresses_) {
    if (address->url == url) address->gone = !stands(*address);
  }
  for (const net::Endpoint& endpoint : endpoints) {
    const bool known = std::ranges::any_of(addresses_, [&](const auto& address) {
      return address->url == url && address->endpoint == endpoint;
    });
    if (known || addresses_.size() >= kMaxAddresses) continue;
    auto address = std::make_unique<Address>();
    address->endpoint = endpoint;
    address->url = url;
    addresses_.push_back(std::move(address));
  }
  std::erase_if(addresses_, [&](const auto& address) {
    if (!address->gone || address->pending > 0) return false;
    options_.series.connections.Add(options_.shard, -static_cast<int64_t>(address->idle.size()));
    return true;
  });
}

size_t UpstreamPool::idle_connections() const {
  size_t total = 0;
  for (const auto& address : addresses_) total += address->idle.size();
  return total;
}

}  // namespace weir::gateway
