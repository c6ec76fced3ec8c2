// The path over a shared store against the embedded one: the same calls get the same answers.
#include <gtest/gtest.h>

#include <coroutine>
#include <random>
#include <string>
#include <vector>

#include "testing/simulated_engine.h"

namespace weir::decide {
namespace {

// A shared store that answers at once, out of memory.
class NearStore final : public store::SharedStore {
 public:
  Task<bool> Decide(std::span<const store::Charge> charges,
                    std::span<const store::SharedTerms> terms,
                    std::span<store::SharedOutcome> outcomes, core::Now now,
                    store::Mode mode) override {
    last_terms.assign(terms.begin(), terms.end());
    std::vector<store::Outcome> answers(charges.size());
    const bool admitted = memory->Decide(charges, answers, now, mode);
    for (size_t i = 0; i < answers.size(); ++i) {
      static_cast<store::Outcome&>(outcomes[i]) = answers[i];
      outcomes[i].source = source;
      outcomes[i].known = std::ranges::find(unknown, i) == unknown.end();
    }
    co_return admitted;
  }
  std::optional<bool> DecideNow(std::span<const store::Charge>, std::span<const store::SharedTerms>,
                                std::span<store::SharedOutcome>, core::Now, store::Mode) override {
    return std::nullopt;
  }
  Task<bool> Settle(std::span<const store::SharedCharge> charges, core::Now now) override {
    for (const store::SharedCharge& charge : charges)
      memory->Settle(*charge.meter, charge.key, charge.receipt, charge.reserved, charge.actual,
                     now);
    settled += static_cast<int>(charges.size());
    co_return true;
  }
  Task<bool> Renew(std::span<const store::SharedCharge> charges, int64_t ttl_ns,
                   core::Now now) override {
    bool renewed = true;
    for (const store::SharedCharge& charge : charges)
      renewed = memory->Renew(*charge.meter, charge.key, charge.receipt, ttl_ns, now) && renewed;
    co_return renewed;
  }
  void OnPolicy() override { ++policies; }
  Task<bool> Reset(std::span<const store::SharedCharge> charges, core::Now now) override {
    for (const store::SharedCharge& charge : charges) memory->Reset(*charge.meter, charge.key, now);
    co_return !away;
  }

  store::MemoryStore* memory = nullptr;  // The one that the meters belong to.
  Source source = Source::kRedis;
  std::vector<size_t> unknown;
  std::vector<store::SharedTerms> last_terms;
  int settled = 0;
  int policies = 0;
  bool away = false;
};

// The result of a task that does not wait.
template <typename T>
T Now(Task<T> task) {
  auto awaiter = std::move(task).operator co_await();
  awaiter.await_suspend(std::noop_coroutine()).resume();
  return awaiter.await_resume();
}

constexpr const char* kShared =
    "store: {kind: redis, url: 'redis://127.0.0.1'}\n"
    "identity: {secret: 0123456789abcdef}\n";

// An engine over a NearStore.
class SharedEngine {
 public:
  explicit SharedEngine(const std::string& limits) {
    engine =
        Engine::Create({.policy = LoadPolicy(kShared + limits), .clock = &clock, .shared = true})
            .value();
    store.memory = &engine->local_store();
    worker = std::make_unique<Worker>(*engine, 0, &store);
  }
  core::Now now() const { return engine->NowAt(clock.MonotonicNs(), clock.RealtimeNs()); }
  policy::Attributes Call(SimulatedEngine::Pairs pairs) {
    policy::Attributes call;
    for (const auto& [name, value] : pairs)
      call.Set(worker->policy().attributes().Find(name).value(), value);
    return call;
  }
  DecisionPtr Begin(SimulatedEngine::Pairs pairs, const Costs& costs = Costs::Requests(),
                    const DecideOptions& options = {}) {
    return worker->Begin(Call(pairs), costs, options);
  }

