// Calls by descriptors, over the embedded store and over a real Redis: the same answers. Rates are
// per year, so that nothing comes back while a test runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "decide/descriptors.h"
#include "net/resolver.h"
#include "shared_store/redis_store.h"
#include "testing/loop_fixture.h"
#include "testing/redis_server.h"
#include "testing/simulated_engine.h"

namespace weir::decide {
namespace {

using ::testing::ElementsAre;
using testing::RedisServer;
using Entries = std::vector<DescriptorEntry>;

constexpr int64_t kMs = 1'000'000;
constexpr std::chrono::hours kYear{24 * 365};

struct Asked {
  Entries entries;
  int64_t hits = 1;
  std::optional<RateOverride> own_rate;
};

struct Status {
  bool allowed = false;
  std::string limit;  // The binding one's name.
  int64_t quota = -1;
  int64_t remaining = -1;
  friend bool operator==(const Status&, const Status&) = default;
};
[[maybe_unused]] void PrintTo(const Status& status, std::ostream* out) {
  *out << (status.allowed ? "OK " : "OVER ") << status.limit << " " << status.remaining << "/"
       << status.quota;
}
Status Ok(std::string limit, int64_t quota, int64_t remaining) {
  return {true, std::move(limit), quota, remaining};
}
Status Over(std::string limit, int64_t quota, int64_t remaining) {
  return {false, std::move(limit), quota, remaining};
}
const Status kNoLimit{true, "", -1, -1};

struct Answer {
  bool allowed = false;
  std::vector<Status> statuses;
  std::string error;
};

Answer AnswerOf(const Result<const Verdict*>& verdict) {
  if (!verdict) return {.error = verdict.error().message};
  Answer answer{.allowed = (*verdict)->allowed};
  for (const DescriptorStatus& status : (*verdict)->descriptors) {
    Status& said = answer.statuses.emplace_back(kNoLimit);
    said.allowed = status.allowed;
    if (status.unlimited) said.limit = "unlimited";
    if (status.binding == nullptr) continue;
    said.limit = status.binding->name;
    said.quota = status.binding->quota;
    said.remaining = status.binding->remaining;
  }
  return answer;
}

class Descriptors : public ::testing::TestWithParam<const char*> {
 public:
  ~Descriptors() override {
    if (store_) store_->Disconnect();
    loop_.reset();  // And the tasks that wait, before what they use.
  }

  bool shared() const { return std::string(GetParam()) != "memory"; }
  std::shared_ptr<const policy::Policy> Load(const std::string& limits) const {
    const std::string store = shared() ? "store: {kind: redis, url: 'redis://127.0.0.1'}\n"
                                         "identity: {secret: 0123456789abcdef}\n"
                                       : "";
    return LoadPolicy(store + "limits:\n" + limits);
  }
  void Start(const std::string& limits) {
    engine_ = Engine::Create({.policy = Load(limits), .clock = &loop_->clock(), .shared = shared()})
                  .value();
    if (shared()) {
      server_ = std::make_unique<RedisServer>(RedisServer::Options{.program = GetParam()});
      shared_store::RedisStoreOptions options;
      options.loop = &loop_->loop();
      options.resolver = &resolver_;
      options.memory = &engine_->local_store();
      options.node = &state_;
      options.metrics = &engine_->metrics();
      options.client = redis::ParseUrl(server_->url()).value();
      options.timeout_ns = 5'000 * kMs;
      store_ = std::make_unique<shared_store::RedisStore>(std::move(options));
    }
    worker_ = std::make_unique<Worker>(*engine_, 0, store_.get());
  }
  void Reload(const std::string& limits) { ASSERT_TRUE(engine_->Reload(Load(limits))); }
  core::Now Now() { return engine_->NowAt(loop_->loop().now_ns(), loop_->loop().wall_ns()); }

