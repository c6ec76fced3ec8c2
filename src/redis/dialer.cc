#include "redis/dialer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "net/connector.h"
#include "wire/buffer.h"
#include "wire/resp/reply_parser.h"

namespace weir::redis {
namespace {

constexpr size_t kEndpointsMax = 8;  // Of one name, for each attempt.

std::unexpected<Error> At(const Address& address, const Error& error) {
  return MakeError(error.code, address.ToString() + ": " + error.message);
}

Error BrokenBy(net::IoStatus status, const net::Stream& stream, const TlsOptions& tls) {
  if (status == net::IoStatus::kTimedOut)
    return {ErrorCode::kDeadlineExceeded, "the server accepts and does not answer"};
  if (status == net::IoStatus::kEnd)
    return {ErrorCode::kUnavailable, "the server closed the connection during the handshake"};
  if (!stream.is_tls())
    return {ErrorCode::kUnavailable, "the connection broke during the handshake"};
  // With TLS 1.3 a server refuses a client's certificate when TLS is up for the client already; its
  // alert may be lost in the reset behind it.
  if (!stream.tls_fault().empty())
    return {ErrorCode::kUnavailable, "TLS: " + std::string(stream.tls_fault())};
  return {ErrorCode::kUnavailable,
          std::string("the server broke the connection after the TLS handshake; it may want ") +
              (tls.cert_file.empty() ? "a client certificate" : "another client certificate")};
}

}  // namespace

Result<std::unique_ptr<net::TlsContext>> TlsContextOf(const TlsOptions& tls) {
  return net::TlsContext::Client({.ca_file = tls.ca_file,
                                  .cert_file = tls.cert_file,
                                  .key_file = tls.key_file,
                                  .verify = tls.verify});
}

Dialer::Dialer(net::EventLoop& loop, net::Resolver& resolver, TlsOptions tls, bool insecure)
    : loop_(loop), resolver_(resolver), tls_(std::move(tls)), insecure_(insecure) {
  if (!tls_.enabled) return;
  Result<std::unique_ptr<net::TlsContext>> context = TlsContextOf(tls_);
  if (context) {
    context_ = std::move(*context);
  } else {
    tls_fault_ = context.error();
  }
}

Task<Result<std::unique_ptr<net::Stream>>> Dialer::Connect(Address address, int64_t deadline_ns) {
  std::vector<net::Endpoint> endpoints;
  if (address.is_unix()) {
    Result<net::Endpoint> endpoint = net::Endpoint::Parse("unix:" + address.host);
    if (!endpoint) co_return std::unexpected(endpoint.error());
    endpoints.push_back(*endpoint);
  } else {
    Result<std::vector<net::Endpoint>> found =
        co_await resolver_.Resolve(loop_, address.host, address.port);
    if (!found) co_return std::unexpected(found.error());
    endpoints = std::move(*found);
  }
  if (endpoints.size() > kEndpointsMax) endpoints.resize(kEndpointsMax);
  Error fault{ErrorCode::kUnavailable, "the name has no address"};
  for (size_t i = 0; i < endpoints.size(); ++i) {
    // One that does not answer must leave time for the ones after it.
    const int64_t left_ns = deadline_ns - loop_.now_ns();
    const int64_t share_ns = left_ns / static_cast<int64_t>(endpoints.size() - i);
    Result<std::unique_ptr<net::Stream>> stream =
        co_await net::Connect(loop_, endpoints[i], loop_.now_ns() + share_ns);
    if (stream) co_return std::move(*stream);
    fault = stream.error();
  }
  co_return std::unexpected(std::move(fault));
}

Task<Result<void>> Dialer::Greet(Dialed& dialed, Handshake::Options options, int64_t deadline_ns) {
  net::Stream& stream = *dialed.stream;
  Handshake handshake(std::move(options));
  wire::Buffer out;
  handshake.Start(out);
  resp::ReplyParser parser;
  char buffer[4096];
  std::string_view input;
  stream.SetReadDeadline(deadline_ns);
  stream.SetWriteTimeout(std::max<int64_t>(1, deadline_ns - loop_.now_ns()));
  for (;;) {
    if (!out.empty()) {
      const net::IoResult sent = co_await stream.Write(out.View());
      if (!sent.ok()) co_return std::unexpected(BrokenBy(sent.status, stream, tls_));
      out.Clear();
    }
    resp::ReplyParser::State parsed = parser.Next(input);
    while (parsed == resp::ReplyParser::State::kNeedMore) {
      const net::IoResult got = co_await stream.Read(buffer);
      if (!got.ok()) co_return std::unexpected(BrokenBy(got.status, stream, tls_));
      input = {buffer, got.bytes};
      parsed = parser.Next(input);
    }
    if (parsed == resp::ReplyParser::State::kBroken) {
      co_return MakeError(ErrorCode::kUnavailable, std::string(parser.fault()));
    }
    const resp::Value reply = parser.Take();
    if (reply.type == resp::Type::kPush) continue;
    const Handshake::State state = handshake.OnReply(reply, out);
    if (state == Handshake::State::kFailed) co_return std::unexpected(handshake.error());
    if (state == Handshake::State::kReady) break;
  }
  stream.SetReadDeadline(net::kNoDeadline);
  dialed.protocol = handshake.protocol();
  dialed.rest = input;
  co_return Result<void>();
}

Task<Result<Dialed>> Dialer::Dial(Address address, Handshake::Options handshake,
                                  int64_t deadline_ns) {
  if (!handshake.credentials.password.empty() && !tls_.enabled && !insecure_ &&
      !address.IsLocal()) {
    co_return At(address, {ErrorCode::kFailedPrecondition,
                           "the password would cross the network unencrypted; use TLS, or "
                           "insecure: true"});
  }
  if (tls_.enabled && context_ == nullptr) co_return At(address, tls_fault_);
  Result<std::unique_ptr<net::Stream>> stream = co_await Connect(address, deadline_ns);
  if (!stream) co_return At(address, stream.error());
  Dialed dialed;
  dialed.stream = std::move(*stream);
  if (tls_.enabled) {
    std::string name = tls_.server_name.empty() ? address.host : tls_.server_name;
    Result<void> started =
        co_await dialed.stream->StartTlsClient(*context_, std::move(name), deadline_ns);
    if (!started) co_return At(address, started.error());
  }
  Result<void> greeted = co_await Greet(dialed, std::move(handshake), deadline_ns);
  if (!greeted) co_return At(address, greeted.error());
  co_return dialed;
}

}  // namespace weir::redis
