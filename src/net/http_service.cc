#include "net/http_service.h"

#include <algorithm>
#include <memory>
#include <string>

#include "wire/http1/body.h"
#include "wire/http1/dates.h"

namespace weir::net {
namespace {

http1::RequestHead& ThreadsHead() {
  static thread_local http1::RequestHead head;
  return head;
}

// A connection's buffers and where in a request it stands.
class Connection {
 public:
  Connection(Stream& stream, HttpService& service, const HttpServiceOptions& options,
             const DrainFlag& drain)
      : stream_(stream),
        service_(service),
        options_(options),
        drain_(drain),
        own_head_(service.waits() ? std::make_unique<http1::RequestHead>() : nullptr),
        head_(own_head_ ? *own_head_ : ThreadsHead()) {}

  // Answers all the whole requests that have arrived, into out(). False when the connection is to
  // close after them.
  bool AnswerArrived();
  Task<bool> AnswerArrivedLater();
  bool waits() const { return service_.waits(); }
  // True while a request has begun and not ended.
  bool mid_call() const { return collecting_ || !in_.empty(); }
  bool ends() const { return false; }  // An answer says so itself, with `Connection: close`.
  void AnswerTimeout() { AnswerError(408, "the request did not arrive in time"); }
  void AnswerError(int status, std::string_view reason);
  wire::Buffer& in() { return in_; }
  wire::Buffer& out() { return out_; }
  // REQUIRES: !mid_call(), and out() is written.
  void ReleaseMemory() {
    in_.ClearAndShrink(0);
    out_.ClearAndShrink(0);
    body_.ClearAndShrink(0);
  }

 private:
  enum class Progress : uint8_t { kReady, kNeedMore, kClose };
  // The next whole request, into head_ and request_.
  Progress Next();
  Progress Begin();
  Progress BeginCollecting(size_t head_bytes);
  Progress Collect();
  Progress Refuse(int status, std::string_view reason) {
    AnswerError(status, reason);
    return Progress::kClose;
  }
  Progress Ready(std::string_view body, size_t bytes);
  HttpRequest Request() const;
  // After its answer. False when the connection is to close.
  bool Finish() {
    in_.Consume(request_bytes_);
    return head_.keep_alive;
  }

