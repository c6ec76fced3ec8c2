#include "base/log.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/log_line.h"
#include "testing/simulated_clock.h"

namespace weir {
namespace {

constexpr int64_t kWallNs = 1'796'068'803'123'456'789;  // 2026-11-30T20:00:03.123456789Z

std::string Line(const LogRecord& record) {
  std::string line;
  AppendLogLine(record, line);
  return line;
}

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(text, out);
  return out;
}

TEST(LogLine, FieldsStandInAFixedOrder) {
  const LogField more[] = {{"bytes", int64_t{-5}}, {"path", "/v1/\"x\""}};
  EXPECT_EQ(
      Line({.level = LogLevel::kWarn,
            .wall_ns = kWallNs,
            .message = "call",
            .request_id = "r-1",
            .trace_id = "4bf92f35",
            .client = "key:abc",
            .limit = "per-client",
            .outcome = "denied",
            .source = "memory",
            .status = 429,
            .duration_ns = 1'002'003'999,
            .upstream = "ai",
            .model = "m",
            .fields = more}),
      R"({"ts":"2026-11-30T20:00:03.123456Z","level":"warn","message":"call","request_id":"r-1",)"
      R"("trace_id":"4bf92f35","client":"key:abc","limit":"per-client","outcome":"denied","source":"memory",)"
      R"("status":429,"duration_s":1.002003,"upstream":"ai","model":"m","bytes":-5,"path":"/v1/\"x\""})");
}

TEST(LogLine, WhatIsNotKnownIsLeftOut) {
  EXPECT_EQ(Line({.level = LogLevel::kInfo, .wall_ns = 0, .message = "started"}),
            R"({"ts":"1970-01-01T00:00:00.000000Z","level":"info","message":"started"})");
  EXPECT_EQ(
      Line({.level = LogLevel::kDebug,
            .wall_ns = 951'782'400'000'000'000,
            .message = "",
            .status = 0,
            .duration_ns = 0}),
      R"({"ts":"2000-02-29T00:00:00.000000Z","level":"debug","message":"","status":0,"duration_s":0.000000})");
}

TEST(LogLine, Case71_ControlCharactersCannotBreakTheLine) {
  EXPECT_EQ(Quoted("a\r\nb\t\"\\"), R"("a\r\nb\t\"\\")");
  EXPECT_EQ(Quoted(std::string_view("\0\x1b[31m\x7f", 7)), R"("\u0000\u001b[31m\u007f")");
}

TEST(LogLine, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(Quoted("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
  EXPECT_EQ(Quoted("\xff"), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(Quoted("\xc0\xaf"), "\"\xef\xbf\xbd\xef\xbf\xbd\"");                  // Overlong.
  EXPECT_EQ(Quoted("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");  // A surrogate.
  EXPECT_EQ(Quoted("x\xe2\x82"), "\"x\xef\xbf\xbd\xef\xbf\xbd\"");                // Cut short.
}

TEST(LogLine, LongStringsAreCut) {
  EXPECT_EQ(Quoted(std::string(1024, 'a')), "\"" + std::string(1024, 'a') + "\"");
  EXPECT_EQ(Quoted(std::string(1 << 20, 'a')), "\"" + std::string(1024, 'a') + "...\"");
}

class LoggerTest : public ::testing::Test {
 protected:
  LogOptions Collecting() {
    return {.clock = &clock_, .sink = [this](std::string_view line) {
              const std::lock_guard lock(mutex_);
              lines_.emplace_back(line);
            }};
  }

  SimulatedClock clock_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(LoggerTest, WritesInOrderWithTheClocksTime) {
  auto logger = Logger::Create(Collecting()).value();
  logger->Log(LogLevel::kInfo, "one", {{"n", int64_t{1}}});
  clock_.Advance(std::chrono::milliseconds(1));
  logger->Log(LogLevel::kError, "two");
  logger->Flush();
  const std::vector<std::string> expected = {
      R"({"ts":"2026-11-30T20:00:00.000000Z","level":"info","message":"one","n":1})",
      R"({"ts":"2026-11-30T20:00:00.001000Z","level":"error","message":"two"})"};
  EXPECT_EQ(lines_, expected);
}

TEST_F(LoggerTest, LevelsBelowTheSetOneAreNotWritten) {
  auto logger = Logger::Create(Collecting()).value();
  EXPECT_FALSE(logger->Enabled(LogLevel::kDebug));
  logger->Log(LogLevel::kDebug, "no");
  logger->SetLevel(LogLevel::kOff);
  logger->Log(LogLevel::kError, "no");
  logger->SetLevel(LogLevel::kDebug);
  logger->Log(LogLevel::kDebug, "yes");
  logger->Flush();
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find(R"("message":"yes")"), std::string::npos);
}

TEST_F(LoggerTest, DestructionWritesWhatIsQueued) {
  {
    auto logger = Logger::Create(Collecting()).value();
    for (int i = 0; i < 100; ++i) logger->Log(LogLevel::kInfo, "line");
  }
  EXPECT_EQ(lines_.size(), 100u);
}

TEST_F(LoggerTest, AFullQueueDropsTheOldestAndNeverBlocks) {
  std::mutex gate;
  std::unique_lock held(gate);
  std::condition_variable reached;
  std::mutex reached_mutex;
  bool first_reached = false;
  LogOptions options;
  options.queue_records = 4;
  options.sink = [&](std::string_view line) {
    {
      const std::lock_guard lock(reached_mutex);
      first_reached = true;
    }
    reached.notify_one();
    const std::lock_guard wait(gate);
    lines_.emplace_back(line);
  };
  auto logger = Logger::Create(options).value();
  logger->Log(LogLevel::kInfo, "first");
  {
    std::unique_lock lock(reached_mutex);
    ASSERT_TRUE(reached.wait_for(lock, std::chrono::seconds(10), [&] { return first_reached; }));
  }
  for (int i = 0; i < 10; ++i)
    logger->Log(LogLevel::kInfo, "later", {{"n", int64_t{i}}});  // The sink is stuck.
  EXPECT_EQ(logger->dropped(), 6u);
  held.unlock();
  logger.reset();
  ASSERT_EQ(lines_.size(), 5u);
  EXPECT_NE(lines_[0].find("first"), std::string::npos);
  EXPECT_NE(lines_[1].find("\"n\":6}"), std::string::npos);
  EXPECT_NE(lines_[4].find("\"n\":9}"), std::string::npos);
}

TEST_F(LoggerTest, ThreadsDoNotMixTheirLines) {
  auto logger = Logger::Create(Collecting()).value();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 250; ++i)
        logger->Log(LogLevel::kInfo, std::string(50, static_cast<char>('a' + t)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  logger->Flush();
  ASSERT_EQ(lines_.size(), 1000u);
  int counts[4] = {};
  for (const std::string& line : lines_) {
    for (int t = 0; t < 4; ++t) {
      counts[t] +=
          line.find("\"" + std::string(50, static_cast<char>('a' + t)) + "\"") != std::string::npos;
    }
  }
  for (const int count : counts) EXPECT_EQ(count, 250);
}

TEST(WarningGate, OpensOncePerIntervalAndCountsTheRest) {
  WarningGate gate(/*interval_ns=*/100);
  EXPECT_EQ(gate.Open(1000), 0);
  EXPECT_EQ(gate.Open(1001), std::nullopt);
  EXPECT_EQ(gate.Open(1099), std::nullopt);
  EXPECT_EQ(gate.Open(1100), 2);
  EXPECT_EQ(gate.Open(1150), std::nullopt);
  EXPECT_EQ(gate.Open(5000), 1);
}

}  // namespace
}  // namespace weir