  Answer Decide(std::string_view domain, const std::vector<Asked>& asked, bool peek = false) {
    std::vector<Descriptor> descriptors;
    for (const Asked& one : asked)
      descriptors.push_back({.entries = one.entries, .hits = one.hits, .own_rate = one.own_rate});
    const DescriptorCall call{domain, descriptors};
    const DecideOptions options{.door = metrics::Door::kGrpc, .peek = peek};
    worker_->policy();
    if (!shared()) return AnswerOf(worker_->DecideDescriptors(call, options, Now()));
    Answer answer;
    loop_->RunTask(Ask(call, options, answer));
    return answer;
  }
  std::vector<Status> Statuses(std::string_view domain, const std::vector<Asked>& asked) {
    return Decide(domain, asked).statuses;
  }
  // How many of so many calls pass.
  int Admitted(int calls, std::string_view domain, const std::vector<Asked>& asked) {
    int admitted = 0;
    for (int i = 0; i < calls; ++i) admitted += Decide(domain, asked).allowed;
    return admitted;
  }
  Task<void> Ask(const DescriptorCall& call, const DecideOptions& options, Answer& answer) {
    const Result<DecisionPtr> decision = worker_->BeginDescriptors(call, options);
    if (!decision) {
      answer.error = decision.error().message;
      co_return;
    }
    const auto finished = worker_->FinishNow(**decision, Now());
    if (finished) {
      answer = AnswerOf(*finished);
      co_return;
    }
    const Result<const Verdict*> later = co_await worker_->Finish(**decision, Now());
    answer = AnswerOf(later);
  }
  int64_t Remaining(std::string_view domain, const Entries& entries) {
    std::vector<LimitState> states;
    if (shared()) {
      loop_->RunTask([](Descriptors& test, std::string_view of, const Entries& at,
                        std::vector<LimitState>& out) -> Task<void> {
        out = co_await test.worker_->DescriptorStateShared(of, at, test.Now());
      }(*this, domain, entries, states));
    } else {
      states = worker_->DescriptorState(domain, entries, Now());
    }
    return states.empty() ? -1 : states[0].step.remaining;
  }
  Result<void> Reset(std::string_view limit, const Entries& entries) {
    if (!shared()) return worker_->ResetDescriptor(limit, entries, Now());
    Result<void> done;
    loop_->RunTask([](Descriptors& test, std::string_view name, const Entries& at,
                      Result<void>& out) -> Task<void> {
      out = co_await test.worker_->ResetDescriptorShared(name, at, test.Now());
    }(*this, limit, entries, done));
    return done;
  }