  Stream& stream_;
  HttpService& service_;
  const HttpServiceOptions& options_;
  const DrainFlag& drain_;
  // Of the request that is answered. A service that does not wait is done with it before another
  // connection's turn, so that all of a thread share one.
  std::unique_ptr<http1::RequestHead> own_head_;
  http1::RequestHead& head_;
  std::string_view body_view_;
  size_t request_bytes_ = 0;  // At the front of in_; 0 when they were consumed already.
  wire::Buffer in_;
  wire::Buffer out_;
  http1::HeadProgress head_progress_;
  // A request whose body is still coming: its head is kept apart, because `in_` moves when it
  // grows.
  bool collecting_ = false;
  wire::Buffer head_bytes_;
  wire::Buffer body_;
  http1::BodyReader reader_;
};

bool Connection::AnswerArrived() {
  for (;;) {
    const Progress progress = Next();
    if (progress != Progress::kReady) return progress == Progress::kNeedMore;
    http1::ResponseWriter answer(out_);
    service_.Answer(Request(), answer);
    if (!Finish()) return false;
    if (out_.size() >= kFlushBytes) return true;
  }
}

Task<bool> Connection::AnswerArrivedLater() {
  for (;;) {
    const Progress progress = Next();
    if (progress != Progress::kReady) co_return progress == Progress::kNeedMore;
    http1::ResponseWriter answer(out_);
    const HttpRequest request = Request();
    co_await service_.AnswerLater(request, answer);
    if (!Finish()) co_return false;
    if (out_.size() >= kFlushBytes) co_return true;
  }
}

Connection::Progress Connection::Next() { return collecting_ ? Collect() : Begin(); }

Connection::Progress Connection::Begin() {
  if (in_.empty()) return Progress::kNeedMore;
  const http1::ParseOutcome outcome =
      http1::ParseRequestHead(in_.View(), options_.head, head_, &head_progress_);
  if (outcome.need_more()) return Progress::kNeedMore;
  if (outcome.error()) return Refuse(outcome.status, outcome.reason);
  head_progress_ = {};
  if (head_.body == http1::BodyKind::kNone) return Ready({}, outcome.consumed);
  if (head_.body == http1::BodyKind::kLength) {
    if (head_.content_length > options_.body_bytes_max) return Refuse(413, "the body is too large");
    const auto body_bytes = static_cast<size_t>(head_.content_length);
    if (in_.size() >= outcome.consumed + body_bytes) {
      return Ready(in_.View().substr(outcome.consumed, body_bytes), outcome.consumed + body_bytes);
    }
  }
  return BeginCollecting(outcome.consumed);
}

Connection::Progress Connection::BeginCollecting(size_t head_bytes) {
  collecting_ = true;
  reader_.Start(head_.body, head_.content_length, {.body_bytes_max = options_.body_bytes_max});
  head_bytes_.Clear();
  head_bytes_.Append(in_.View().substr(0, head_bytes));
  body_.Clear();
  in_.Consume(head_bytes);
  if (head_.expect_continue && in_.empty()) out_.Append("HTTP/1.1 100 Continue\r\n\r\n");
  return Collect();
}

Connection::Progress Connection::Collect() {
  for (;;) {
    const http1::BodyReader::Step step = reader_.Feed(in_.View());
    body_.Append(step.payload);
    in_.Consume(step.consumed);
    switch (step.state) {
      case http1::BodyReader::State::kPayload:
        continue;
      case http1::BodyReader::State::kNeedMore:
        return Progress::kNeedMore;
      case http1::BodyReader::State::kError:
        return Refuse(step.status, step.reason);
      case http1::BodyReader::State::kDone:
        break;
    }
    collecting_ = false;
    http1::ParseRequestHead(head_bytes_.View(), options_.head, head_);
    return Ready(body_.View(), 0);
  }
}

Connection::Progress Connection::Ready(std::string_view body, size_t bytes) {
  body_view_ = body;
  request_bytes_ = bytes;
  if (drain_.draining) head_.keep_alive = false;  // So that the service says `Connection: close`.
  return Progress::kReady;
}

HttpRequest Connection::Request() const {
  return {.head = head_,
          .body = body_view_,
          .peer = stream_.peer(),
          .now_ns = stream_.loop().now_ns(),
          .wall_ns = stream_.loop().wall_ns(),
          .date = HttpDateOf(stream_.loop().wall_ns())};
}

void Connection::AnswerError(int status, std::string_view reason) {
  const char* code = status == 408   ? "timeout"
                     : status == 413 ? "payload_too_large"
                     : status == 431 ? "headers_too_large"
                                     : "bad_request";
  const std::string body = R"({"error":{"code":")" + std::string(code) + R"(","message":")" +
                           std::string(reason) + R"("}})";
  http1::ResponseWriter answer(out_);
  answer.Begin(status);
  answer.Field("Content-Type", "application/json");
  answer.Date(HttpDateOf(stream_.loop().wall_ns()));
  answer.Connection(false, 1);
  answer.Body(body);
}

}  // namespace

std::string_view HttpDateOf(int64_t wall_ns) {
  static thread_local int64_t rendered_second = -1;
  static thread_local http1::HttpDate date{};
  const int64_t second = wall_ns / 1'000'000'000;
  if (second != rendered_second) {
    date = http1::FormatHttpDate(second);
    rendered_second = second;
  }
  return date.view();
}

Task<void> ServeHttp(std::unique_ptr<Stream> stream, HttpService& service,
                     HttpServiceOptions options, const DrainFlag& drain) {
  Connection connection(*stream, service, options, drain);
  co_await ServePipelined(*stream, connection,
                          {.call_ns = options.header_timeout_ns,
                           .idle_ns = options.idle_timeout_ns,
                           .write_ns = options.write_timeout_ns},
                          drain);
}

}  // namespace weir::net
