// The loop of a connection on which calls follow each other and may be pipelined: all that have
// arrived are answered into one buffer, and the buffer goes out in one write.
//
//   co_await ServePipelined(stream, connection, timeouts, drain);
//
// Thread safety: the stream's loop.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/task.h"
#include "net/stream.h"

namespace weir::net {

// Tells every connection of a door to close after the answer that it is writing.
struct DrainFlag {
  bool draining = false;
  mutable int waiting = 0;  // Calls whose answers wait for others: what a drain has to wait for.
};

struct PipelineTimeouts {
  int64_t call_ns = 0;   // From a call's first byte to its last. 0: none.
  int64_t idle_ns = 0;   // Between calls: closed without a word. 0: none.
  int64_t write_ns = 0;  // 0: none.
};

// Answers beyond this go out before more calls are taken.
inline constexpr size_t kFlushBytes = 256 * 1024;

// Ends a connection so that the peer still reads the last answer: no more is sent, and what it goes
// on sending is thrown away until it closes, for at most a second and 256 KiB. (Closing with unread
// bytes would reset the connection and could take the answer with it; RFC 9112 section 9.6.)
Task<void> CloseGently(Stream& stream);

// Waits for the next call of a connection between two. False when none comes in time, or the peer
// is gone. `release` gives the connection's buffers back once it has been silent for a second.
template <typename Release>
Task<bool> AwaitCall(Stream& stream, int64_t idle_timeout_ns, Release release) {
  constexpr int64_t kBusyGapNs = 1'000'000'000;
  const EventLoop& loop = stream.loop();
  const int64_t idle_deadline_ns =
      idle_timeout_ns > 0 ? loop.now_ns() + idle_timeout_ns : kNoDeadline;
  stream.SetReadDeadline(std::min(idle_deadline_ns, loop.now_ns() + kBusyGapNs));
  IoResult waited = co_await stream.WaitReadable();
  if (waited.status == IoStatus::kTimedOut && loop.now_ns() < idle_deadline_ns) {
    release();
    stream.SetReadDeadline(idle_deadline_ns);
    waited = co_await stream.WaitReadable();
  }
  co_return waited.ok();
}

// Serves until the peer closes, a timeout ends, or the connection says so. Of Connection:
//   wire::Buffer& in(), out();
//   bool mid_call();                  a call has begun and not ended
//   bool waits();                     AnswerArrivedLater is asked in place of AnswerArrived
//   bool AnswerArrived();             the whole calls in in(), into out(), up to about kFlushBytes;
//   Task<bool> AnswerArrivedLater();  false: close behind these answers
//   bool ends();                      close behind what has been written
//   void AnswerTimeout();             a call did not arrive in time
//   void ReleaseMemory();             between calls, when out() is written
template <typename Connection>
Task<void> ServePipelined(Stream& stream, Connection& connection, PipelineTimeouts timeouts,
                          const DrainFlag& drain) {
  constexpr size_t kReadBytes = 16 * 1024;
  EventLoop& loop = stream.loop();
  stream.SetWriteTimeout(timeouts.write_ns);
  int64_t call_deadline_ns = kNoDeadline;
  for (;;) {
    if (!connection.mid_call()) {
      call_deadline_ns = kNoDeadline;
      const bool begun =
          co_await AwaitCall(stream, timeouts.idle_ns, [&] { connection.ReleaseMemory(); });
      if (!begun) co_return;
    } else if (call_deadline_ns == kNoDeadline) {
      if (timeouts.call_ns > 0) call_deadline_ns = loop.now_ns() + timeouts.call_ns;
      stream.SetReadDeadline(call_deadline_ns);
    }
    char* const room = connection.in().Prepare(kReadBytes);
    const IoResult got = co_await stream.Read({room, connection.in().spare()});
    if (got.status == IoStatus::kTimedOut && connection.mid_call()) {
      connection.AnswerTimeout();
      co_await stream.Write(connection.out().View());
      co_await CloseGently(stream);
      co_return;
    }
    if (!got.ok()) co_return;
    connection.in().Commit(got.bytes);
    bool go_on = true;
    do {
      if (connection.waits()) {
        ++drain.waiting;
        go_on = co_await connection.AnswerArrivedLater();
        --drain.waiting;
      } else {
        go_on = connection.AnswerArrived();
      }
      if (connection.out().empty()) break;
      const bool more_waits = connection.out().size() >= kFlushBytes;
      const IoResult sent = co_await stream.Write(connection.out().View());
      if (!sent.ok()) co_return;
      connection.out().Clear();
      call_deadline_ns = kNoDeadline;  // What has begun since is another call.
      if (!more_waits) break;
    } while (go_on);
    if (!go_on || connection.ends()) {
      co_await CloseGently(stream);
      co_return;
    }
  }
}

}  // namespace weir::net
