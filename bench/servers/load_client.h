// What the load tools share: a connection that sends one request and reads its answer piece by
// piece, and percentiles.
//
// Thread safety: the loop's thread only. Nothing here recovers: a broken connection ends the tool
// with a message.
//
//   LoadClient client(loop, endpoint);
//   co_await client.Send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
//   int status = co_await client.ReadHead();
//   while (auto piece = co_await client.ReadPiece()) Use(*piece);
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/connector.h"
#include "net/event_loop.h"
#include "net/stream.h"
#include "wire/buffer.h"
#include "wire/http1/body.h"
#include "wire/http1/response_head.h"

namespace weir::bench {

[[noreturn]] inline void Die(std::string_view what) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(what.size()), what.data());
  std::exit(1);
}

class LoadClient {
 public:
  LoadClient(net::EventLoop& loop, net::Endpoint endpoint) : loop_(loop), endpoint_(endpoint) {}

  // Connects first when there is no connection to use.
  Task<void> Send(std::string_view request) {
    if (stream_ == nullptr) {
      auto connected = co_await net::Connect(loop_, endpoint_, loop_.now_ns() + 10'000'000'000);
      if (!connected) Die(connected.error().message);
      stream_ = std::move(*connected);
      in_.Clear();
    }
    const net::IoResult sent = co_await stream_->Write(request);
    if (!sent.ok()) Die("the server closed the connection");
  }

  // The status of the answer.
  Task<int> ReadHead() {
    for (;;) {
      const http1::ParseOutcome outcome =
          http1::ParseResponseHead(in_.View(), {}, http1::Method::kGet, head_);
      if (outcome.error()) Die(outcome.reason);
      if (outcome.complete()) {
        const int status = head_.status;
        keep_alive_ = head_.keep_alive;
        body_.Start(head_.body, head_.content_length);
        in_.Consume(outcome.consumed);
        co_return status;
      }
      co_await Fill();
    }
  }

  // A piece of the body as it came; nothing at its end. Valid until the next read.
  Task<std::optional<std::string_view>> ReadPiece() {
    in_.Consume(std::exchange(pending_, 0));
    for (;;) {
      const http1::BodyReader::Step step = body_.Feed(in_.View());
      if (step.state == http1::BodyReader::State::kError) Die(step.reason);
      if (!step.payload.empty()) {
        pending_ = step.consumed;
        co_return step.payload;
      }
      in_.Consume(step.consumed);
      if (step.state == http1::BodyReader::State::kDone) {
        if (!keep_alive_) stream_.reset();
        co_return std::nullopt;
      }
      if (step.state == http1::BodyReader::State::kNeedMore) co_await Fill();
    }
  }

  Task<void> SkipBody() {
    for (;;) {
      const std::optional<std::string_view> piece = co_await ReadPiece();
      if (!piece) co_return;
    }
  }

  // When the last bytes were read from the socket: CLOCK_MONOTONIC.
  int64_t read_at_ns() const { return read_at_ns_; }

 private:
  Task<void> Fill() {
    char* const room = in_.Prepare(16 * 1024);
    const net::IoResult got = co_await stream_->Read({room, in_.spare()});
    if (!got.ok()) Die("the server closed the connection before its answer was whole");
    read_at_ns_ = loop_.clock().MonotonicNs();
    in_.Commit(got.bytes);
  }

  net::EventLoop& loop_;
  net::Endpoint endpoint_;
  std::unique_ptr<net::Stream> stream_;
  wire::Buffer in_;
  http1::ResponseHead head_;
  http1::BodyReader body_;
  size_t pending_ = 0;
  int64_t read_at_ns_ = 0;
  bool keep_alive_ = true;
};

// The value below which `share` of the samples lie; sorts them. 0 without samples.
inline int64_t Percentile(std::vector<int64_t>& samples, double share) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  const auto at = static_cast<size_t>(share * static_cast<double>(samples.size()));
  return samples[std::min(at, samples.size() - 1)];
}

}  // namespace weir::bench
