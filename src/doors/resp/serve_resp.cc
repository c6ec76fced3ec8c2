#include "doors/resp/serve_resp.h"

#include <algorithm>
#include <string>
#include <utility>

namespace weir::doors::resp {
namespace {

using weir::resp::CommandParser;

constexpr size_t kReadBytes = 16 * 1024;
constexpr size_t kFlushBytes = 256 * 1024;  // Replies beyond this go out before more is answered.
constexpr int64_t kBusyGapNs =
    1'000'000'000;  // A connection silent for longer gives its buffers back.

int64_t DeadlineAfter(int64_t now_ns, int64_t timeout_ns) {
  return timeout_ns > 0 ? now_ns + timeout_ns : net::kNoDeadline;
}

// A connection's buffers and where in a command it stands.
class Connection {
 public:
  Connection(net::Stream& stream, RespDoor& door, decide::Worker& worker,
             const RespOptions& options)
      : stream_(stream),
        door_(door),
        options_(options),
        session_(door.NewSession(stream.peer(), stream.loop().now_ns())),
        pending_(worker) {
    LimitCommands();
  }

  // Answers all the whole commands that have arrived, into out(). False when the connection is to
  // close after them.
  bool AnswerArrived();
  Task<bool> AnswerArrivedLater();
  // True while a command has begun and not ended.
  bool mid_command() const { return !in_.empty(); }
  void AnswerFault(std::string_view fault);
  wire::Buffer& in() { return in_; }
  wire::Buffer& out() { return out_; }
  // REQUIRES: !mid_command(), and out() is written.
  void ReleaseMemory() {
    in_.ClearAndShrink(0);
    out_.ClearAndShrink(0);
    parser_ = CommandParser();
    LimitCommands();
  }

 private:
  RespDoor::Instant Tick() { return door_.Tick(stream_.loop().now_ns(), stream_.loop().wall_ns()); }
  void LimitCommands() {
    limited_as_authenticated_ = session_.authenticated;
    parser_.SetLimits(session_.authenticated ? options_.limits : options_.limits_before_auth);
  }
  // After an answer.
  void Finish() {
    in_.Consume(parser_.consumed());
    if (limited_as_authenticated_ != session_.authenticated) [[unlikely]]
      LimitCommands();
  }

  net::Stream& stream_;
  RespDoor& door_;
  const RespOptions& options_;
  Session session_;
  PendingReplies pending_;
  CommandParser parser_;
  bool limited_as_authenticated_ = false;
  wire::Buffer in_;
  wire::Buffer out_;
};

bool Connection::AnswerArrived() {
  const RespDoor::Instant instant = Tick();
  while (out_.size() < kFlushBytes) {
    const CommandParser::State state = parser_.Next(in_.View());
    if (state == CommandParser::State::kNeedMore) return true;
    if (state == CommandParser::State::kBroken) {
      AnswerFault(parser_.fault());
      return false;
    }
    if (!parser_.words().empty()) door_.Answer(session_, parser_.words(), instant, out_);
    Finish();
    if (session_.closing) return false;
  }
  return true;
}

Task<bool> Connection::AnswerArrivedLater() {
  RespDoor::Instant instant = Tick();
  bool go_on = true;
  while (go_on && out_.size() < kFlushBytes) {
    const CommandParser::State state = parser_.Next(in_.View());
    if (state == CommandParser::State::kNeedMore) break;
    if (state == CommandParser::State::kBroken) {
      AnswerFault(parser_.fault());
      go_on = false;
      break;
    }
    const std::span<const std::string_view> words = parser_.words();
    if (!words.empty() && !door_.Begin(session_, words, instant, out_, pending_)) {
      co_await pending_.Await(instant.now, out_);
      instant = Tick();
      door_.Begin(session_, words, instant, out_, pending_);
    }
    Finish();
    go_on = !session_.closing;
  }
  co_await pending_.Await(instant.now, out_);
  co_return go_on;
}

void Connection::AnswerFault(std::string_view fault) {
  weir::resp::ReplyWriter reply(out_, 2);
  reply.Error("ERR " + std::string(fault));
}

// Waits for the next command of a connection between two. False when none comes in time, or the
// peer is gone.
Task<bool> AwaitCommand(net::Stream& stream, Connection& connection, int64_t idle_timeout_ns) {
  const net::EventLoop& loop = stream.loop();
  const int64_t idle_deadline_ns = DeadlineAfter(loop.now_ns(), idle_timeout_ns);
  stream.SetReadDeadline(std::min(idle_deadline_ns, loop.now_ns() + kBusyGapNs));
  net::IoResult waited = co_await stream.WaitReadable();
  if (waited.status == net::IoStatus::kTimedOut && loop.now_ns() < idle_deadline_ns) {
    connection.ReleaseMemory();
    stream.SetReadDeadline(idle_deadline_ns);
    waited = co_await stream.WaitReadable();
  }
  co_return waited.ok();
}

}  // namespace

Task<void> ServeResp(std::unique_ptr<net::Stream> stream, RespDoor& door, RespOptions options,
                     const net::DrainFlag& drain) {
  Connection connection(*stream, door, door.worker(), options);
  net::EventLoop& loop = stream->loop();
  stream->SetWriteTimeout(options.write_timeout_ns);
  int64_t command_deadline_ns = net::kNoDeadline;
  for (;;) {
    if (!connection.mid_command()) {
      command_deadline_ns = net::kNoDeadline;
      const bool begun = co_await AwaitCommand(*stream, connection, options.idle_timeout_ns);
      if (!begun) co_return;
    } else if (command_deadline_ns == net::kNoDeadline) {
      command_deadline_ns = DeadlineAfter(loop.now_ns(), options.command_timeout_ns);
      stream->SetReadDeadline(command_deadline_ns);
    }
    char* const room = connection.in().Prepare(kReadBytes);
    const net::IoResult got = co_await stream->Read({room, connection.in().spare()});
    if (got.status == net::IoStatus::kTimedOut && connection.mid_command()) {
      connection.AnswerFault("Protocol error: the command did not arrive in time");
      co_await stream->Write(connection.out().View());
      co_await net::CloseGently(*stream);
      co_return;
    }
    if (!got.ok()) co_return;
    connection.in().Commit(got.bytes);
    bool go_on = true;
    do {
      if (door.waits()) {
        ++drain.waiting;
        go_on = co_await connection.AnswerArrivedLater();
        --drain.waiting;
      } else {
        go_on = connection.AnswerArrived();
      }
      if (connection.out().empty()) break;
      const bool more_waits = connection.out().size() >= kFlushBytes;
      const net::IoResult sent = co_await stream->Write(connection.out().View());
      if (!sent.ok()) co_return;
      connection.out().Clear();
      command_deadline_ns = net::kNoDeadline;  // What has begun since is another command.
      if (!more_waits) break;
    } while (go_on);
    if (!go_on || (drain.draining && !connection.mid_command())) {
      co_await net::CloseGently(*stream);
      co_return;
    }
  }
}

}  // namespace weir::doors::resp
