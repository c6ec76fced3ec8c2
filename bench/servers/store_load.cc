// Decisions against one Redis or Valkey server, as fast as they go, by three clients on one loop:
//
//   weir      the shared store: all decisions of a tick in one script call
//   plain     the same script, one EVALSHA for each decision, pipelined
//   bucket    a script of a single token bucket, as a plain client would write it, likewise
//
//   store_load CLIENT ADDRESS SECONDS   →   {"decisions":…,"seconds":…}
//
// Each decision charges one token bucket of one of 100,000 clients. One that the server does not
// make, or denies, ends the tool with a message: all clients do the same work.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "bench/servers/load_client.h"
#include "net/resolver.h"
#include "redis/client.h"
#include "shared_store/redis_store.h"
#include "store/redis/script_calls.h"

namespace weir::bench {
namespace {

using store::Charge;

constexpr int kAtOnce = 1024;
constexpr uint64_t kClients = 100'000;
constexpr int64_t kTimeoutNs = 5'000'000'000;
constexpr std::string_view kPrefix = "weir:1:";

constexpr std::string_view kBucketText = R"lua(
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local tat = tonumber(redis.call('GET', KEYS[1]) or '0')
local interval, tau = tonumber(ARGV[1]), tonumber(ARGV[2])
local new = math.max(tat, now) + interval
if new - now > tau then return {0, 0, new - tau - now} end
redis.call('SET', KEYS[1], string.format('%.0f', new), 'PX', math.ceil((new - now) / 1000))
return {1, math.floor((tau - (new - now)) / interval), new - now}
)lua";
const core::MeterSpec kBucket{.algorithm = Algorithm::kTokenBucket,
                              .rate = {300, std::chrono::minutes(1), 300}};

struct World {
  net::EventLoop& loop;
  net::Resolver& resolver;
  redis::ClientOptions client;
  int64_t end_ns = 0;
  int running = 0;
  int64_t decided = 0;
  std::mt19937_64 random{1};

  bool goes_on() const { return loop.now_ns() < end_ns; }
  uint64_t NextClient() { return random() % kClients; }
  void Ended() {
    if (--running == 0) loop.Stop();
  }
};

// Through the shared store, as a node of weir decides.
class WeirClient {
 public:
  explicit WeirClient(World& world)
      : world_(world),
        bucket_(*memory_.Intern(kBucket)),
        metrics_({}),
        store_({.loop = &world.loop,
                .resolver = &world.resolver,
                .memory = &memory_,
                .node = &node_,
                .metrics = &metrics_,
                .client = world.client,
                .prefix = std::string(kPrefix),
                .timeout_ns = kTimeoutNs,
                .breaker = {}}) {}
  ~WeirClient() { store_.Disconnect(); }

  Task<void> Run() {
    std::vector<Charge> charges(1);
    std::vector<store::SharedTerms> terms(1);
    std::vector<store::SharedOutcome> outcomes(1);
    while (world_.goes_on()) {
      const uint64_t client = world_.NextClient();
      charges[0] = {.meter = bucket_, .key = {client, 0}};
      terms[0].tag = client;
      const core::Now now{.mono_ns = world_.loop.now_ns(), .wall_ns = world_.loop.wall_ns()};
      const bool admitted =
          co_await store_.Decide(charges, terms, outcomes, now, store::Mode::kCharge);
      if (!admitted || outcomes[0].source != Source::kRedis) Die("the store did not decide");
      ++world_.decided;
    }
    world_.Ended();
  }

 private:
  World& world_;
  store::MemoryStore memory_;
  const core::Meter* const bucket_;
  metrics::WeirMetrics metrics_;
  shared_store::NodeState node_;
  shared_store::RedisStore store_;
};

// One EVALSHA for each decision.
class PlainClient {
 public:
  explicit PlainClient(World& world)
      : world_(world), client_(redis::Client::Create(world.loop, world.resolver, world.client)) {}

