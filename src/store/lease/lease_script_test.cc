// The scripts on real servers, against the plain C++ that they must equal to the unit.

#include "store/lease/lease_script.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "core/int128.h"
#include "store/lease/node_share.h"
#include "testing/redis_server.h"

namespace weir::store::lease {

void PrintTo(const Grant& it, std::ostream* out) {
  *out << fmt::format(
      "status {} #{} since {} units {} of {} lasts {} holders {} available {} reset {} retry {}",
      static_cast<int>(it.status), it.number, it.since_us, it.units, it.allotment, it.lasts_us,
      it.holders, it.available, it.reset_us, it.retry_us);
}
void PrintTo(const TakeReply& it, std::ostream* out) {
  *out << fmt::format("other window {} allowed {} remaining {} reset {} retry {} receipt {} {} {}",
                      it.other_window, it.allowed, it.remaining, it.reset_us, it.retry_us,
                      it.receipt.a, it.receipt.b, it.receipt.at_ns);
}

namespace {

using std::chrono::milliseconds;
using weir::testing::RedisConsole;
using weir::testing::RedisServer;

constexpr int64_t kStart = 1'796'068'800'000'000;

void Replace(std::string* text, std::string_view what, std::string_view with) {
  const size_t at = text->find(what);
  if (at == std::string::npos) throw std::runtime_error("not in the script: " + std::string(what));
  text->replace(at, what.size(), with);
}

// The script with its clock replaced by the last argument.
std::string WithGivenClock(std::string_view script) {
  std::string text(script);
  Replace(&text, "local clock = redis.call('TIME')\nlocal now = clock[1] * 1000000 + clock[2]\n",
          "local now = tonumber(ARGV[#ARGV])\n");
  return text;
}

// So that a key does not expire by the server's clock while the given one stands still.
constexpr int64_t kHourMs = 3'600'000;
std::string KeptAnHourLonger(std::string text) {
  Replace(&text, "max(ceil_div(keep, 1000), 1)", "max(ceil_div(keep, 1000), 1) + 3600000");
  return text;
}

std::string Load(RedisConsole* console, const std::string& text) {
  const resp::Value loaded = console->Call({"SCRIPT", "LOAD", text});
  if (loaded.IsError()) throw std::runtime_error(loaded.text);
  return loaded.text;
}

class LeaseScriptTest : public ::testing::TestWithParam<const char*> {
 protected:
  LeaseScriptTest() : server_({.program = GetParam()}), console_(server_.Console()) {}

  // One call of the script.
  std::string Run(const std::string& sha1, const std::vector<std::string>& keys,
                  const std::vector<LeaseItem>& items, const std::string& clock = "") {
    const std::string count = std::to_string(keys.size());
    std::vector<std::string_view> words = {"EVALSHA", sha1, count};
    words.insert(words.end(), keys.begin(), keys.end());
    for (const LeaseItem& item : items) words.push_back(View(item));
    if (!clock.empty()) words.push_back(clock);
    const resp::Value reply = console_.Call(words);
    EXPECT_FALSE(reply.IsError()) << reply.text;
    return reply.text;
  }
  // Every key has an expiry.
  void ExpectNoKeyForever() {
    const resp::Value keys = console_.Call({"KEYS", "*"});
    for (const resp::Value& key : keys.items) {
      EXPECT_NE(console_.Call({"PTTL", key.text}).integer, -1) << key.text;
    }
  }

  RedisServer server_;
  RedisConsole console_;
};

// One step as the script is asked for it, with what the model says.
struct Step {
  int key = 0;
  LeaseItem item;
  std::function<void(std::string_view)> compare;
};

class History {
 public:
  explicit History(uint64_t seed) : random_(seed), states_(3) {
    for (LeaseTerms& terms : terms_) terms = PickTerms();
    // A change of algorithm or of windows has a key of its own.
    while (terms_[1].window != terms_[0].window) terms_[1] = PickTerms();
    terms_[1].calendar = terms_[0].calendar;
    terms_[1].period_us = terms_[0].period_us;
  }

