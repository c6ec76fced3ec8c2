#include "cli/shard.h"

#include <utility>

#include "net/http_version.h"

namespace weir::cli {
namespace {

// A batch of a thousand checks fits; a body of the decision API beyond this is a mistake.
constexpr int64_t kDoorBodyBytes = 4 << 20;
constexpr int64_t kHandshakeNs = 10'000'000'000;

}  // namespace

Result<std::unique_ptr<Shard>> Shard::Create(const ShardOptions& options, size_t index) {
  std::unique_ptr<Shard> shard(new Shard(options, index));
  Result<std::unique_ptr<net::EventLoop>> loop = net::EventLoop::Create(*options.clock);
  if (!loop) return std::unexpected(loop.error());
  shard->loop_ = std::move(*loop);
  if (options.shared_store) {
    shared_store::RedisStoreOptions store = *options.shared_store;
    store.loop = shard->loop_.get();
    store.resolver = options.resolver;
    store.memory = &options.engine->local_store();
    store.node = options.node;
    store.metrics = &options.engine->metrics();
    store.shard = index;
    store.counts_nodes = index == 0 && options.engine->policy()->config().store.nodes == 0;
    store.client.seed = options.node->id + index;
    store.client.on_notice = [self = shard.get()](std::string_view sentence) {
      const std::optional<int64_t> held = self->store_notices_.Open(self->loop_->now_ns());
      if (!held) return;
      self->options_.logger->Log(LogLevel::kWarn, "store",
                                 {{"notice", sentence}, {"suppressed", *held}});
    };
    shard->shared_store_ = std::make_unique<shared_store::RedisStore>(std::move(store));
  }
  shard->worker_ =
      std::make_unique<decide::Worker>(*options.engine, index, shard->shared_store_.get());
  Result<std::unique_ptr<gateway::Gateway>> gateway =
      gateway::Gateway::Create({.worker = shard->worker_.get(),
                                .loop = shard->loop_.get(),
                                .resolver = options.resolver,
                                .logger = options.logger,
                                .drain = &shard->drain_});
  if (!gateway) return std::unexpected(gateway.error());
  shard->gateway_ = std::move(*gateway);
  shard->services_ = std::make_unique<DoorServices>(*shard->worker_, *options.state);
  return shard;
}

Shard::Shard(const ShardOptions& options, size_t index) : options_(options), index_(index) {}

Shard::~Shard() {
  if (shared_store_) shared_store_->Disconnect();
}

Result<void> Shard::Listen(const DoorPlan& plan, const Shard* first) {
  auto door = std::make_unique<OpenDoor>();
  door->plan = plan;
  OpenDoor* const opened = door.get();
  net::Listener::OnAccept on_accept = [this, opened](std::unique_ptr<net::Stream> stream) {
    Accept(opened->plan, std::move(stream));
  };
  const net::Listener* shared = nullptr;
  if (first != nullptr) {
    for (const auto& other : first->listeners_) {
      if (other->plan.door == plan.door) shared = other->listener.get();
    }
  }
  Result<std::unique_ptr<net::Listener>> listener =
      shared != nullptr ? shared->Share(*loop_, std::move(on_accept))
                        : net::Listener::Open(*loop_, plan.endpoint, std::move(on_accept));
  if (!listener) return std::unexpected(listener.error());
  door->listener = std::move(*listener);
  listeners_.push_back(std::move(door));
  return {};
}

const net::Endpoint* Shard::EndpointOf(metrics::Door door) const {
  for (const auto& open : listeners_) {
    if (open->plan.door == door) return &open->listener->endpoint();
  }
  return nullptr;
}

void Shard::Accept(const DoorPlan& plan, std::unique_ptr<net::Stream> stream) {
  const bool operators = plan.door == metrics::Door::kOps || plan.door == metrics::Door::kAdmin;
  if (!options_.bound->Take(operators ? ConnectionBound::kForOperators : 0)) {
    options_.refused[static_cast<size_t>(plan.door)].Add(index_);
    return;  // Closes it.
  }
  loop_->Spawn(Serve(plan.door, plan.tls, std::move(stream)));
}

void Shard::UseCertificates(std::span<const DoorPlan> plans) {
  for (const DoorPlan& plan : plans) {
    for (const auto& open : listeners_) {
      if (open->plan.door == plan.door) open->plan.tls = plan.tls;
    }
  }
}

void Shard::BeginDrain() {
  drain_.draining = true;
  http2_.BeginDrain();
}

void Shard::CloseIdle() {
  gateway_->CloseIdle();
  http2_.CloseIdle();
}

void Shard::CloseListeners() {
  doors_closed_.draining = true;
  http2_.AskToLeave();
  listeners_.clear();
  if (shared_store_) shared_store_->LeaveNodes();
}

Task<void> Shard::Serve(metrics::Door door, std::shared_ptr<const net::TlsContext> tls,
                        std::unique_ptr<net::Stream> stream) {
  metrics::WeirMetrics& metrics = options_.engine->metrics();
  metrics.OnConnection(index_, door, +1);
  bool ready = true;
  if (tls != nullptr) {
    const Result<void> started =
        co_await stream->StartTlsServer(*tls, loop_->now_ns() + kHandshakeNs);
    ready = started.has_value();
  }
  if (ready && door == metrics::Door::kResp) {
    co_await doors::resp::ServeResp(std::move(stream), services_->resp(), RespOptions(),
                                    doors_closed_);
  } else if (ready && door == metrics::Door::kGrpc) {
    co_await doors::rls::ServeGrpc(std::move(stream), services_->grpc(), GrpcOptions(), drain_,
                                   http2_);
  } else if (ready) {
    co_await ServeHttp(door, std::move(stream));
  }
  metrics.OnConnection(index_, door, -1);
  options_.bound->GiveBack();
}

Task<void> Shard::ServeHttp(metrics::Door door, std::unique_ptr<net::Stream> stream) {
  const net::Http2Options options = Http2Options();
  const net::HttpVersion version =
      co_await net::DetectHttpVersion(*stream, options.idle_timeout_ns, options.header_timeout_ns);
  if (version == net::HttpVersion::kOne) co_await ServeCalls(door, std::move(stream));
  if (version != net::HttpVersion::kTwo) co_return;
  net::ServeCall serve = [this, door](std::unique_ptr<net::Stream> call) {
    return ServeCalls(door, std::move(call));
  };
  co_await net::ServeHttp2(std::move(stream), std::move(serve), options, http2_);
}

Task<void> Shard::ServeCalls(metrics::Door door, std::unique_ptr<net::Stream> stream) {
  if (door == metrics::Door::kGateway) return gateway_->Serve(std::move(stream));
  return net::ServeHttp(std::move(stream), services_->For(door), HttpOptions(), drain_);
}

void Shard::GiveBackLeases() { loop_->Spawn(GiveBack()); }

Task<void> Shard::GiveBack() {
  if (shared_store_) co_await shared_store_->GiveBackLeases();
  has_given_back_.store(true, std::memory_order_relaxed);
}

doors::resp::RespOptions Shard::RespOptions() {
  const policy::TimeoutsConfig& timeouts = worker_->policy().config().timeouts;
  doors::resp::RespOptions options;
  options.command_timeout_ns = timeouts.header.count();
  options.idle_timeout_ns = timeouts.idle.count();
  options.write_timeout_ns = timeouts.write.count();
  return options;
}

net::Http2Options Shard::GrpcOptions() {
  const policy::Config& config = worker_->policy().config();
  net::Http2Options options = Http2Options();
  options.limits = doors::rls::kGrpcLimits;
  if (config.listen.grpc) options.max_age_ns = config.listen.grpc->max_connection_age.count();
  return options;
}

net::HttpServiceOptions Shard::HttpOptions() {
  const policy::Config& config = worker_->policy().config();
  net::HttpServiceOptions options;
  options.head.bytes_max = static_cast<size_t>(config.bounds.header_bytes);
  options.body_bytes_max = kDoorBodyBytes;
  options.header_timeout_ns = config.timeouts.header.count();
  options.idle_timeout_ns = config.timeouts.idle.count();
  options.write_timeout_ns = config.timeouts.write.count();
  return options;
}

net::Http2Options Shard::Http2Options() {
  const policy::Config& config = worker_->policy().config();
  net::Http2Options options;
  options.limits.header_list_bytes_max = static_cast<size_t>(config.bounds.header_bytes);
  // A call that takes none of its body must not keep those beside it from theirs.
  options.limits.connection_window_bytes =
      options.limits.stream_window_bytes *
      static_cast<int32_t>(options.limits.concurrent_streams_max);
  options.header_timeout_ns = config.timeouts.header.count();
  options.idle_timeout_ns = config.timeouts.idle.count();
  options.write_timeout_ns = config.timeouts.write.count();
  return options;
}

}  // namespace weir::cli