  SimulatedClock clock;
  NearStore store;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Worker> worker;
};

// All that an answer shows, but for who answered.
std::string Shown(const Verdict& verdict) {
  std::string text = verdict.allowed ? "allowed" : "denied";
  const auto add = [&](int64_t number) { text += ' ' + std::to_string(number); };
  add(verdict.retry_after_ns);
  text += verdict.binding != nullptr ? ' ' + std::string(verdict.binding->name) : " -";
  for (const LimitVerdict& limit : verdict.limits) {
    text += "; " + std::string(limit.name) + (limit.allowed ? " +" : " -");
    for (const int64_t number : {limit.cost, limit.quota, limit.remaining, limit.reset_after_ns,
                                 limit.retry_after_ns, limit.window_s})
      add(number);
  }
  return text;
}

constexpr const char* kLimits =
    "limits:\n"
    "- {name: bucket,   per: [client], rate: 7/s, burst: 3}\n"
    "- {name: window,   per: [client, model], rate: 5/min, algorithm: fixed_window, "
    "align: calendar}\n"
    "- {name: log,      per: [ip], rate: 9/3s, algorithm: sliding_window}\n"
    "- {name: tokens,   per: [client], rate: 100 tokens/s}\n"
    "- {name: watched,  rate: 4/s, enforce: shadow}\n"
    "- {name: asked,    per: [model], rate: 50/s, missing: deny}\n"
    "- {name: parallel, per: [client], parallel: 2}\n";

TEST(SharedDecide, AnswersAsTheEmbeddedStoreDoes) {
  const std::string limits(kLimits);
  SimulatedEngine memory(limits);
  SharedEngine shared(limits);
  std::mt19937 random(20261201);
  const char* const clients[] = {"a", "b"};
  const char* const models[] = {"m", "n"};
  std::vector<std::pair<ReservationId, ReservationId>> open;
  int denied = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto step = std::chrono::milliseconds(random() % 120);
    memory.Advance(step);
    shared.clock.Advance(step);
    if (!open.empty() && random() % 4 == 0) {
      const auto [first, second] = open.back();
      open.pop_back();
      Costs actual;
      actual.Set(Unit::kTokens, static_cast<int64_t>(random() % 40));
      const bool release = random() % 2 == 0;
      const auto one = release ? memory.worker->Release(first, memory.now())
                               : memory.worker->Settle(first, actual, memory.now());
      const auto two = Now(release ? shared.worker->ReleaseShared(second, shared.now())
                                   : shared.worker->SettleShared(second, actual, shared.now()));
      ASSERT_EQ(one.has_value(), two.has_value());
      if (one) {
        ASSERT_EQ(*one, *two);
      }
      continue;
    }
    const char* const client = clients[random() % 2];
    const char* const model = models[random() % 2];
    Costs costs = Costs::Requests(static_cast<int64_t>(random() % 3));
    if (random() % 2 == 0) costs.Set(Unit::kTokens, static_cast<int64_t>(random() % 30));
    DecideOptions options{.peek = random() % 8 == 0, .next_unit = false};
    if (random() % 3 == 0) options.reserve_ttl_ns = 1'000'000'000;
    const SimulatedEngine::Pairs pairs = {{"client", client}, {"model", model}, {"ip", "10.0.0.1"}};
    const Verdict& expected = memory.Decide(pairs, costs, options);
    const DecisionPtr decision = shared.Begin(pairs, costs, options);
    const auto finished = Now(shared.worker->Finish(*decision, shared.now()));
    ASSERT_TRUE(finished.has_value());
    ASSERT_EQ(Shown(**finished), Shown(expected)) << "step " << i;
    ASSERT_EQ((*finished)->reservation.has_value(), expected.reservation.has_value());
    if (expected.reservation) open.push_back({*expected.reservation, *(*finished)->reservation});
    if (expected.allowed) {
      ASSERT_EQ((*finished)->source, Source::kRedis);
    }
    denied += expected.allowed ? 0 : 1;
  }
  EXPECT_GT(denied, 500);
  EXPECT_GT(shared.store.settled, 100);
}

TEST(SharedDecide, LimitsThatNobodyAskedDoNotShow) {
  SharedEngine shared(
      "limits: [{name: one, rate: 1/min}, {name: two, rate: 2/min}, {name: three, rate: 3/min}]");
  shared.store.unknown = {0, 2};
  const DecisionPtr decision = shared.Begin({{"client", "a"}});
  const auto finished = Now(shared.worker->Finish(*decision, shared.now()));
  ASSERT_TRUE(finished.has_value());
  ASSERT_EQ((*finished)->limits.size(), 1u);
  EXPECT_EQ((*finished)->limits[0].name, "two");
  EXPECT_EQ((*finished)->limits[0].remaining, 1);
  EXPECT_EQ((*finished)->binding->name, "two");
}

TEST(SharedDecide, ManyDecisionsMayBeUnderWayWhileThePolicyChanges) {
  SharedEngine shared("limits: [{name: old, per: [client], rate: 2/min}]");
  std::vector<DecisionPtr> decisions;
  for (int i = 0; i < 3; ++i) decisions.push_back(shared.Begin({{"client", "a"}}));
  ASSERT_TRUE(shared.engine
                  ->Reload(LoadPolicy(std::string(kShared) +
                                      "limits: [{name: new, per: [client], rate: 9/min}]"))
                  .has_value());
  const int before = shared.store.policies;
  shared.worker->policy();
  EXPECT_EQ(shared.store.policies, before + 1);
  std::vector<std::string> answers;
  for (const DecisionPtr& decision : decisions) {
    const auto finished = Now(shared.worker->Finish(*decision, shared.now()));
    answers.push_back(std::string((*finished)->limits[0].name) +
                      ((*finished)->allowed ? " allowed" : " denied"));
  }
  EXPECT_EQ(answers, (std::vector<std::string>{"old allowed", "old allowed", "old denied"}));
  const DecisionPtr next = shared.Begin({{"client", "a"}});
  EXPECT_EQ((*Now(shared.worker->Finish(*next, shared.now())))->limits[0].name, "new");
}

TEST(SharedDecide, OneClientsLimitsShareATagAndOthersDoNot) {
  SharedEngine shared(
      "limits: [{name: a, per: [client], rate: 9/s, on_failure: open}, "
      "{name: b, per: [client, model], rate: 9/s, consistency: local}, {name: c, rate: 9/s}]");
  const auto terms_of = [&](const char* client) {
    const DecisionPtr decision = shared.Begin({{"client", client}, {"model", "m"}});
    Now(shared.worker->Finish(*decision, shared.now()));
    return shared.store.last_terms;
  };
  const std::vector<store::SharedTerms> alice = terms_of("alice");
  const std::vector<store::SharedTerms> bob = terms_of("bob");
  EXPECT_EQ(alice[0].tag, alice[1].tag);
  EXPECT_NE(alice[0].tag, alice[2].tag);
  EXPECT_NE(alice[0].tag, bob[0].tag);
  EXPECT_EQ(alice[2].tag, bob[2].tag);
  EXPECT_EQ(alice[0].on_failure, store::OnFailure::kOpen);
  EXPECT_EQ(alice[1].consistency, store::Consistency::kLocal);
  EXPECT_EQ(alice[2].on_failure, store::OnFailure::kLocalShare);
}

TEST(SharedDecide, RulesThatComeWithTheCallAreSharedByAlgorithmAndKey) {
  SharedEngine shared("limits: []");
  const auto decide = [&](std::string_view key, int64_t units) {
    core::MeterSpec spec;
    spec.rate = {.units = units, .period = std::chrono::minutes(1), .burst = units};
    const auto decision = shared.worker->BeginAdHoc({.key = key, .spec = spec, .name = "r"}, 1, {});
    return (*Now(shared.worker->Finish(**decision, shared.now())))->limits[0].remaining;
  };
  EXPECT_EQ(decide("k", 5), 4);
  EXPECT_EQ(decide("k", 5), 3);
  EXPECT_EQ(decide("other", 5), 4);
  EXPECT_EQ(decide("k", 10), 7);  // What was used stays used under another rate.
}

TEST(SharedDecide, ResetAndStateSayWhenTheStoreIsAway) {
  SharedEngine shared("limits: [{name: a, per: [client], rate: 5/min}]");
  const policy::Attributes call = shared.Call({{"client", "x"}});
  const DecisionPtr decision = shared.Begin({{"client", "x"}});
  Now(shared.worker->Finish(*decision, shared.now()));
  EXPECT_EQ(Now(shared.worker->StateShared(call, shared.now()))[0].step.remaining, 4);
  ASSERT_TRUE(Now(shared.worker->ResetShared("a", call, shared.now())).has_value());
  EXPECT_EQ(Now(shared.worker->StateShared(call, shared.now()))[0].step.remaining, 5);
  shared.store.away = true;
  EXPECT_EQ(Now(shared.worker->ResetShared("a", call, shared.now())).error().code,
            ErrorCode::kUnavailable);
  EXPECT_EQ(Now(shared.worker->ResetShared("b", call, shared.now())).error().code,
            ErrorCode::kNotFound);
}

TEST(SharedDecide, AProgramWithoutASharedStoreRefusesAPolicyThatWantsOne) {
  SimulatedClock clock;
  const auto engine = Engine::Create({.policy = LoadPolicy(kShared), .clock = &clock});
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().message,
            "store.kind: this program counts in process only; write `memory`");
}

}  // namespace
}  // namespace weir::decide