  // By the script that weir uses.
  Task<void> Run() {
    while (world_.goes_on()) {
      const uint64_t client = world_.NextClient();
      const std::vector<Charge> charges = {{.meter = bucket_.get(), .key = {client, 0}}};
      const std::vector<uint64_t> tags = {client};
      store::redis::DecideCall call(kPrefix);
      call.Add(charges, tags, store::Mode::kCharge);
      const store::redis::ScriptCall script = call.Build();
      const Result<resp::Value> reply =
          co_await Send(script.sha1, script.text, script.keys, script.args);
      std::vector<store::Outcome> outcomes(1);
      Result<store::redis::DecideReply> answer = store::redis::DecideReply::Parse(*reply);
      if (!answer || !answer->Next(charges, outcomes).value_or(false)) Die("not admitted");
      ++world_.decided;
    }
    world_.Ended();
  }

  // By a script of one bucket.
  Task<void> RunBucket() {
    const std::vector<std::string_view> args = {"200000", "60000000"};
    while (world_.goes_on()) {
      const std::string key = "bucket:" + std::to_string(world_.NextClient());
      const std::vector<std::string_view> keys = {key};
      const Result<resp::Value> reply = co_await Send(bucket_sha1_, kBucketText, keys, args);
      if (reply->items.size() != 3 || reply->items[0].integer != 1) Die("not admitted");
      ++world_.decided;
    }
    world_.Ended();
  }

  Task<void> LoadBucket() {
    const std::vector<std::string_view> words = {"SCRIPT", "LOAD", kBucketText};
    redis::CallOptions options(world_.loop.now_ns() + kTimeoutNs);
    const Result<resp::Value> reply = co_await client_->Call(words, "", std::move(options));
    if (!reply) Die(reply.error().message);
    bucket_sha1_ = reply->text;
  }

 private:
  Task<Result<resp::Value>> Send(std::string_view sha1, std::string_view text,
                                 std::span<const std::string_view> keys,
                                 std::span<const std::string_view> args) {
    redis::CallOptions options(world_.loop.now_ns() + kTimeoutNs);
    Result<resp::Value> reply =
        co_await client_->RunScript(sha1, text, keys, args, std::move(options));
    if (!reply) Die(reply.error().message);
    co_return reply;
  }

  World& world_;
  const std::unique_ptr<const core::Meter> bucket_ = core::Meter::Compile(kBucket).value();
  const std::unique_ptr<redis::Client> client_;
  std::string bucket_sha1_;
};

Task<void> StartBucket(World& world, PlainClient& client) {
  co_await client.LoadBucket();
  for (int i = 0; i < kAtOnce; ++i) world.loop.Spawn(client.RunBucket());
}

int Main(int argc, char** argv) {
  if (argc != 4) Die("usage: store_load weir|plain|bucket ADDRESS SECONDS");
  const std::string_view who = argv[1];
  const SystemClock clock;
  net::Resolver resolver;
  auto loop = net::EventLoop::Create(clock).value();
  World world{.loop = *loop,
              .resolver = resolver,
              .client = redis::ParseUrl(std::string("redis://") + argv[2]).value(),
              .running = kAtOnce};
  world.client.connections = 1;
  const int64_t start_ns = clock.MonotonicNs();
  world.end_ns = start_ns + static_cast<int64_t>(1e9 * std::atof(argv[3]));
  std::unique_ptr<WeirClient> weir;
  std::unique_ptr<PlainClient> plain;
  if (who == "weir") {
    weir = std::make_unique<WeirClient>(world);
    for (int i = 0; i < kAtOnce; ++i) loop->Spawn(weir->Run());
  } else {
    plain = std::make_unique<PlainClient>(world);
    if (who == "bucket") loop->Spawn(StartBucket(world, *plain));
    for (int i = 0; who == "plain" && i < kAtOnce; ++i) loop->Spawn(plain->Run());
  }
  loop->Run();
  std::printf("{\"decisions\":%ld,\"seconds\":%.3f}\n", world.decided,
              static_cast<double>(clock.MonotonicNs() - start_ns) / 1e9);
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) { return weir::bench::Main(argc, argv); }
