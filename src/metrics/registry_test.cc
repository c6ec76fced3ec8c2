#include "metrics/registry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace weir::metrics {
namespace {

TEST(Registry, CountersSumTheirShards) {
  Registry registry({.shards = 3});
  Family& family = registry.AddCounters("weir_calls_total", "Calls.", {"door"}, 4);
  const Counter counter = registry.CounterOf(family, {"api"});
  counter.Add(0);
  counter.Add(2, 5);
  counter.AddFromAnywhere(10);
  EXPECT_EQ(counter.Value(), 16u);
  EXPECT_EQ(registry.Expose(),
            "# HELP weir_calls_total Calls.\n"
            "# TYPE weir_calls_total counter\n"
            "weir_calls_total{door=\"api\"} 16\n");
}

TEST(Registry, TheSameLabelsAreTheSameSeries) {
  Registry registry({.shards = 1});
  Family& family = registry.AddCounters("a_total", "A.", {"x", "y"}, 4);
  registry.CounterOf(family, {"1", "2"}).Add(0);
  registry.CounterOf(family, {"1", "2"}).Add(0);
  registry.CounterOf(family, {"2", "1"}).Add(0);
  EXPECT_EQ(registry.CounterOf(family, {"1", "2"}).Value(), 2u);
  EXPECT_EQ(registry.SampleCount(), 2u);
}

TEST(Registry, GaugesGoBothWaysAcrossShards) {
  Registry registry({.shards = 2});
  Family& family = registry.AddGauges("open", "Open.", {}, 1);
  const Gauge gauge = registry.GaugeOf(family, {});
  gauge.Add(0, 1);
  gauge.Add(1, -3);
  EXPECT_EQ(gauge.Value(), -2);
  Family& state = registry.AddGauges("state", "State.", {}, 1);
  registry.GaugeOf(state, {}).Set(2);
  registry.GaugeOf(state, {}).Set(1);
  EXPECT_EQ(registry.Expose(),
            "# HELP open Open.\n# TYPE open gauge\nopen -2\n"
            "# HELP state State.\n# TYPE state gauge\nstate 1\n");
}

TEST(Registry, HistogramsAreCumulativeAndInSeconds) {
  Registry registry({.shards = 2});
  Family& family = registry.AddHistograms("d_seconds", "D.", {"op"}, {100, 250, 1'000'000'000}, 2);
  const Histogram histogram = registry.HistogramOf(family, {"get"});
  for (const int64_t ns : {int64_t{-5}, int64_t{100}, int64_t{101}, int64_t{251}})
    histogram.Record(0, ns);
  histogram.Record(1, 5'000'000'000);
  EXPECT_EQ(histogram.Count(), 5u);
  EXPECT_EQ(histogram.SumNs(), 5'000'000'452u);
  EXPECT_EQ(registry.Expose(),
            "# HELP d_seconds D.\n"
            "# TYPE d_seconds histogram\n"
            "d_seconds_bucket{op=\"get\",le=\"1e-07\"} 2\n"
            "d_seconds_bucket{op=\"get\",le=\"2.5e-07\"} 3\n"
            "d_seconds_bucket{op=\"get\",le=\"1\"} 4\n"
            "d_seconds_bucket{op=\"get\",le=\"+Inf\"} 5\n"
            "d_seconds_sum{op=\"get\"} 5.000000452\n"
            "d_seconds_count{op=\"get\"} 5\n");
}

TEST(Registry, TextIsEscaped) {
  Registry registry({.shards = 1});
  Family& family = registry.AddCounters("a_total", "One \\ two\n\"three\".", {"x"}, 4);
  registry.CounterOf(family, {"a\"b\\c\nd"});
  EXPECT_EQ(registry.Expose(),
            "# HELP a_total One \\\\ two\\n\"three\".\n"
            "# TYPE a_total counter\n"
            "a_total{x=\"a\\\"b\\\\c\\nd\"} 0\n");
}

TEST(Registry, FamiliesAreBoundedByOther) {
  Registry registry({.shards = 1});
  Family& family = registry.AddCounters("a_total", "A.", {"x"}, 3);
  for (int i = 0; i < 100; ++i) registry.CounterOf(family, {std::to_string(i)}).Add(0);
  EXPECT_EQ(registry.SampleCount(), 4u);
  EXPECT_EQ(registry.CounterOf(family, {"0"}).Value(), 1u);
  EXPECT_EQ(registry.CounterOf(family, {"2"}).Value(), 1u);
  EXPECT_EQ(registry.CounterOf(family, {"other"}).Value(), 97u);
  EXPECT_EQ(registry.CounterOf(family, {"50"}).Value(), 97u);
}

TEST(Registry, HiddenSeriesKeepTheirCounts) {
  Registry registry({.shards = 1});
  Family& family = registry.AddCounters("a_total", "A.", {"x"}, 9);
  const Counter gone = registry.CounterOf(family, {"gone"});
  gone.Add(0, 3);
  registry.CounterOf(family, {"kept"});
  registry.ShowOnly(family, std::vector<std::string_view>{"kept"});
  EXPECT_EQ(registry.SampleCount(), 1u);
  gone.Add(0);  // An older policy may still write.
  EXPECT_EQ(registry.CounterOf(family, {"gone"}).Value(), 4u);
  EXPECT_EQ(registry.SampleCount(), 2u);
}

TEST(Registry, CollectedSamplesAreBoundedAndUnique) {
  Registry registry({.shards = 1});
  registry.AddCollected(MetricType::kGauge, "c", "C.", {"x"}, 2, [](const SampleSink& sink) {
    for (const std::string_view x : {"a", "a", "b", "c"}) sink(std::array{x}, 0.5);
  });
  EXPECT_EQ(registry.Expose(), "# HELP c C.\n# TYPE c gauge\nc{x=\"a\"} 0.5\nc{x=\"b\"} 0.5\n");
}

TEST(Registry, NumbersThatAreNone) {
  Registry registry({.shards = 1});
  registry.AddCollected(MetricType::kGauge, "c", "C.", {"x"}, 9, [](const SampleSink& sink) {
    sink(std::array<std::string_view, 1>{"n"}, std::numeric_limits<double>::quiet_NaN());
    sink(std::array<std::string_view, 1>{"p"}, std::numeric_limits<double>::infinity());
    sink(std::array<std::string_view, 1>{"m"}, -std::numeric_limits<double>::infinity());
  });
  EXPECT_EQ(registry.Expose(),
            "# HELP c C.\n# TYPE c gauge\nc{x=\"n\"} NaN\nc{x=\"p\"} +Inf\nc{x=\"m\"} -Inf\n");
}

TEST(Registry, ManySeriesCrossPages) {
  Registry registry({.shards = 2});
  Family& family = registry.AddCounters("a_total", "A.", {"x"}, 5000);
  std::vector<Counter> counters;
  for (int i = 0; i < 2000; ++i)
    counters.push_back(registry.CounterOf(family, {std::to_string(i)}));
  for (int i = 0; i < 2000; ++i) counters[i].Add(i % 2, i);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(counters[i].Value(), static_cast<uint64_t>(i));
}

TEST(RegistryDeathTest, TakenAndBadNamesAreBugs) {
  Registry registry({.shards = 1});
  registry.AddCounters("a_total", "A.", {}, 1);
  EXPECT_DEATH(registry.AddCounters("a_total", "A.", {}, 1), "");
  EXPECT_DEATH(registry.AddCounters("1a", "A.", {}, 1), "");
  EXPECT_DEATH(registry.AddCounters("b_total", "A.", {"le-x"}, 1), "");
}

TEST(Registry, LoopsWriteWhileAScrapeReads) {
  Registry registry({.shards = 2});
  Family& family = registry.AddCounters("a_total", "A.", {}, 1);
  const Counter counter = registry.CounterOf(family, {});
  Family& durations = registry.AddHistograms("d_seconds", "D.", {}, {10, 20}, 1);
  const Histogram histogram = registry.HistogramOf(durations, {});
  std::atomic<bool> done = false;
  std::thread scraper([&] {
    uint64_t last = 0;
    while (!done) {
      ASSERT_FALSE(registry.Expose().empty());
      const uint64_t now = counter.Value();
      ASSERT_GE(now, last);
      last = now;
    }
  });
  std::vector<std::thread> loops;
  for (size_t shard = 0; shard < 2; ++shard) {
    loops.emplace_back([&, shard] {
      for (int i = 0; i < 50'000; ++i) {
        counter.Add(shard);
        histogram.Record(shard, i % 30);
        if (i % 100 == 0) counter.AddFromAnywhere();
      }
    });
  }
  for (std::thread& loop : loops) loop.join();
  done = true;
  scraper.join();
  EXPECT_EQ(counter.Value(), 101'000u);
  EXPECT_EQ(histogram.Count(), 100'000u);
}

}  // namespace
}  // namespace weir::metrics
