#include "base/log.h"

#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log_line.h"

namespace weir {
namespace {

constexpr size_t kBatchBytes = 32 * 1024;
constexpr std::chrono::milliseconds kFlushWait{500};

// Gathers lines while more are queued, so that a busy server pays for one write per batch and an
// idle one sees each line at once. Only the writing thread comes here, but for the destructor.
class BatchingSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit BatchingSink(std::function<void(std::string_view)> lines) : lines_(std::move(lines)) {}
  ~BatchingSink() override { WriteBatch(); }

  void SetPool(spdlog::details::thread_pool* pool) { pool_ = pool; }

  uint64_t flushes() {
    const std::lock_guard lock(flush_mutex_);
    return flushes_;
  }

  // Waits for a flush beyond the first `seen`; false when none came in time.
  bool WaitForFlush(uint64_t seen) {
    std::unique_lock lock(flush_mutex_);
    return flushed_.wait_for(lock, kFlushWait, [&] { return flushes_ > seen; });
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view line(message.payload.data(), message.payload.size());
    if (lines_) {
      lines_(line);
      return;
    }
    batch_.append(line);
    batch_ += '\n';
    if (batch_.size() >= kBatchBytes || pool_->queue_size() == 0) WriteBatch();
  }

  void flush_() override {
    WriteBatch();
    const std::lock_guard lock(flush_mutex_);
    ++flushes_;
    flushed_.notify_all();
  }

 private:
  void WriteBatch() {
    std::string_view rest = batch_;
    while (!rest.empty()) {
      const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) break;  // Nowhere to complain to.
      rest.remove_prefix(static_cast<size_t>(written));
    }
    batch_.clear();
  }

  const std::function<void(std::string_view)> lines_;
  spdlog::details::thread_pool* pool_ = nullptr;
  std::string batch_;
  std::mutex flush_mutex_;
  std::condition_variable flushed_;
  uint64_t flushes_ = 0;
};

}  // namespace

std::string_view LogLevelName(LogLevel level) {
  constexpr std::string_view kNames[] = {"debug", "info", "warn", "error", "off"};
  return kNames[static_cast<int>(level)];
}

struct Logger::Impl {
  SystemClock system_clock;
  const Clock* clock = nullptr;
  std::shared_ptr<BatchingSink> sink;
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<spdlog::async_logger> queue;
  std::mutex flush_mutex;
};

Result<std::unique_ptr<Logger>> Logger::Create(LogOptions options) {
  if (options.queue_records < 1)
    return InvalidArgument("the log queue needs room for at least one record");
  try {
    auto impl = std::make_unique<Impl>();
    impl->clock = options.clock != nullptr ? options.clock : &impl->system_clock;
    impl->sink = std::make_shared<BatchingSink>(std::move(options.sink));
    impl->pool = std::make_shared<spdlog::details::thread_pool>(options.queue_records, 1);
    impl->sink->SetPool(impl->pool.get());
    impl->queue = std::make_shared<spdlog::async_logger>(
        "weir", impl->sink, impl->pool, spdlog::async_overflow_policy::overrun_oldest);
    impl->queue->set_level(
        spdlog::level::trace);  // Levels are judged in Enabled, before a line is built.
    impl->queue->flush_on(spdlog::level::off);
    return std::unique_ptr<Logger>(new Logger(std::move(impl), options.level));
  } catch (const std::exception& fault) {
    return MakeError(ErrorCode::kInternal,
                     std::string("cannot start the log thread: ") + fault.what());
  }
}

Logger::Logger(std::unique_ptr<Impl> impl, LogLevel level)
    : level_(level), impl_(std::move(impl)) {}

// The pool goes first: it empties what is queued and joins its thread, so that nobody else holds
// the queue when it goes.
Logger::~Logger() {
  impl_->pool.reset();
  impl_->queue.reset();
}

void Logger::Write(const LogRecord& record) {
  if (!Enabled(record.level)) return;
  thread_local std::string line;
  line.clear();
  LogRecord stamped = record;
  if (stamped.wall_ns == 0) stamped.wall_ns = impl_->clock->RealtimeNs();
  AppendLogLine(stamped, line);
  // spdlog catches its own exceptions; a queue that is full drops its oldest record.
  impl_->queue->log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
}

void Logger::Log(LogLevel level, std::string_view message, std::span<const LogField> fields) {
  if (!Enabled(level)) return;
  Write({.level = level, .message = message, .fields = fields});
}

void Logger::Flush() {
  const std::lock_guard lock(impl_->flush_mutex);
  const uint64_t seen = impl_->sink->flushes();
  do {
    impl_->queue->flush();
  } while (!impl_->sink->WaitForFlush(
      seen));  // A full queue may have dropped the request as its oldest record.
}

uint64_t Logger::dropped() const { return impl_->pool->overrun_counter(); }

std::optional<int64_t> WarningGate::Open(int64_t mono_ns) {
  int64_t next = next_ns_.load(std::memory_order_relaxed);
  if (mono_ns < next ||
      !next_ns_.compare_exchange_strong(next, mono_ns + interval_ns_, std::memory_order_relaxed)) {
    held_.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  return held_.exchange(0, std::memory_order_relaxed);
}

}  // namespace weir