  int64_t now_us() const { return now_us_; }
  // As of the instant at which it was written.
  int64_t KeepUs(int key) const {
    const LeaseState& state = states_[static_cast<size_t>(key)];
    return lease::KeepUs(state, state.base_us);
  }
  void Pass() {
    const int64_t scale[] = {0, 1000, 100'000, 3'000'000};
    now_us_ += Below(scale[Below(4)] + 1);
    if (Below(30) == 0) now_us_ -= Below(2'000);  // The clock goes back a little,
    if (Below(200) == 0) now_us_ -= 1'500'000;    // or too far.
  }

  Step Next() {
    Step step{.key = static_cast<int>(Below(3))};
    LeaseState* state = &states_[static_cast<size_t>(step.key)];
    const LeaseTerms& terms = terms_[Below(8) == 0 ? 1 : 0];
    const Windows windows = PickWindows(terms);
    switch (Below(9)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const RefillRequest request = PickRefill(step.key);
        const Grant grant = Refill(state, terms, request, windows, now_us_);
        if (grant.status == GrantStatus::kGranted) grants_[step.key][request.holder - 1] = grant;
        step.item = EncodeRefill(terms, windows, request);
        step.compare = [grant](std::string_view reply) { EXPECT_EQ(DecodeGrant(reply), grant); };
        break;
      }
      case 4: {
        const RefillRequest from = PickRefill(step.key);
        const GiveBackRequest request{.holder = from.holder,
                                      .number = from.number,
                                      .since_us = from.since_us,
                                      .applied = from.applied,
                                      .left = from.left};
        const bool done = GiveBack(state, terms, request, windows, now_us_);
        step.item = EncodeGiveBack(terms, windows, request);
        step.compare = [done](std::string_view reply) { EXPECT_EQ(DecodeDone(reply), done); };
        break;
      }
      case 5:
      case 6: {
        const int64_t cost = Below(3) == 0 ? Below(terms.burst + 2) : Below(5);
        const bool peek = Below(4) == 0;
        const TakeReply taken = peek ? Peek(*state, terms, cost, windows, now_us_)
                                     : Take(state, terms, cost, windows, now_us_);
        if (taken.allowed && !peek && cost > 0) receipts_.push_back(taken.receipt);
        step.item = peek ? EncodePeek(terms, windows, cost) : EncodeTake(terms, windows, cost);
        step.compare = [taken](std::string_view reply) { EXPECT_EQ(DecodeTake(reply), taken); };
        break;
      }
      case 7: {
        core::Receipt receipt;
        if (!receipts_.empty()) {
          receipt = receipts_[static_cast<size_t>(Below(static_cast<int64_t>(receipts_.size())))];
        }
        const int64_t units = 1 + Below(20);
        const bool done = PutBack(state, terms, receipt, units, windows, now_us_);
        step.item = EncodePutBack(terms, windows, receipt, units);
        step.compare = [done](std::string_view reply) { EXPECT_EQ(DecodeDone(reply), done); };
        break;
      }
      default: {
        const int64_t units = Below(40) == 0 ? int64_t{1} << Below(53) : Below(terms.burst + 1);
        Post(state, terms, units, windows, now_us_);
        const bool done = WindowAt(terms, windows, now_us_).has_value();
        step.item = EncodePost(terms, windows, units);
        step.compare = [done](std::string_view reply) { EXPECT_EQ(DecodeDone(reply), done); };
        break;
      }
    }
    return step;
  }

 private:
  int64_t Below(int64_t bound) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(std::max<int64_t>(bound, 1)));
  }
  LeaseTerms PickTerms() {
    for (;;) {
      const int64_t period_ns = int64_t{1000} << Below(33);
      const int64_t units = 1 + Below(Below(2) == 0 ? 200 : int64_t{1} << (1 + Below(40)));
      LeaseDefinition definition{.spec = {.rate = {.units = units,
                                                   .period = std::chrono::nanoseconds(period_ns),
                                                   .burst = 1 + Below(2 * units)}}};
      if (Below(3) == 0) {
        definition.spec.algorithm = Algorithm::kFixedWindow;
        definition.spec.rate.period = milliseconds(100 + Below(5000));
        if (Below(3) == 0) definition.spec.alignment = core::Alignment::kDay;
      }
      const auto terms =
          LeaseTerms::Compile(definition, Below(3) == 0 ? LeaseKind::kFast : LeaseKind::kReserved);
      if (terms) return *terms;
    }
  }
  Windows PickWindows(const LeaseTerms& terms) {
    if (!terms.calendar) return {.offset_us = terms.window ? terms.period_us / 3 : 0};
    // Days of two seconds, by a wall clock that may be behind.
    const int64_t start_us = (now_us_ - (Below(6) == 0 ? 3'000'000 : 0)) / 2'000'000 * 2'000'000;
    return {.calendar = {
                {{start_us, start_us + 2'000'000}, {start_us + 2'000'000, start_us + 4'000'000}}}};
  }
  RefillRequest PickRefill(int key) {
    const uint64_t holder = 1 + static_cast<uint64_t>(Below(3));
    const Grant& last = grants_[key][holder - 1];
    RefillRequest request{.holder = holder,
                          .number = last.number + Below(3),
                          .want = Below(4) == 0 ? Below(int64_t{1} << 30) : Below(200),
                          .term_us = 1 + Below(3'000'000)};
    if (Below(8) != 0) request.since_us = last.since_us;
    if (Below(6) != 0) request.applied = last.number;
    request.left = Below(3) == 0 ? 0 : Below(last.allotment + 1);
    if (Below(50) == 0) request.left = last.allotment + Below(10);  // As after a failover.
    return request;
  }

