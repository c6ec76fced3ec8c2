// What one core of a server decides: many decisions in one script call against one EVALSHA for each
// decision, both pipelined, with the same script. Starts its own server, pinned to the first core,
// and prints decisions a second by the server's own CPU time, so that the client's share of the
// machine does not count.
//
//   script_bench [PROGRAM=redis-server] [SECONDS=2]
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "store/redis/script_calls.h"
#include "store/redis/scripts.h"
#include "testing/redis_server.h"

namespace weir::store::redis {
namespace {

using ::weir::testing::RedisConsole;
using ::weir::testing::RedisServer;

constexpr size_t kPipelined = 32;       // Calls on the wire at once.
constexpr uint64_t kClients = 100'000;  // Each with counters of its own.

// One token bucket and nothing else, as a plain client would write it.
constexpr std::string_view kPlainBucket = R"lua(
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local tat = tonumber(redis.call('GET', KEYS[1]) or '0')
local interval, tau = tonumber(ARGV[1]), tonumber(ARGV[2])
local new = math.max(tat, now) + interval
if new - now > tau then return {0, 0, new - tau - now} end
redis.call('SET', KEYS[1], string.format('%.0f', new), 'PX', math.ceil((new - now) / 1000))
return {1, math.floor((tau - (new - now)) / interval), new - now}
)lua";

struct Limits {
  std::string name;
  std::vector<const core::Meter*> meters;
};

class Load {
 public:
  Load(RedisServer& server, Limits limits)
      : server_(server), console_(server.Console()), limits_(std::move(limits)) {
    console_.Call({"FLUSHALL"});
    console_.Call({"SCRIPT", "LOAD", kDecideScript.text});
    plain_sha1_ = console_.Call({"SCRIPT", "LOAD", kPlainBucket}).text;
  }

  // Decisions for each second of the server's CPU. 0 a call: by kPlainBucket.
  double Run(size_t decisions_per_call, double seconds) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    const double cpu = CpuSeconds();
    uint64_t decided = 0;
    while (std::chrono::steady_clock::now() < until) {
      for (size_t i = 0; i < kPipelined; ++i) {
        decisions_per_call == 0 ? SendPlain() : Send(decisions_per_call);
      }
      for (size_t i = 0; i < kPipelined; ++i) {
        const resp::Value reply = console_.Read();
        if (reply.IsError()) throw std::runtime_error(reply.text);
      }
      decided += kPipelined * std::max<size_t>(decisions_per_call, 1);
    }
    return static_cast<double>(decided) / (CpuSeconds() - cpu);
  }

 private:
  void SendPlain() {
    const std::string key = CounterKey("weir:1:", 1, {random_() % kClients, 0});
    words_.assign({"EVALSHA", plain_sha1_, "1", key, "200000", "60000000"});
    console_.Send(words_);
  }
  void Send(size_t decisions) {
    DecideCall call("weir:1:");
    for (size_t d = 0; d < decisions; ++d) {
      const uint64_t client = random_() % kClients;
      charges_.clear();
      tags_.clear();
      for (size_t i = 0; i < limits_.meters.size(); ++i) {
        charges_.push_back({.meter = limits_.meters[i], .key = {client, client << 20 | i}});
        tags_.push_back(1);
      }
      call.Add(charges_, tags_, Mode::kCharge);
    }
    const ScriptCall script = call.Build();
    const std::string count = std::to_string(script.keys.size());
    words_.assign({"EVALSHA", script.sha1, count});
    words_.insert(words_.end(), script.keys.begin(), script.keys.end());
    words_.insert(words_.end(), script.args.begin(), script.args.end());
    console_.Send(words_);
  }
  double CpuSeconds() const {
    return std::stod(server_.Info("cpu", "used_cpu_user")) +
           std::stod(server_.Info("cpu", "used_cpu_sys"));
  }

  RedisServer& server_;
  RedisConsole console_;
  const Limits limits_;
  std::mt19937_64 random_{1};
  std::vector<Charge> charges_;
  std::vector<uint64_t> tags_;
  std::vector<std::string_view> words_;
  std::string plain_sha1_;
};

// The server inherits the core of the thread that starts it; the client then moves to the other.
void Pin(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

int Run(const std::string& program, double seconds) {
  Pin(0);
  RedisServer server({.program = program});
  Pin(1);
  const auto compile = [](Algorithm algorithm, int64_t units, std::chrono::nanoseconds period) {
    const int64_t burst = algorithm == Algorithm::kTokenBucket ? units : 0;
    return core::Meter::Compile({.algorithm = algorithm, .rate = {units, period, burst}}).value();
  };
  const auto bucket = compile(Algorithm::kTokenBucket, 300, std::chrono::minutes(1));
  const auto second = compile(Algorithm::kTokenBucket, 1000, std::chrono::hours(1));
  const auto window = compile(Algorithm::kFixedWindow, 100'000, std::chrono::hours(24));
  const auto log = compile(Algorithm::kSlidingWindow, 60, std::chrono::minutes(1));
  const auto counter = compile(Algorithm::kSlidingCounter, 60, std::chrono::minutes(1));
  const std::vector<Limits> all = {{"one token bucket", {bucket.get()}},
                                   {"two token buckets", {bucket.get(), second.get()}},
                                   {"bucket and fixed window", {bucket.get(), window.get()}},
                                   {"one sliding counter", {counter.get()}},
                                   {"one sliding log", {log.get()}}};
  const auto plain_bucket = [&](double for_seconds) {
    return Load(server, {"", {bucket.get()}}).Run(0, for_seconds);
  };
  plain_bucket(seconds / 4);
  const double plain_before = plain_bucket(seconds / 2);
  fmt::print("{}: decisions per second of the server's CPU, {} calls pipelined\n", program,
             kPipelined);
  for (const Limits& limits : all) {
    Load load(server, limits);
    load.Run(16, seconds / 4);  // Warm: keys, script, allocator.
    const double before = load.Run(1, seconds / 2);
    const double by_16 = load.Run(16, seconds);
    const double by_64 = load.Run(64, seconds);
    const double plain = (before + load.Run(1, seconds / 2)) / 2;
    fmt::print(
        "{:26} one each {:8.0f}   16 a call {:8.0f} ({:.2f} times)   64 a call {:8.0f} ({:.2f} "
        "times)\n",
        limits.name, plain, by_16, by_16 / plain, by_64, by_64 / plain);
  }
  fmt::print("a script of one bucket only, one each: {:.0f}, and again {:.0f}\n", plain_before,
             plain_bucket(seconds / 2));
  return 0;
}

}  // namespace
}  // namespace weir::store::redis

int main(int argc, char** argv) {
  return weir::store::redis::Run(argc > 1 ? argv[1] : "redis-server",
                                 argc > 2 ? std::atof(argv[2]) : 2);
}
