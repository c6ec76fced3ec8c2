// Structured logs: one JSON object per line, fields in a fixed order, written by a thread of the
// logger's own. A full queue drops the oldest lines and counts them; a caller never waits for the
// disk.
//
// Nothing here redacts: callers pass ids, never credentials. Strings are escaped, so a line is
// always one line. Thread safety: a Logger may be shared by any threads. It flushes and joins its
// thread when destroyed.
//
//   auto logger = Logger::Create({.level = LogLevel::kInfo});
//   if ((*logger)->Enabled(LogLevel::kInfo)) {
//     (*logger)->Write({.wall_ns = now.wall_ns, .message = "call", .status = 429});
//   }
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weir/result.h"

namespace weir {

class Clock;

enum class LogLevel : uint8_t { kDebug, kInfo, kWarn, kError, kOff };

// "debug", "info", "warn", "error", "off".
std::string_view LogLevelName(LogLevel level);

// One further field, after the fixed ones. The value is written as a JSON string, or as an integer.
struct LogField {
  LogField(std::string_view field_name, std::string_view text) : name(field_name), string(text) {}
  LogField(std::string_view field_name, const char* text) : name(field_name), string(text) {}
  LogField(std::string_view field_name, int64_t value)
      : name(field_name), integer(value), is_integer(true) {}

  std::string_view name;
  std::string_view string;
  int64_t integer = 0;
  bool is_integer = false;
};

// A line to be. Fields appear in this order; empty strings and negative numbers are left out. Views
// are read before Write returns.
struct LogRecord {
  LogLevel level = LogLevel::kInfo;
  int64_t wall_ns = 0;  // 0: the logger's clock is read.
  std::string_view message;
  std::string_view request_id;
  std::string_view trace_id;
  std::string_view client;  // An id of base/hmac_id.h, never a credential.
  std::string_view limit;
  std::string_view outcome;
  std::string_view source;
  int status = -1;
  int64_t duration_ns = -1;  // Written as duration_s, seconds with six decimals.
  std::string_view upstream;
  std::string_view model;
  std::span<const LogField> fields = {};
};

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  size_t queue_records = 8192;   // At least 1. When full, the oldest record goes.
  const Clock* clock = nullptr;  // For records without a time. nullptr: the system's.
  std::function<void(std::string_view line)>
      sink;  // Where lines go, without the newline. Empty: standard error.
};

class Logger {
 public:
  // Starts the writing thread. Error: the thread cannot be made.
  static Result<std::unique_ptr<Logger>> Create(LogOptions options);
  ~Logger();
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  // One relaxed load: ask before gathering a record.
  bool Enabled(LogLevel level) const { return level >= level_.load(std::memory_order_relaxed); }
  void SetLevel(LogLevel level) { level_.store(level, std::memory_order_relaxed); }

  // Queues one line if its level is enabled. Does not block. Lines beyond kMaxLineBytes have long
  // strings cut.
  void Write(const LogRecord& record);

  // Write({level, message, fields}) for lines that are not about one call.
  void Log(LogLevel level, std::string_view message, std::span<const LogField> fields = {});
  void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
    Log(level, message, std::span<const LogField>(fields.begin(), fields.size()));
  }

  // Waits until all lines queued so far are at the sink.
  void Flush();

  // Lines dropped because the queue was full.
  uint64_t dropped() const;

  static constexpr size_t kMaxStringBytes = 1024;  // Longer strings are cut and end in "...".

 private:
  struct Impl;
  explicit Logger(std::unique_ptr<Impl> impl, LogLevel level);

  std::atomic<LogLevel> level_;
  std::unique_ptr<Impl> impl_;
};

// Lets one warning through per interval and counts the rest, for faults that can come with every
// call.
//
//   if (auto held = gate.Open(now.mono_ns)) {
//     logger.Log(LogLevel::kWarn, "upstream away", {{"suppressed", *held}});
//   }
//
// Thread safety: any threads.
class WarningGate {
 public:
  explicit WarningGate(int64_t interval_ns = 10'000'000'000) : interval_ns_(interval_ns) {}

  // The number of warnings held back since the last one, or nothing when this one is to be held
  // back too.
  std::optional<int64_t> Open(int64_t mono_ns);

 private:
  const int64_t interval_ns_;
  std::atomic<int64_t> next_ns_{INT64_MIN};
  std::atomic<int64_t> held_{0};
};

}  // namespace weir
