#include "metrics/weir_metrics.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace weir::metrics {
namespace {

base::Key128 KeyOf(uint64_t n) { return base::KeyHasher(7).Begin().Add(n).Finish(); }

WeirMetricsOptions Options() {
  return {
      .shards = 2,
      .version = "1.2.3",
      .doors = {Door::kGateway, Door::kApi},
      .client_id = [](std::string_view client) { return "attr:" + std::to_string(client.size()); }};
}

bool HasLine(const std::string& page, const std::string& line) {
  return ("\n" + page).find("\n" + line + "\n") != std::string::npos;
}

size_t SampleLines(const std::string& page) {
  std::istringstream lines(page);
  size_t count = 0;
  for (std::string line; std::getline(lines, line);) count += !line.empty() && line[0] != '#';
  return count;
}

TEST(WeirMetrics, CountsDecisionsByDoorOutcomeAndSource) {
  WeirMetrics metrics(Options());
  metrics.OnDecision(0, Door::kApi, Outcome::kDenied, Source::kMemory);
  metrics.OnDecision(1, Door::kApi, Outcome::kDenied, Source::kMemory);
  metrics.OnDecision(1, Door::kGateway, Outcome::kAllowed, Source::kFallback);
  metrics.OnDecision(1, Door::kGrpc, Outcome::kAllowed, Source::kRedis);  // Not declared.
  const std::string page = metrics.Expose();
  EXPECT_TRUE(
      HasLine(page, R"(weir_decisions_total{door="api",outcome="denied",source="memory"} 2)"));
  EXPECT_TRUE(HasLine(
      page, R"(weir_decisions_total{door="gateway",outcome="allowed",source="fallback"} 1)"));
  EXPECT_TRUE(
      HasLine(page, R"(weir_decisions_total{door="gateway",outcome="denied",source="memory"} 0)"));
  EXPECT_EQ(page.find("grpc"), std::string::npos);
  EXPECT_TRUE(HasLine(page, R"(weir_build_info{version="1.2.3"} 1)"));
  EXPECT_EQ(metrics.DecisionCount(Outcome::kDenied), 2u);
  EXPECT_EQ(metrics.DecisionCount(Outcome::kAllowed), 1u);
}

TEST(WeirMetrics, CountsLimitsByLayerAndOutcome) {
  WeirMetrics metrics(Options());
  const auto limits = metrics.BindLimits({{"per-ip", "ip"}, {"per-client", "client"}});
  metrics.OnLimit(0, limits[1], Outcome::kAllowed, /*near=*/true);
  metrics.OnLimit(1, limits[1], Outcome::kShadowDenied);
  const std::string page = metrics.Expose();
  EXPECT_TRUE(HasLine(
      page,
      R"(weir_limit_decisions_total{limit="per-client",layer="client",outcome="allowed"} 1)"));
  EXPECT_TRUE(HasLine(
      page,
      R"(weir_limit_decisions_total{limit="per-client",layer="client",outcome="shadow_denied"} 1)"));
  EXPECT_TRUE(HasLine(
      page, R"(weir_limit_decisions_total{limit="per-ip",layer="ip",outcome="allowed"} 0)"));
  EXPECT_TRUE(HasLine(page, R"(weir_limit_near_total{limit="per-client"} 1)"));
}

TEST(WeirMetrics, NearIsFourFifthsUsed) {
  EXPECT_TRUE(WeirMetrics::IsNear(1, 5));
  EXPECT_FALSE(WeirMetrics::IsNear(2, 5));
  EXPECT_TRUE(WeirMetrics::IsNear(0, 4));
  EXPECT_FALSE(WeirMetrics::IsNear(1, 4));
  EXPECT_TRUE(WeirMetrics::IsNear(int64_t{1} << 50, int64_t{1} << 53));
}

TEST(WeirMetrics, Case46_CountersGoOnAfterAReload) {
  WeirMetrics metrics(Options());
  const auto before = metrics.BindLimits({{"a", "client"}, {"b", "client"}});
  for (int i = 0; i < 3; ++i) metrics.OnLimit(0, before[1], Outcome::kDenied);
  const auto after =
      metrics.BindLimits({{"new", "ip"}, {"b", "client"}});  // At another place among others.
  for (int i = 0; i < 2; ++i) metrics.OnLimit(0, after[1], Outcome::kDenied);
  EXPECT_EQ(before[1].id, after[1].id);
  std::string page = metrics.Expose();
  EXPECT_TRUE(
      HasLine(page, R"(weir_limit_decisions_total{limit="b",layer="client",outcome="denied"} 5)"));
  EXPECT_EQ(page.find("limit=\"a\""), std::string::npos);

  metrics.OnLimit(1, before[0], Outcome::kAllowed);  // A call that began under the old policy.
  metrics.BindLimits({{"a", "client"}});
  page = metrics.Expose();
  EXPECT_TRUE(
      HasLine(page, R"(weir_limit_decisions_total{limit="a",layer="client",outcome="allowed"} 1)"));
}

TEST(WeirMetrics, Case46_ReloadsAndScrapesRunBesideTheLoops) {
  WeirMetrics metrics(Options());
  const auto limits = metrics.BindLimits({{"b", "client"}});
  std::thread loop([&] {
    for (int i = 0; i < 20'000; ++i) {
      metrics.OnLimit(0, limits[0], Outcome::kDenied);
      metrics.hot_keys().OnLimit(0, limits[0].id, KeyOf(1), "key:x", true, 1, 2);
    }
  });
  for (int i = 0; i < 50; ++i) {
    metrics.BindLimits({{"b", "client"}, {i % 2 == 0 ? "x" : "y", "ip"}});
    ASSERT_FALSE(metrics.Expose().empty());
  }
  loop.join();
  EXPECT_TRUE(
      HasLine(metrics.Expose(),
              R"(weir_limit_decisions_total{limit="b",layer="client",outcome="denied"} 20000)"));
}

TEST(WeirMetrics, Case47_SeriesDoNotGrowWithTraffic) {
  WeirMetrics metrics(Options());
  const auto limits = metrics.BindLimits({{"per-client", "client"}});
  const auto call = [&](uint64_t n) {
    const std::string client = "secret-key-" + std::to_string(n);
    metrics.OnDecision(0, Door::kApi, Outcome::kDenied, Source::kMemory);
    metrics.OnLimit(0, limits[0], Outcome::kDenied);
    metrics.hot_keys().OnClient(0, KeyOf(n), client, /*hashed=*/false, /*allowed=*/false);
    metrics.hot_keys().OnLimit(0, limits[0].id, KeyOf(n), client, /*hashed=*/false, 0, 5);
  };
  call(0);
  const size_t one = SampleLines(metrics.Expose());
  for (uint64_t n = 1; n < 100'000; ++n) call(n);
  const std::string page = metrics.Expose();
  EXPECT_LE(SampleLines(page), one + 99);
  EXPECT_EQ(page.find("secret"), std::string::npos);
  EXPECT_TRUE(HasLine(
      page,
      R"(weir_limit_decisions_total{limit="per-client",layer="client",outcome="denied"} 100000)"));
}

TEST(WeirMetrics, Case47_AtMostOneHundredHottestClientsAreShown) {
  WeirMetrics metrics(Options());
  const auto limits = metrics.BindLimits({{"l", "client"}});
  for (uint64_t n = 0; n < 300; ++n) {
    metrics.hot_keys().OnLimit(0, limits[0].id, KeyOf(n), "key:" + std::to_string(n),
                               /*hashed=*/true, 1, 4);
  }
  metrics.hot_keys().OnLimit(0, limits[0].id, KeyOf(7), "key:7", true, 3, 4);
  const std::string page = metrics.Expose();
  size_t shown = 0;
  for (size_t at = page.find("weir_limit_remaining_ratio{"); at != std::string::npos;
       at = page.find("weir_limit_remaining_ratio{", at + 1)) {
    ++shown;
  }
  EXPECT_EQ(shown, 100u);
  EXPECT_TRUE(HasLine(page, R"(weir_limit_remaining_ratio{limit="l",client="key:7"} 0.75)"));
}

TEST(WeirMetrics, LimitNamesOverTheProcessLifeAreBounded) {
  WeirMetricsOptions options = Options();
  options.max_limits = 3;
  WeirMetrics metrics(options);
  for (int i = 0; i < 50; ++i) {
    const std::string name = "limit-" + std::to_string(i);
    const auto limits = metrics.BindLimits({{name, "ip"}});
    metrics.OnLimit(0, limits[0], Outcome::kDenied);
  }
  EXPECT_TRUE(
      HasLine(metrics.Expose(),
              R"(weir_limit_decisions_total{limit="other",layer="ip",outcome="denied"} 47)"));
}

TEST(WeirMetrics, EverySixtyFourthDecisionIsTimed) {
  WeirMetrics metrics(Options());
  int timed = 0;
  for (int i = 0; i < 129; ++i) timed += metrics.ShouldTime(0);
  EXPECT_EQ(timed, 3);
  EXPECT_TRUE(metrics.ShouldTime(1));
  metrics.OnDecisionDuration(0, 90);
  EXPECT_TRUE(HasLine(metrics.Expose(), R"(weir_decision_duration_seconds_bucket{le="1e-07"} 1)"));
}

TEST(WeirMetrics, UpstreamsConnectionsAndState) {
  WeirMetrics metrics(Options());
  const auto upstreams = metrics.BindUpstreams({"ai"});
  upstreams[0].answers[2].Add(0);
  upstreams[0].answers[0].Add(1);
  upstreams[0].pending.Add(0, 2);
  upstreams[0].pending.Add(1, -1);
  upstreams[0].first_byte.Record(0, 1'500'000);
  metrics.OnConnection(0, Door::kGateway, 1);
  metrics.OnConnection(1, Door::kGateway, 1);
  metrics.OnConnection(0, Door::kGateway, -1);
  metrics.OnConnection(0, Door::kGrpc, 1);  // Not declared.
  metrics.OnStream(0, 1);
  metrics.OnStoreRequest(0, StoreOp::kDecide, 2'000);
  metrics.SetReloadSuccessful(true);
  metrics.SetBreakerState(0, WeirMetrics::BreakerState::kOpen);
  metrics.SetBreakerState(1, WeirMetrics::BreakerState::kHalfOpen);
  metrics.SetStoreKeys([] { return uint64_t{12}; });
  const std::string page = metrics.Expose();
  EXPECT_TRUE(HasLine(page, R"(weir_upstream_requests_total{upstream="ai",class="2xx"} 1)"));
  EXPECT_TRUE(HasLine(page, R"(weir_upstream_requests_total{upstream="ai",class="none"} 1)"));
  EXPECT_TRUE(HasLine(page, R"(weir_upstream_pending{upstream="ai"} 1)"));
  EXPECT_TRUE(
      HasLine(page, R"(weir_upstream_first_byte_seconds_bucket{upstream="ai",le="0.0025"} 1)"));
  EXPECT_TRUE(HasLine(page, R"(weir_connections{door="gateway"} 1)"));
  EXPECT_TRUE(HasLine(page, R"(weir_connections_opened_total{door="gateway"} 2)"));
  EXPECT_EQ(page.find("door=\"grpc\""), std::string::npos);
  EXPECT_TRUE(HasLine(page, "weir_streams 1"));
  EXPECT_TRUE(HasLine(page, R"(weir_store_request_duration_seconds_count{op="reset"} 0)"));
  EXPECT_TRUE(HasLine(page, R"(weir_store_request_duration_seconds_count{op="decide"} 1)"));
  EXPECT_TRUE(HasLine(page, "weir_config_last_reload_successful 1"));
  EXPECT_TRUE(HasLine(page, "weir_store_breaker_state 1"));
  EXPECT_TRUE(HasLine(page, "weir_store_keys 12"));
  metrics.SetBreakerState(0, WeirMetrics::BreakerState::kClosed);
  EXPECT_TRUE(HasLine(metrics.Expose(), "weir_store_breaker_state 2"));
  metrics.SetBreakerState(1, WeirMetrics::BreakerState::kClosed);
  EXPECT_TRUE(HasLine(metrics.Expose(), "weir_store_breaker_state 0"));
}

TEST(WeirMetrics, ProcessMetricsAreOfThisProcess) {
  WeirMetrics metrics(Options());
  const std::string page = metrics.Expose();
  const auto value = [&](const std::string& name) {
    const size_t at = page.find("\n" + name + " ");
    return at == std::string::npos ? -1.0
                                   : std::strtod(page.c_str() + at + name.size() + 2, nullptr);
  };
  EXPECT_GE(value("process_threads"), 1);
  EXPECT_GT(value("process_resident_memory_bytes"), 1e6);
  EXPECT_GT(value("process_open_fds"), 2);
  EXPECT_GE(value("process_max_fds"), value("process_open_fds"));
  EXPECT_GE(value("process_cpu_seconds_total"), 0);
  const double age_s =
      static_cast<double>(std::time(nullptr)) - value("process_start_time_seconds");
  EXPECT_GT(age_s, -5);
  EXPECT_LT(age_s, 600);
}

// Prometheus' own linter has to find nothing. Debian's package `prometheus` has it.
TEST(WeirMetrics, PromtoolAcceptsThePage) {
  WeirMetrics metrics(Options());
  const auto limits = metrics.BindLimits({{"per-client \"x\" \\ y\nz", "client"}});
  metrics.BindUpstreams({"ai"});
  metrics.SetStoreKeys([] { return uint64_t{1}; });
  metrics.hot_keys().OnLimit(0, limits[0].id, KeyOf(1), "key:abc", true, 1, 2);
  metrics.hot_keys().OnLimit(0, limits[0].id, KeyOf(2), "alice", false, 1, 2);

  const std::string path =
      ::testing::TempDir() + "weir_metrics_" + std::to_string(getpid()) + ".txt";
  std::ofstream(path) << metrics.Expose();
  FILE* tool = popen(("promtool check metrics < " + path + " 2>&1").c_str(), "r");
  ASSERT_NE(tool, nullptr);
  std::string said;
  for (int c = std::fgetc(tool); c != EOF; c = std::fgetc(tool)) said += static_cast<char>(c);
  const int status = pclose(tool);
  std::remove(path.c_str());
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0)
      << said << "(127: promtool is not installed; it is in Debian's prometheus)";
  EXPECT_EQ(said, "");
}

}  // namespace
}  // namespace weir::metrics
