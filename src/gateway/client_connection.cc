#include "gateway/client_connection.h"

#include <netinet/in.h>

#include <algorithm>

#include "gateway/loop_state.h"
#include "gateway/own_answer.h"

namespace weir::gateway {
namespace {

constexpr size_t kIdleBytes =
    4 * 1024;  // What a connection reads into while it waits for a request.
constexpr size_t kReadBytes = 16 * 1024;  // Once a request has shown to be longer.

identity::IpAddress AddressOf(const net::Endpoint& peer) {
  if (peer.family() == AF_INET) {
    const auto& v4 = *reinterpret_cast<const sockaddr_in*>(peer.address());
    return identity::IpAddress::V4(ntohl(v4.sin_addr.s_addr));
  }
  if (peer.family() == AF_INET6) {
    const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(peer.address());
    return identity::IpAddress::FromV6Bytes(std::span<const uint8_t, 16>(v6.sin6_addr.s6_addr, 16));
  }
  return identity::IpAddress::V4(INADDR_LOOPBACK);  // A unix socket: this host.
}

// Keeps the loop's list of connections true, whatever way the coroutine ends.
class Registration {
 public:
  Registration(LoopState& state, net::Stream& stream) : state_(state) {
    connection.stream = &stream;
    state_.Register(connection);
  }
  ~Registration() { state_.Unregister(connection); }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  OpenConnection connection;

 private:
  LoopState& state_;
};

int64_t DeadlineAfter(int64_t now_ns, int64_t timeout_ns) {
  return timeout_ns > 0 ? now_ns + timeout_ns : net::kNoDeadline;
}

// Room for the next read: little while nothing has come, more for a head that did not fit.
std::span<char> RoomIn(wire::Buffer& in) {
  if (in.spare() < kIdleBytes / 4) in.Prepare(in.empty() ? kIdleBytes : kReadBytes);
  return {in.Prepare(1), in.spare()};
}

Task<void> AnswerHeadError(LoopState& state, net::Stream& stream, int status, const char* reason) {
  wire::Buffer out;
  RenderHeadError(state, status, reason, out);
  const net::IoResult sent = co_await stream.Write(out.View());
  if (sent.ok()) co_await net::CloseGently(stream);
}

}  // namespace

Task<void> ServeClient(std::shared_ptr<LoopState> state, std::unique_ptr<net::Stream> stream) {
  net::EventLoop& loop = state->loop();
  Registration registration(*state, *stream);
  bool& idle = registration.connection.idle;
  Client client{.stream = *stream,
                .in = {},
                .address = AddressOf(stream->peer()),
                .address_text = stream->peer().is_unix() ? std::string() : stream->peer().Host()};
  std::unique_ptr<Call> call;
  http1::HeadProgress progress;
  int64_t head_deadline_ns = net::kNoDeadline;

  for (;;) {
    http1::ParseOutcome head;
    if (!client.in.empty()) {
      if (call == nullptr) call = state->TakeCall();
      head = http1::ParseRequestHead(client.in.View(), state->View()->head_limits, call->head,
                                     &progress);
    }
    if (head.error()) {
      state->GiveBack(std::move(call));
      co_await AnswerHeadError(*state, *stream, head.status, head.reason);
      co_return;
    }
    if (head.need_more()) {
      const Timeouts& timeouts = state->View()->timeouts;
      if (client.in.empty()) {
        idle = true;
        if (call != nullptr) state->GiveBack(std::move(call));
        client.in.ClearAndShrink(kIdleBytes);
        head_deadline_ns = net::kNoDeadline;
        stream->SetWriteTimeout(timeouts.write_ns);
        stream->SetReadDeadline(DeadlineAfter(loop.now_ns(), timeouts.idle_ns));
      } else {
        if (idle) head_deadline_ns = DeadlineAfter(loop.now_ns(), timeouts.header_ns);
        idle = false;
        stream->SetReadDeadline(head_deadline_ns);
      }
      const std::span<char> room = RoomIn(client.in);
      const net::IoResult got = co_await stream->Read(room);
      if (got.ok()) {
        client.in.Commit(got.bytes);
        continue;
      }
      const bool late = got.status == net::IoStatus::kTimedOut && !client.in.empty();
      if (call != nullptr) state->GiveBack(std::move(call));
      if (late)
        co_await AnswerHeadError(*state, *stream, 408, "the request did not arrive in time");
      co_return;
    }
    idle = false;
    const Ending ending = co_await HandleCall(*state, client, *call, head.consumed);
    if (ending == Ending::kKeep) {
      progress = {};
      idle = true;  // For the header deadline of a pipelined request that has arrived in part.
      if (!client.in.empty()) call->Reset();
      continue;
    }
    state->GiveBack(std::move(call));
    if (ending == Ending::kClose) co_await net::CloseGently(*stream);
    co_return;
  }
}

}  // namespace weir::gateway
