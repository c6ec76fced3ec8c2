#include "doors/resp/serve_resp.h"

#include <algorithm>
#include <string>
#include <utility>

namespace weir::doors::resp {
namespace {

using weir::resp::CommandParser;

// A connection's buffers and where in a command it stands.
class Connection {
 public:
  Connection(net::Stream& stream, RespDoor& door, decide::Worker& worker,
             const RespOptions& options, const net::DrainFlag& drain)
      : stream_(stream),
        door_(door),
        options_(options),
        drain_(drain),
        session_(door.NewSession(stream.peer(), stream.loop().now_ns())),
        pending_(worker) {
    LimitCommands();
  }

  // Answers all the whole commands that have arrived, into out(). False when the connection is to
  // close after them.
  bool AnswerArrived();
  Task<bool> AnswerArrivedLater();
  bool waits() const { return door_.waits(); }
  // True while a command has begun and not ended.
  bool mid_call() const { return !in_.empty(); }
  // RESP cannot announce a close: in a drain it comes behind the replies.
  bool ends() const { return drain_.draining && !mid_call(); }
  void AnswerTimeout() { AnswerFault("Protocol error: the command did not arrive in time"); }
  void AnswerFault(std::string_view fault);
  wire::Buffer& in() { return in_; }
  wire::Buffer& out() { return out_; }
  // REQUIRES: !mid_call(), and out() is written.
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
  const net::DrainFlag& drain_;
  Session session_;
  PendingReplies pending_;
  CommandParser parser_;
  bool limited_as_authenticated_ = false;
  wire::Buffer in_;
  wire::Buffer out_;
};

bool Connection::AnswerArrived() {
  const RespDoor::Instant instant = Tick();
  while (out_.size() < net::kFlushBytes) {
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
  while (go_on && out_.size() < net::kFlushBytes) {
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

}  // namespace

Task<void> ServeResp(std::unique_ptr<net::Stream> stream, RespDoor& door, RespOptions options,
                     const net::DrainFlag& drain) {
  Connection connection(*stream, door, door.worker(), options, drain);
  co_await net::ServePipelined(*stream, connection,
                               {.call_ns = options.command_timeout_ns,
                                .idle_ns = options.idle_timeout_ns,
                                .write_ns = options.write_timeout_ns},
                               drain);
}

}  // namespace weir::doors::resp