  std::unique_ptr<RedisServer> server_;
  net::Resolver resolver_;
  shared_store::NodeState state_;
  std::unique_ptr<testing::LoopFixture> loop_ = std::make_unique<testing::LoopFixture>();
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<shared_store::RedisStore> store_;
  std::unique_ptr<Worker> worker_;
};

TEST_P(Descriptors, EachIsToldWhatItsOwnLimitsSay) {
  Start(R"(
  - {name: users, domain: d, descriptor: [{key: db, value: users}], rate: 3/year}
  - {name: any,   domain: d, descriptor: [{key: db}], rate: 5/year}
  - {name: free,  domain: d, descriptor: [{key: free}], rate: unlimited}
)");
  EXPECT_THAT(
      Statuses("d", {{{{"db", "users"}}}, {{{"db", "x"}}}, {{{"free", ""}}}, {{{"no", ""}}}}),
      ElementsAre(Ok("users", 3, 2), Ok("any", 5, 4), Status{true, "unlimited", -1, -1}, kNoLimit));
  EXPECT_THAT(Statuses("e", {{{{"db", "users"}}}}), ElementsAre(kNoLimit));
}

TEST_P(Descriptors, OverInOneChargesNoneAndTheOthersStillSayTheTruth) {
  Start(R"(
  - {name: a, domain: d, descriptor: [{key: a}], rate: 1/year}
  - {name: b, domain: d, descriptor: [{key: b}], rate: 5/year}
  - {name: c, domain: d, descriptor: [{key: c}], rate: 1/year}
)");
  const std::vector<Asked> all{{{{"a", "1"}}}, {{{"b", "1"}}}, {{{"c", "1"}}}};
  EXPECT_THAT(Statuses("d", all), ElementsAre(Ok("a", 1, 0), Ok("b", 5, 4), Ok("c", 1, 0)));
  for (int i = 0; i < 3; ++i) {  // The later ones out of what is known of the denial.
    const Answer denied = Decide("d", all);
    EXPECT_FALSE(denied.allowed);
    EXPECT_THAT(denied.statuses, ElementsAre(Over("a", 1, 0), Ok("b", 5, 4), Over("c", 1, 0)));
  }
  EXPECT_EQ(Remaining("d", {{"b", "1"}}), 4);
}

TEST_P(Descriptors, TwoThatMeetOnOneCounterAreChargedForBoth) {
  Start("  - {name: a, domain: d, descriptor: [{key: a}], rate: 5/year}\n");
  const Asked one{{{"a", "1"}}};
  EXPECT_THAT(Statuses("d", {one, one}), ElementsAre(Ok("a", 5, 3), Ok("a", 5, 3)));
  EXPECT_THAT(Statuses("d", {one, one}), ElementsAre(Ok("a", 5, 1), Ok("a", 5, 1)));
  EXPECT_THAT(Statuses("d", {one, one}), ElementsAre(Ok("a", 5, 1), Over("a", 5, 1)));
  EXPECT_EQ(Remaining("d", {{"a", "1"}}), 1);
  EXPECT_TRUE(Decide("d", {one}).allowed);
  const Asked two{.entries = {{"a", "1"}}, .hits = 2};
  EXPECT_THAT(Statuses("d", {two, two}), ElementsAre(Over("a", 5, 0), Over("a", 5, 0)));
}

TEST_P(Descriptors, SoAreTwoOfALeasedOne) {
  Start("  - {name: a, domain: d, descriptor: [{key: a}], rate: 1000/year, consistency: leased}\n");
  const Asked seven{.entries = {{"a", "1"}}, .hits = 7};
  const int admitted = Admitted(200, "d", {seven, seven});
  EXPECT_GT(admitted, 10);
  EXPECT_LE(admitted, 71);  // 71 * 14 = 994
}

TEST_P(Descriptors, HitsAreCountedForEach) {
  Start("  - {name: a, domain: d, descriptor: [{key: a}], rate: 10/year}\n");
  EXPECT_THAT(Statuses("d", {{.entries = {{"a", "1"}}, .hits = 7}, {{{"a", "2"}}}}),
              ElementsAre(Ok("a", 10, 3), Ok("a", 10, 9)));
  EXPECT_THAT(Statuses("d", {{.entries = {{"a", "1"}}, .hits = 4}}), ElementsAre(Over("a", 10, 3)));
  EXPECT_THAT(Statuses("d", {{.entries = {{"a", "1"}}, .hits = 3}}), ElementsAre(Ok("a", 10, 0)));
}

TEST_P(Descriptors, NoHitsAreALookThatSaysWhetherAnotherWouldPass) {
  Start("  - {name: a, domain: d, descriptor: [{key: a}], rate: 2/year}\n");
  const Asked look{.entries = {{"a", "1"}}, .hits = 0};
  const Asked hit{{{"a", "1"}}};
  const Asked other{{{"a", "2"}}};
  EXPECT_THAT(Statuses("d", {look}), ElementsAre(Ok("a", 2, 2)));
  EXPECT_THAT(Statuses("d", {hit}), ElementsAre(Ok("a", 2, 1)));
  EXPECT_THAT(Statuses("d", {look, other}), ElementsAre(Ok("a", 2, 1), Ok("a", 2, 1)));
  EXPECT_THAT(Statuses("d", {hit}), ElementsAre(Ok("a", 2, 0)));
  EXPECT_THAT(Statuses("d", {look, other}), ElementsAre(Over("a", 2, 0), Ok("a", 2, 1)));
  EXPECT_EQ(Remaining("d", {{"a", "2"}}), 1);
}

TEST_P(Descriptors, APeekChargesNothing) {
  Start("  - {name: a, domain: d, descriptor: [{key: a}], rate: 1/year}\n");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Decide("d", {{{{"a", "1"}}}}, /*peek=*/true).allowed);
  EXPECT_TRUE(Decide("d", {{{{"a", "1"}}}}).allowed);
  EXPECT_FALSE(Decide("d", {{{{"a", "1"}}}}, /*peek=*/true).allowed);
}

TEST_P(Descriptors, AllLimitsOfThePatternApplyAndTheBindingOneIsShown) {
  Start(R"(
  - {name: hour, domain: d, descriptor: [{key: a}], rate: 3/year}
  - {name: year, domain: d, descriptor: [{key: a}], rate: 100/year}
  - {name: test, domain: d, descriptor: [{key: a}], rate: 1/year, enforce: shadow}
)");
  EXPECT_EQ(Admitted(6, "d", {{{{"a", "1"}}}}), 3);
  EXPECT_THAT(Statuses("d", {{{{"a", "1"}}}}), ElementsAre(Over("hour", 3, 0)));
  EXPECT_EQ(Reset("hour", {{"a", "1"}}), Result<void>());
  EXPECT_THAT(Statuses("d", {{{{"a", "1"}}}}), ElementsAre(Ok("hour", 3, 2)));
  EXPECT_EQ(Reset("hour", {{"b", "1"}}).error().message, "descriptor: the limit binds to a");
  EXPECT_EQ(Reset("none", {{"a", "1"}}).error().code, ErrorCode::kNotFound);
}

// A missing hits_addend is the door's to turn into 1.
TEST_P(Descriptors, Case18_TheFourthOfThreeIsOver) {
  Start("  - {name: a, domain: d, descriptor: [{key: a}], rate: 3/year}\n");
  EXPECT_EQ(Admitted(4, "d", {{{{"a", "1"}}}}), 3);
}

TEST_P(Descriptors, Case16_NegativeHitsAreRefusedAndChangeNothing) {
  Start("  - {name: a, domain: d, descriptor: [{key: a}], rate: 10/year}\n");
  EXPECT_TRUE(Decide("d", {{.entries = {{"a", "1"}}, .hits = 3}}).allowed);
  EXPECT_THAT(Decide("d", {{.entries = {{"a", "1"}}, .hits = -5}}).error,
              ::testing::HasSubstr(
                  "descriptors[0].hits_addend: must be 0 to 2^53; hits are not given back"));
  EXPECT_EQ(Remaining("d", {{"a", "1"}}), 7);
}

TEST_P(Descriptors, Case27_NumbersBeyond32BitsAreExact) {
  Start(
      "  - {name: a, domain: d, descriptor: [{key: a}], rate: 30000000000/month, algorithm: "
      "fixed_window}\n");
  EXPECT_THAT(Statuses("d", {{.entries = {{"a", "1"}}, .hits = 5'000'000'000}}),
              ElementsAre(Ok("a", 30'000'000'000, 25'000'000'000)));
}

TEST_P(Descriptors, Case40_WhatIsNoCallIsRefusedAndLimitsOfOthersGoOn) {
  Start("  - {name: a, domain: d, descriptor: [{key: a}], rate: 3/year}\n");
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(Decide("d", {}).error, "descriptors: must be 1 to 256");
  EXPECT_EQ(Decide("", {{{{"a", "1"}}}}).error, "domain: must not be empty");
  EXPECT_EQ(Decide("d", {{}}).error, "descriptors[0].entries: must be 1 to 32");
  EXPECT_EQ(Decide("d", std::vector<Asked>(257, {{{"a", "1"}}})).error,
            "descriptors: must be 1 to 256");
  EXPECT_THAT(Statuses("unknown", {{{{"a", "1"}}}}), ElementsAre(kNoLimit));
  EXPECT_THAT(Statuses("d", {{{{"unknown", "1"}}}, {{{"a", "1"}}}}),
              ElementsAre(kNoLimit, Ok("a", 3, 2)));
}

TEST_P(Descriptors, Case41_AHigherRateThatComesWithTheCallHolds) {
  Start(
      "  - {name: w, domain: d, descriptor: [{key: w}], rate: 9/year, algorithm: fixed_window}\n");
  for (const char* const key : {"bucket", "w"}) {
    const Asked low{{{key, "1"}}, 1, RateOverride{2, kYear}};
    const Asked high{{{key, "1"}}, 1, RateOverride{100, kYear}};
    const std::string name = std::string(key) == "w" ? "w" : "";
    EXPECT_EQ(Admitted(4, "d", {low}), 2);
    EXPECT_THAT(Statuses("d", {high}), ElementsAre(Ok(name, 100, 97)));
    EXPECT_THAT(Statuses("d", {low}), ElementsAre(Over(name, 2, 0)));
  }
  EXPECT_THAT(Statuses("d", {{{{"w", "1"}}}}), ElementsAre(Ok("w", 9, 5)));  // Its own rate.
}

TEST_P(Descriptors, ARateThatComesWithTheCallStandsForAllLimitsOfThePattern) {
  Start(R"(
  - {name: test, domain: d, descriptor: [{key: a}], rate: 1/year, enforce: shadow}
  - {name: year, domain: d, descriptor: [{key: a}], rate: 3/year}
  - {name: none, domain: d, descriptor: [{key: b}], rate: unlimited}
)");
  EXPECT_EQ(Admitted(9, "d", {{{{"a", "1"}}, 1, RateOverride{5, kYear}}}), 5);
  EXPECT_THAT(Statuses("d", {{{{"a", "1"}}}}), ElementsAre(Over("year", 3, 0)));
  EXPECT_THAT(Statuses("d", {{{{"b", "1"}}, 1, RateOverride{2, kYear}}}),
              ElementsAre(Ok("", 2, 1)));
  EXPECT_EQ(Admitted(9, "d", {{{{"a", "2"}}, 1, RateOverride{0, kYear}}}), 0);
}

TEST_P(Descriptors, OneCounterUnderTwoRatesIsRefused) {
  Start("  - {name: a, domain: d, descriptor: [{key: a}], rate: 3/year}\n");
  EXPECT_EQ(Decide("d", {{{{"a", "1"}}}, {{{"a", "1"}}, 1, RateOverride{5, kYear}}}).error,
            "descriptors[1].limit: an equal descriptor has another rate");
  EXPECT_THAT(Decide("d", {{{{"a", "1"}}, 1, RateOverride{5, {}}}}).error,
              ::testing::HasSubstr("descriptors[0].limit: must be 0 to 2^53 requests"));
  EXPECT_EQ(Remaining("d", {{"a", "1"}}), 3);
}

TEST_P(Descriptors, Case70_NoTwoDescriptorsAreSpeltAlike) {
  Start(R"(
  - {name: one, domain: d, descriptor: [{key: k}], rate: 1/year}
  - {name: two, domain: d, descriptor: [{key: k}, {key: l}], rate: 1/year}
)");
  const std::pair<const char*, const char*> pairs[] = {{"ab", "c"},  {"a", "bc"},  {"a|b", "c"},
                                                       {"a", "b|c"}, {"a:b", "c"}, {"a", "b:c"},
                                                       {"a_b", ""},  {"a", "b"}};
  for (const auto& [first, second] : pairs) {
    EXPECT_TRUE(Decide("d", {{{{"k", first}, {"l", second}}}}).allowed) << first << " " << second;
    EXPECT_FALSE(Decide("d", {{{{"k", first}, {"l", second}}}}).allowed);
  }
  EXPECT_EQ(Admitted(2, "d", {{{{"k", "x}{y"}}}}), 1);
  // Nor those that meet no limit, and bring their own rate.
  const auto own = [](Entries entries) {
    return std::vector<Asked>{{std::move(entries), 1, RateOverride{1, kYear}}};
  };
  EXPECT_EQ(Admitted(2, "e", own({{"ab", "c"}})), 1);
  EXPECT_EQ(Admitted(2, "e", own({{"a", "bc"}})), 1);
  EXPECT_EQ(Admitted(2, "e", own({{"a", "b"}, {"c", ""}})), 1);
  EXPECT_EQ(Admitted(2, "ea", own({{"b", "c"}})), 1);
}

TEST_P(Descriptors, AReloadCarriesTheUsedUnitsOver) {
  const auto rate = [](const std::string& text) {
    return "  - {name: a, domain: d, descriptor: [{key: a, value: '*'}], rate: " + text + "}\n";
  };
  Start(rate("10/year"));
  EXPECT_EQ(Admitted(14, "d", {{{{"a", "1"}}}}), 10);
  Reload(rate("15/year"));
  EXPECT_EQ(Admitted(14, "d", {{{{"a", "1"}}}}), 5);
  Reload("  - {name: a, domain: d, descriptor: [{key: a}], rate: 17/year}\n");
  EXPECT_EQ(Admitted(14, "d", {{{{"a", "1"}}}}), 2);
}

INSTANTIATE_TEST_SUITE_P(Stores, Descriptors, ::testing::Values("memory", "redis-server"),
                         [](const auto& it) {
                           const std::string store = it.param;
                           return store.substr(0, store.find('-'));
                         });

}  // namespace
}  // namespace weir::decide
