// The scripts of store/redis on a real server, as a blocking store with the operations of store.h:
// for the contract suite, and for tests that hold it to the memory store. Time stands where a call
// says: the scripts run with their one line that reads the clock replaced.
//
//   ScriptStore store(server.Console());
//   store.Decide(charges, outcomes, now, Mode::kCharge);
//
// Every key has the same tag. Thread safety: any thread may call; calls go one after the other.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "store/redis/script_calls.h"
#include "store/redis/scripts.h"
#include "testing/redis_console.h"

namespace weir::testing {

class ScriptStore {
 public:
  static constexpr uint64_t kTag = 0x1234'5678'9abc'def0;
  static constexpr std::string_view kPrefix = "weir:1:";
  // By how much a key outlives its counter here, where time may stand still.
  static constexpr int64_t kSpareMs = 3'600'000;

  // Of one decision of several in a call.
  struct Decision {
    std::vector<store::Charge> charges;
    store::Mode mode = store::Mode::kCharge;
    std::vector<store::Outcome> outcomes;
    bool admitted = false;
  };

  enum class Clock : uint8_t { kOfTheCall, kOfTheServer };

  explicit ScriptStore(RedisConsole console, Clock clock = Clock::kOfTheCall)
      : console_(std::move(console)), clock_(clock) {
    console_.Call({"FLUSHALL"});
    for (const auto* script : {&store::redis::kDecideScript, &store::redis::kSettleScript}) {
      loaded_[script->sha1] = console_.Call({"SCRIPT", "LOAD", TextOf(*script)}).text;
    }
  }

  Result<const core::Meter*> Intern(const core::MeterSpec& spec) {
    const std::lock_guard lock(mutex_);
    for (const auto& meter : meters_) {
      if (meter->spec() == spec) return meter.get();
    }
    if (auto fits = store::redis::CheckMeter(spec); !fits) return std::unexpected(fits.error());
    auto meter = core::Meter::Compile(spec, static_cast<uint16_t>(meters_.size()));
    if (!meter) return std::unexpected(meter.error());
    meters_.push_back(*std::move(meter));
    return meters_.back().get();
  }

  bool Decide(std::span<const store::Charge> charges, std::span<store::Outcome> outcomes,
              core::Now now, store::Mode mode) {
    std::array<Decision, 1> one;
    one[0].charges.assign(charges.begin(), charges.end());
    one[0].mode = mode;
    DecideAll(one, now);
    std::ranges::copy(one[0].outcomes, outcomes.begin());
    return one[0].admitted;
  }

  // All in one call. `skew_ns`: by how much the node's clock is wrong.
  void DecideAll(std::span<Decision> decisions, core::Now now, int64_t skew_ns = 0) {
    int64_t unix_ns = now.mono_ns + skew_ns;
    for (int attempt = 0; attempt < 2; ++attempt) {
      store::redis::DecideCall call(kPrefix, unix_ns);
      for (const Decision& decision : decisions) {
        call.Add(decision.charges, std::vector<uint64_t>(decision.charges.size(), kTag),
                 decision.mode);
      }
      auto reply = Must(store::redis::DecideReply::Parse(Run(call.Build(), now)));
      if (reply.stale()) {
        unix_ns = reply.server_unix_ns();
        continue;
      }
      for (Decision& decision : decisions) {
        decision.outcomes.assign(decision.charges.size(), {});
        decision.admitted = Must(reply.Next(decision.charges, decision.outcomes));
      }
      return;
    }
    throw std::runtime_error("stale at the server's own time");
  }

  core::Step Peek(const core::Meter& meter, store::Key128 key, int64_t cost, core::Now now) {
    const store::Charge charge{.meter = &meter, .key = key, .cost = cost};
    store::Outcome outcome;
    Decide({&charge, 1}, {&outcome, 1}, now, store::Mode::kPeek);
    return outcome.step;
  }
  bool Settle(const core::Meter& meter, store::Key128 key, core::Receipt receipt, int64_t reserved,
              int64_t actual, core::Now now, uint64_t id = 0) {
    return One(now, id, [&](store::redis::SettleCall& call) {
      call.Settle(ChargeOf(meter, key, receipt, reserved, actual));
    });
  }
  bool Release(const core::Meter& meter, store::Key128 key, core::Receipt receipt, int64_t reserved,
               core::Now now) {
    return Settle(meter, key, receipt, reserved, 0, now);
  }
  bool Renew(const core::Meter& meter, store::Key128 key, core::Receipt receipt, int64_t ttl_ns,
             core::Now now) {
    return One(now, 0, [&](store::redis::SettleCall& call) {
      call.Renew(ChargeOf(meter, key, receipt, 0, 0), ttl_ns);
    });
  }
  bool Reset(const core::Meter& meter, store::Key128 key, core::Now now) {
    return One(now, 0,
               [&](store::redis::SettleCall& call) { call.Reset(ChargeOf(meter, key, {}, 0, 0)); });
  }
  int64_t TrackedKeys(core::Now /*now*/) { return Command({"DBSIZE"}).integer; }

