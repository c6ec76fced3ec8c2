// The scripts against the memory store: random limits, rates, costs, settles, leases and times,
// every outcome equal to the unit and every wait to the microsecond. WEIR_SEED=n repeats one
// history.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <random>

#include "store/memory/memory_store.h"
#include "testing/redis_server.h"
#include "testing/script_store.h"

namespace weir::testing {
namespace {

using store::Charge;
using store::Key128;
using store::Mode;
using store::Outcome;

constexpr int64_t kUs = 1000;
constexpr int64_t kSec = 1'000'000'000;

// A year. The memory store's tick bucket keeps no debt that takes much longer.
constexpr int64_t kLongestUs = int64_t{365} * 86'400 * 1'000'000;

int64_t UpToUs(int64_t ns) {
  return ns == core::kNever ? ns : std::min(core::CeilDiv64(ns, kUs), kLongestUs);
}

int64_t Apart(int64_t one_ns, int64_t other_ns) {
  return std::abs(UpToUs(one_ns) - UpToUs(other_ns));
}

// One history of a few limits with a few counters each, told to both stores.
class History {
 public:
  History(ScriptStore& scripts, uint64_t seed) : scripts_(scripts), random_(seed) {
    scripts_.Command({"FLUSHALL"});
    now_us_ = Pick(int64_t{1'000'000'000}, int64_t{30'000'000'000'000});
    const int64_t limits = Pick(1, 4);
    while (std::ssize(limits_) < limits) {
      Limit limit{.spec = PickSpec()};
      for (int i = 0; i < 2; ++i) limit.keys.push_back(Key128{random_(), random_()});
      SetSpec(limit, limit.spec);
      limits_.push_back(limit);
    }
    // Where the memory store drops what has expired whenever it looks, the scripts when they write,
    // and where a counter that is full is forgotten, a clock that goes back tells them apart.
    back_ = Chance(20) && std::ranges::all_of(limits_, [](const Limit& limit) {
              return limit.spec.algorithm == Algorithm::kTokenBucket &&
                     limit.spec.rate.units <= 1'000'000;
            });
  }

  void Run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure() && !too_long_; ++i) {
      PassTime();
      const int64_t kind = Pick(0, 99);
      if (kind < 60 || back_) {
        DecideSome();
      } else if (kind < 84) {
        SettleOne();
      } else if (kind < 88) {
        RenewOne();
      } else if (kind < 92) {
        ResetOne();
      } else {
        ChangeRate();
      }
    }
    EXPECT_EQ(scripts_.KeysWithoutTtl(), std::vector<std::string>{});
  }

 private:
  struct Limit {
    core::MeterSpec spec;
    std::optional<core::MeterSpec> former;
    const core::Meter* memory = nullptr;
    const core::Meter* scripts = nullptr;
    std::vector<Key128> keys;
  };
  struct Held {
    size_t limit;
    Key128 key;
    const core::Meter* memory;
    const core::Meter* scripts;
    core::Receipt memory_receipt;
    core::Receipt scripts_receipt;
    int64_t cost;
  };