  std::mt19937_64 random_;
  int64_t now_us_ = kStart;
  LeaseTerms terms_[2];
  std::vector<LeaseState> states_;
  Grant grants_[3][3] = {};
  std::vector<core::Receipt> receipts_;
};

TEST_P(LeaseScriptTest, EqualsTheModelOverRandomHistories) {
  const std::string sha1 = Load(&console_, KeptAnHourLonger(WithGivenClock(kLeaseScript.text)));
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    History history(seed);
    for (int call = 0; call < 25; ++call) {
      history.Pass();
      const std::string clock = std::to_string(history.now_us());
      std::vector<Step> steps;
      std::vector<std::string> keys;
      std::vector<LeaseItem> items;
      for (int i = 0; i < 4; ++i) {
        steps.push_back(history.Next());
        keys.push_back(fmt::format("{{s}}:{}:{}", seed, steps.back().key));
        items.push_back(steps.back().item);
      }
      const std::string reply = Run(sha1, keys, items, clock);
      ASSERT_EQ(reply.size(), steps.size() * kLeaseReplyBytes);
      for (size_t i = 0; i < steps.size(); ++i) steps[i].compare(ReplyAt(reply, i));
      if (HasFailure()) FAIL() << "call " << call;
    }
    // What was written last carries the expiry that the model reckons with.
    for (int key = 0; key < 3; ++key) {
      const int64_t left_ms =
          console_.Call({"PTTL", fmt::format("{{s}}:{}:{}", seed, key)}).integer;
      const int64_t keep_ms = core::CeilDiv64(history.KeepUs(key), 1000) + kHourMs;
      if (left_ms == -2) continue;         // Never charged.
      EXPECT_LE(left_ms, keep_ms + 1000);  // A clock that went back stays behind by a second.
      EXPECT_GT(left_ms, keep_ms - 60'000);
    }
  }
  ExpectNoKeyForever();
}

TEST_P(LeaseScriptTest, TheShippedTextRunsOnTheServersClock) {
  EXPECT_EQ(Load(&console_, std::string(kLeaseScript.text)), kLeaseScript.sha1);
  const LeaseTerms terms =
      LeaseTerms::Compile(
          {.spec = {.rate = {.units = 100, .period = std::chrono::seconds(60), .burst = 100}}},
          LeaseKind::kReserved)
          .value();
  const std::string sha1(kLeaseScript.sha1);
  const RefillRequest request{.holder = 5, .number = 1, .want = 40, .term_us = 2'000'000};
  const std::optional<Grant> grant =
      DecodeGrant(Run(sha1, {"k"}, {EncodeRefill(terms, {}, request)}));
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->allotment, 40);
  EXPECT_EQ(grant->units, 30);
  EXPECT_EQ(grant->lasts_us, 2'000'000);
  const resp::Value time = console_.Call({"TIME"});
  EXPECT_NEAR(static_cast<double>(grant->since_us), std::stod(time.items[0].text) * 1e6, 5e6);
  // Kept until the lease has run out and what it took has refilled: 2 s, and 70 units of 600 ms.
  const int64_t ttl_ms = console_.Call({"PTTL", "k"}).integer;
  EXPECT_LE(ttl_ms, 44'000);
  EXPECT_GT(ttl_ms, 40'000);
  // A denial writes nothing.
  const std::string before = console_.Call({"GET", "k"}).text;
  const std::optional<TakeReply> denied = DecodeTake(Run(sha1, {"k"}, {EncodeTake(terms, {}, 50)}));
  ASSERT_TRUE(denied);
  EXPECT_FALSE(denied->allowed);
  EXPECT_EQ(console_.Call({"GET", "k"}).text, before);
}

TEST_P(LeaseScriptTest, AStateThatNobodyNeedsIsGone) {
  const LeaseTerms terms =
      LeaseTerms::Compile(
          {.spec = {.rate = {.units = 1000, .period = std::chrono::seconds(1), .burst = 1000}}},
          LeaseKind::kReserved)
          .value();
  const std::string sha1 = Load(&console_, std::string(kLeaseScript.text));
  Run(sha1, {"k"}, {EncodeTake(terms, {}, 20)});
  weir::testing::WaitFor("the key to expire",
                         [&] { return console_.Call({"EXISTS", "k"}).integer == 0; });
}

TEST_P(LeaseScriptTest, AResetForgetsTheCounterAndWhoHoldsIt) {
  const LeaseTerms terms =
      LeaseTerms::Compile(
          {.spec = {.rate = {.units = 1000, .period = std::chrono::hours(1), .burst = 1000}}},
          LeaseKind::kReserved)
          .value();
  const std::string sha1 = Load(&console_, std::string(kLeaseScript.text));
  const RefillRequest request{.holder = 7, .number = 1, .want = 100, .term_us = 2'000'000};
  Run(sha1, {"k", "k"}, {EncodeTake(terms, {}, 200), EncodeRefill(terms, {}, request)});
  EXPECT_EQ(DecodeDone(Run(sha1, {"k"}, {EncodeReset(terms)})), true);
  EXPECT_EQ(console_.Call({"EXISTS", "k"}).integer, 0);
  EXPECT_EQ(DecodeDone(Run(sha1, {"k"}, {EncodeReset(terms)})), false);
  EXPECT_EQ(DecodeTake(Run(sha1, {"k"}, {EncodePeek(terms, {}, 1000)}))->allowed, true);
}

TEST_P(LeaseScriptTest, CountsNodesAsTheModelDoes) {
  const std::string sha1 = Load(&console_, WithGivenClock(kNodeHeartbeatScript.text));
  std::mt19937_64 random(3);
  NodeRegistry model;
  int64_t now_us = kStart;
  for (int i = 0; i < 500; ++i) {
    now_us += static_cast<int64_t>(random() % 1'000'000);
    const uint64_t node = 1 + random() % 9;
    const bool leaves = random() % 7 == 0;
    const resp::Value reply =
        console_.Call({"EVALSHA", sha1, "1", "nodes", std::to_string(node), "3000000",
                       leaves ? "1" : "0", std::to_string(now_us)});
    if (leaves) {
      model.Leave(node);
    } else {
      ASSERT_EQ(reply.integer, model.Beat(node, now_us, 3'000'000)) << reply.text;
    }
  }
  ExpectNoKeyForever();
  EXPECT_EQ(Load(&console_, std::string(kNodeHeartbeatScript.text)), kNodeHeartbeatScript.sha1);
}

INSTANTIATE_TEST_SUITE_P(Servers, LeaseScriptTest,
                         ::testing::Values("redis-server", "valkey-server"), [](const auto& it) {
                           const std::string program = it.param;
                           return program.substr(0, program.find('-'));
                         });

TEST(LeaseScript, ARepliesSizeIsChecked) {
  EXPECT_FALSE(DecodeGrant("short"));
  EXPECT_FALSE(DecodeTake(""));
  EXPECT_FALSE(DecodeDone(std::string(81, 'x')));
  EXPECT_EQ(ReplyAt(std::string(159, 'x'), 1), "");
  EXPECT_EQ(ReplyAt(std::string(160, 'x'), 1).size(), 80u);
}

}  // namespace
}  // namespace weir::store::lease