  resp::Value Command(const std::vector<std::string_view>& words) {
    const std::lock_guard lock(mutex_);
    return console_.Call(words);
  }
  static std::string KeyOf(store::Key128 key) {
    return store::redis::CounterKey(kPrefix, kTag, key);
  }
  // The key's time to live as it would be with a clock that runs.
  int64_t TtlMs(store::Key128 key) {
    const int64_t ttl_ms = Command({"PTTL", KeyOf(key)}).integer;
    return ttl_ms < 0 || clock_ == Clock::kOfTheServer ? ttl_ms : ttl_ms - kSpareMs;
  }
  // Keys that would never expire: there must be none.
  std::vector<std::string> KeysWithoutTtl() {
    std::vector<std::string> found;
    std::string cursor = "0";
    do {
      const resp::Value page = Command({"SCAN", cursor, "COUNT", "1000"});
      cursor = page.items[0].text;
      for (const resp::Value& key : page.items[1].items) {
        if (Command({"PTTL", key.text}).integer == -1) found.push_back(key.text);
      }
    } while (cursor != "0");
    return found;
  }

  // The script's text for this store's clock.
  std::string TextOf(const store::redis::Script& script) const {
    std::string text(script.text);
    if (clock_ == Clock::kOfTheServer) return text;
    constexpr std::string_view kReadsClock = "local time, spare_ms = redis.call('TIME'), 0\n";
    if (!text.starts_with(kReadsClock)) throw std::runtime_error("where is the clock read?");
    return text.replace(
        0, kReadsClock.size(),
        "local time, spare_ms = {ARGV[2], ARGV[3]}, " + std::to_string(kSpareMs) + "\n");
  }

 private:
  template <typename T>
  static T Must(Result<T> result) {
    if (!result) throw std::runtime_error(result.error().message);
    return *std::move(result);
  }
  static store::SharedCharge ChargeOf(const core::Meter& meter, store::Key128 key,
                                      core::Receipt receipt, int64_t reserved, int64_t actual) {
    return {.meter = &meter,
            .key = key,
            .tag = kTag,
            .receipt = receipt,
            .reserved = reserved,
            .actual = actual};
  }
  template <typename Fill>
  bool One(core::Now now, uint64_t id, Fill&& fill) {
    store::redis::SettleCall call(kPrefix, id, now.mono_ns);
    fill(call);
    const auto reply = Must(store::redis::SettleReply::Parse(Run(call.Build(), now)));
    if (reply.stale) throw std::runtime_error("stale at the time of the call");
    return reply.done.at(0);
  }

  resp::Value Run(const store::redis::ScriptCall& call, core::Now now) {
    const std::lock_guard lock(mutex_);
    const std::string count = std::to_string(call.keys.size());
    std::vector<std::string_view> words{"EVALSHA", loaded_.at(call.sha1), count};
    words.insert(words.end(), call.keys.begin(), call.keys.end());
    words.insert(words.end(), call.args.begin(), call.args.end());
    const int64_t now_us = now.mono_ns / 1000;
    const std::string seconds = std::to_string(now_us / 1'000'000);
    const std::string micros = std::to_string(now_us % 1'000'000);
    if (clock_ == Clock::kOfTheCall) {
      words.push_back(seconds);
      words.push_back(micros);
    }
    resp::Value reply = console_.Call(words);
    if (reply.IsError()) throw std::runtime_error(reply.text);
    return reply;
  }

  std::mutex mutex_;
  RedisConsole console_;
  const Clock clock_;
  std::map<std::string_view, std::string> loaded_;
  std::vector<std::unique_ptr<const core::Meter>> meters_;
};

}  // namespace weir::testing