  int64_t Pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool Chance(int percent) { return Pick(1, 100) <= percent; }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return *(values.begin() + Pick(0, std::ssize(values) - 1));
  }
  int64_t PickUnits() {
    switch (Pick(0, 9)) {
      case 0:
        return OneOf<int64_t>({0, 1, 1, 2});
      case 1:
        return Pick(1, 1'000'000);
      case 2:  // Beyond what a plain product of doubles holds.
        return OneOf<int64_t>({200'000'000'000'000, 30'000'000'000, 99'991, 7'000'003,
                               kMaxUnits - 111, 1'000'000'000'000'007});
      default:
        return Pick(1, 12);
    }
  }
  int64_t PickPeriodUs() {
    return OneOf<int64_t>({1'000'000, 10'000'000, 60'000'000, 3'600'000'000, 86'400'000'000,
                           2'592'000'000'000, 13'000'000, 7'000'001, 1'500, Pick(1, 100'000'000)});
  }

  core::MeterSpec PickSpec() {
    return PickSpec(
        OneOf({Algorithm::kTokenBucket, Algorithm::kTokenBucket, Algorithm::kTokenBucket,
               Algorithm::kSlidingWindow, Algorithm::kSlidingCounter, Algorithm::kFixedWindow,
               Algorithm::kParallel}));
  }
  core::MeterSpec PickSpec(Algorithm algorithm) {
    core::MeterSpec spec{.algorithm = algorithm};
    spec.rate = {.units = PickUnits(), .period = std::chrono::microseconds(PickPeriodUs())};
    if (algorithm == Algorithm::kTokenBucket) {
      spec.rate.burst = Chance(60) ? std::max<int64_t>(spec.rate.units, 1) : Pick(1, 50);
    } else if (algorithm == Algorithm::kSlidingWindow) {
      spec.rate.units = std::min<int64_t>(spec.rate.units, 1000);
    } else if (algorithm == Algorithm::kSlidingCounter && Chance(50)) {
      spec.strict = true;
      spec.buckets = static_cast<int>(OneOf<int64_t>({2, 7, 10, 64}));
    } else if (algorithm == Algorithm::kFixedWindow && Chance(40)) {
      spec.alignment = OneOf({core::Alignment::kMinute, core::Alignment::kHour,
                              core::Alignment::kDay, core::Alignment::kMonth});
      spec.rate.period = std::chrono::hours(24);  // Of no meaning.
      spec.timezone = OneOf({"UTC", "Europe/Berlin", "Asia/Kolkata"});
    }
    return spec;
  }
  void SetSpec(Limit& limit, core::MeterSpec spec) {
    auto memory = memory_.Intern(spec);
    while (!memory || !scripts_.Intern(spec)) {  // Such a rate cannot be counted: another one.
      spec = PickSpec(spec.algorithm);
      memory = memory_.Intern(spec);
    }
    limit.spec = spec;
    limit.memory = *memory;
    limit.scripts = *scripts_.Intern(spec);
  }

  core::Now Now() const { return {.mono_ns = now_us_ * kUs, .wall_ns = now_us_ * kUs}; }
  void PassTime() {
    latest_us_ = std::max(latest_us_, now_us_);
    const Limit& limit = limits_[static_cast<size_t>(Pick(0, std::ssize(limits_) - 1))];
    const int64_t period_us = limit.spec.rate.period.count() / kUs;
    switch (Pick(0, 9)) {
      case 0:
      case 1:
      case 2:
        return;
      case 3:
        now_us_ += Pick(1, 10);
        return;
      case 4:  // To where something just ends, or does not yet.
        now_us_ += std::max<int64_t>(last_wait_us_ - Pick(0, 1), 0);
        return;
      case 5:
        now_us_ += Pick(0, 2 * period_us);
        return;
      case 6:  // A clock may go back a little.
        if (back_) now_us_ = std::max(now_us_ - Pick(0, 400'000), latest_us_ - 400'000);
        return;
      default:
        now_us_ += Pick(0, std::max<int64_t>(period_us / 4, 1));
    }
  }

  int64_t PickCost(const Limit& limit) {
    const int64_t quota = std::max<int64_t>(limit.memory->quota(), 1);
    switch (Pick(0, 9)) {
      case 0:
        return 0;
      case 1:
        return quota;
      case 2:
        return std::min(quota + 1, kMaxUnits);
      case 3:
        return Pick(1, quota);
      default:
        return std::min<int64_t>(Pick(1, 3) * std::max<int64_t>(quota / 10, 1), quota);
    }
  }

  void DecideSome() {
    std::vector<ScriptStore::Decision> decisions(static_cast<size_t>(Pick(1, 4)));
    for (ScriptStore::Decision& decision : decisions) {
      decision.mode = Chance(10) ? Mode::kPeek : Mode::kReserve;
      for (const Limit& limit : limits_) {
        if (!decision.charges.empty() && Chance(30)) continue;
        Charge charge{.meter = limit.scripts,
                      .key = limit.keys[static_cast<size_t>(Pick(0, 1))],
                      .cost = PickCost(limit),
                      .enforced = !Chance(15)};
        if (limit.spec.algorithm == Algorithm::kParallel && !Chance(15)) {
          charge.lease_id = random_() | 1;
          charge.lease_ttl_ns = Pick(1, 20) * kSec;
        }
        decision.charges.push_back(charge);
      }
    }
    Decide(decisions);
  }

  const Limit& LimitOf(const Charge& charge) const {
    for (const Limit& limit : limits_) {
      if (std::ranges::find(limit.keys, charge.key) != limit.keys.end()) return limit;
    }
    std::abort();
  }

  void Decide(std::vector<ScriptStore::Decision>& decisions) {
    const int64_t skew_ns = Pick(-8, 8) * kSec;
    scripts_.DecideAll(decisions, Now(), skew_ns);
    for (const ScriptStore::Decision& decision : decisions) {
      std::vector<Charge> charges = decision.charges;
      for (Charge& charge : charges) charge.meter = LimitOf(charge).memory;
      std::vector<Outcome> expected(charges.size());
      const bool admitted = memory_.Decide(charges, expected, Now(), decision.mode);
      ASSERT_EQ(decision.admitted, admitted) << Words(decision);
      for (size_t i = 0; i < charges.size(); ++i) {
        const Outcome& outcome = decision.outcomes[i];
        ASSERT_EQ(outcome.step.allowed, expected[i].step.allowed) << i << Words(decision);
        ASSERT_EQ(outcome.charged, expected[i].charged) << i << Words(decision);
        ASSERT_EQ(outcome.step.remaining, expected[i].step.remaining) << i << Words(decision);
        // Where a rate has changed twice, each store has rounded up in ticks of its own.
        const int64_t slack_us = changes_[charges[i].key.lo] > 1 ? 1 : 0;
        ASSERT_LE(Apart(outcome.step.reset_after_ns, expected[i].step.reset_after_ns), slack_us)
            << i << Words(decision);
        ASSERT_LE(Apart(outcome.step.retry_after_ns, expected[i].step.retry_after_ns), slack_us)
            << i << Words(decision);
        Trace("decide", charges[i].key, charges[i].cost, outcome.step.remaining, charges[i].meter);
        Keep(decision.charges[i], outcome, expected[i]);
      }
    }
  }
  void Keep(const Charge& charge, const Outcome& outcome, const Outcome& expected) {
    const int64_t wait_us =
        UpToUs(outcome.step.allowed ? outcome.step.reset_after_ns : outcome.step.retry_after_ns);
    if (wait_us == kLongestUs) too_long_ = true;
    if (wait_us > 0 && wait_us < 40'000'000'000'000) last_wait_us_ = wait_us;
    if (now_us_ > 60'000'000'000'000) last_wait_us_ = 0;  // Of the memory store's two years.
    if (!outcome.charged) return;
    const auto changed = changed_us_.find(charge.key.lo);
    if (changed != changed_us_.end() && now_us_ < changed->second + 1'100'000) return;
    const Limit& limit = LimitOf(charge);
    held_.push_back({.limit = static_cast<size_t>(&limit - limits_.data()),
                     .key = charge.key,
                     .memory = limit.memory,
                     .scripts = limit.scripts,
                     .memory_receipt = expected.receipt,
                     .scripts_receipt = outcome.receipt,
                     .cost = charge.cost});
    const int64_t ttl_ms = scripts_.TtlMs(charge.key);
    const bool parallel = limit.spec.algorithm == Algorithm::kParallel;
    const int64_t needed_ms =
        (parallel ? charge.lease_ttl_ns : outcome.step.reset_after_ns) / 1'000'000;
    // The decisions of one call may have been followed by others; the test takes its time.
    EXPECT_GT(ttl_ms, needed_ms - 60'000) << "a key that goes before its counter is full";
  }

  bool TakeHeld(bool parallel_only, Held& held) {
    if (held_.empty()) return false;
    const auto at = Pick(0, std::ssize(held_) - 1);
    held = held_[static_cast<size_t>(at)];
    if (parallel_only != (limits_[held.limit].spec.algorithm == Algorithm::kParallel) &&
        parallel_only)
      return false;
    if (!parallel_only) held_.erase(held_.begin() + at);
    return true;
  }

  void SettleOne() {
    Held held;
    if (!TakeHeld(false, held)) return;
    if (held.memory->form() == core::Form::kLog) {  // Under an old window the memory store forgets.
      held.memory = limits_[held.limit].memory;
      held.scripts = limits_[held.limit].scripts;
    }
    int64_t actual = Pick(0, held.cost);
    if (Chance(20)) actual = std::min(held.cost + Pick(1, held.cost), kMaxUnits / 4);
    if (Chance(20)) actual = 0;
    const core::Meter& current = *limits_[held.limit].memory;
    if (actual > held.cost && &current != held.memory &&
        memory_.Peek(current, held.key, 0, Now()).reset_after_ns == 0) {
      return;  // A debt where no state tells of the rate that is in force by now.
    }
    const bool parallel = held.memory->form() == core::Form::kParallel;
    const bool existed = scripts_.Command({"EXISTS", ScriptStore::KeyOf(held.key)}).integer == 1;
    const bool done =
        scripts_.Settle(*held.scripts, held.key, held.scripts_receipt, held.cost, actual, Now());
    const bool expected =
        memory_.Settle(*held.memory, held.key, held.memory_receipt, held.cost, actual, Now());
    Trace("settle", held.key, held.cost, actual, held.memory);
    // A counter at full quota may still be known here or there, with nothing to give back; and so
    // may a lease that has expired.
    if (!existed || (parallel && !done)) return;
    ASSERT_EQ(done, expected) << "settle " << held.cost << " to " << actual
                              << Words(held.memory->spec(), held.cost) << "\n  now"
                              << Words(limits_[held.limit].spec, 0) << "\n  charged at "
                              << held.scripts_receipt.at_ns / kUs << State();
  }
  void RenewOne() {
    Held held;
    if (!TakeHeld(true, held)) return;
    const int64_t ttl_ns = Pick(1, 20) * kSec;
    ASSERT_EQ(scripts_.Renew(*held.scripts, held.key, held.scripts_receipt, ttl_ns, Now()),
              memory_.Renew(*held.memory, held.key, held.memory_receipt, ttl_ns, Now()));
  }
  void ResetOne() {
    const Limit& limit = limits_[static_cast<size_t>(Pick(0, std::ssize(limits_) - 1))];
    const Key128 key = limit.keys[static_cast<size_t>(Pick(0, 1))];
    Reset(limit, key);
  }
  void Reset(const Limit& limit, Key128 key) {
    scripts_.Reset(*limit.scripts, key, Now());
    memory_.Reset(*limit.memory, key, Now());
    std::erase_if(held_, [&](const Held& held) { return held.key == key; });
  }

  // Both stores meet the new rate in the same instant: from when on it holds.
  void ChangeRate() {
    Limit& limit = limits_[static_cast<size_t>(Pick(0, std::ssize(limits_) - 1))];
    core::MeterSpec spec = PickSpec(limit.spec.algorithm);
    if (spec.rate.units == 0) spec.rate.units = 3;
    if (spec.algorithm == Algorithm::kTokenBucket && Chance(30))
      spec.rate = limit.spec.rate, spec.rate.burst = Pick(1, 50);
    if (spec.rate.units == 0) spec.rate.units = 3;
    // The memory store packs a small window's count, up to a few times its limit.
    constexpr int64_t kSmall = 1'000'000;
    const int64_t units = limit.spec.rate.units;
    if (spec.algorithm == Algorithm::kFixedWindow &&
        (units > kSmall) != (spec.rate.units > kSmall)) {
      spec.rate.units = std::min(units + Pick(0, 5), kMaxUnits);
    }
    if (limit.former && Chance(50)) spec = *limit.former;  // There and back.
    limit.former = limit.spec;
    const core::Meter* const before = limit.memory;
    SetSpec(limit, spec);
    for (const Key128 key : limit.keys) {
      // Of a counter that was full the scripts know nothing, the memory store that its rate
      // changed: what was charged before may come back here and not there. So may what is charged
      // within the memory store's slack after it, once the scripts need to know of the change no
      // more.
      if (memory_.Peek(*before, key, 0, Now()).reset_after_ns == 0) Reset(limit, key);
      // The memory store goes by the fastest rate that there ever was, the scripts by those that a
      // charge may still have seen.
      if (changes_[key.lo] > 0 && !RemembersChange(key)) {
        std::erase_if(held_, [&](const Held& held) { return held.key == key; });
        changed_us_[key.lo] = std::numeric_limits<int64_t>::max() / 2;
      }
      changed_us_[key.lo] = std::max(changed_us_[key.lo], now_us_);
      ++changes_[key.lo];
      std::vector<ScriptStore::Decision> one(1);
      one[0].charges.push_back({.meter = limit.scripts, .key = key, .cost = PickCost(limit)});
      if (spec.algorithm == Algorithm::kParallel) {
        one[0].charges[0].lease_id = random_() | 1;
        one[0].charges[0].lease_ttl_ns = Pick(1, 20) * kSec;
      }
      Decide(one);
    }
  }

  // WEIR_TRACE=1 tells the history as it goes.
  void Trace(const char* what, Key128 key, int64_t cost, int64_t result,
             const core::Meter* meter) const {
    static const bool on = std::getenv("WEIR_TRACE") != nullptr;
    if (!on) return;
    std::cerr << now_us_ << ' ' << what << ' ' << std::hex << key.lo << std::dec << ' ' << cost
              << " -> " << result << Words(meter->spec(), cost) << '\n';
  }

  // Whether the state still tells of an earlier rate: the form's first bit, and until when.
  bool RemembersChange(Key128 key) {
    const std::string head =
        scripts_.Command({"GETRANGE", ScriptStore::KeyOf(key), "0", "35"}).text;
    if (head.size() < 36 || static_cast<unsigned char>(head[0]) < 128) return false;
    int64_t until_us = 0;
    for (size_t i = 29; i < 36; ++i) until_us = until_us << 8 | static_cast<unsigned char>(head[i]);
    return until_us > now_us_;
  }

  std::string Words(const ScriptStore::Decision& decision) const {
    std::string words = decision.mode == Mode::kPeek ? " of a peek" : "";
    for (const Charge& charge : decision.charges) words += Words(charge.meter->spec(), charge.cost);
    return words + State();
  }
  static std::string Words(const core::MeterSpec& spec, int64_t cost) {
    return "\n  " + std::string(AlgorithmName(spec.algorithm)) + " " +
           std::to_string(spec.rate.units) + " per " + std::to_string(spec.rate.period.count()) +
           " ns, burst " + std::to_string(spec.rate.burst) +
           (spec.strict ? ", buckets " + std::to_string(spec.buckets) : "") + ", alignment " +
           std::to_string(static_cast<int>(spec.alignment)) + ", cost " + std::to_string(cost);
  }
  std::string State() const { return "\n  at " + std::to_string(now_us_) + " us"; }

  ScriptStore& scripts_;
  store::MemoryStore memory_{{.max_keys = 1000}};
  std::mt19937_64 random_;
  int64_t now_us_ = 0;
  int64_t latest_us_ = 0;
  int64_t last_wait_us_ = 0;
  bool too_long_ = false;
  bool back_ = false;  // The clock goes back a little at times.
  std::vector<Limit> limits_;
  std::vector<Held> held_;
  std::map<uint64_t, int64_t> changed_us_;
  std::map<uint64_t, int> changes_;
};

class ScriptDifferentialTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(
    Server, ScriptDifferentialTest, ::testing::Values("redis-server", "valkey-server"),
    [](const auto& server) {
      return std::string(server.param).substr(0, std::string(server.param).find('-'));
    });

TEST_P(ScriptDifferentialTest, EqualsTheMemoryStoreToTheUnit) {
  RedisServer server({.program = GetParam()});
  ScriptStore scripts(server.Console());
  const char* const wanted = std::getenv("WEIR_SEED");
  const char* const more = std::getenv("WEIR_HISTORIES");
  const uint64_t first = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 1;
  const uint64_t count = wanted != nullptr ? 1
                         : more != nullptr ? std::strtoull(more, nullptr, 10)
                                           : 120;
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("WEIR_SEED=" + std::to_string(seed));
    try {
      History(scripts, seed).Run(60);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

}  // namespace
}  // namespace weir::testing
