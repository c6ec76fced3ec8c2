#include "cli/http_call.h"

#include <charconv>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/connector.h"
#include "net/event_loop.h"
#include "net/resolver.h"
#include "net/stream.h"
#include "net/tls.h"
#include "wire/buffer.h"
#include "wire/http1/body.h"
#include "wire/http1/response_head.h"
#include "wire/http1/response_writer.h"

namespace weir::cli {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
constexpr int64_t kMaxBodyBytes = 16 << 20;

std::unexpected<Error> Truncated(net::IoStatus status) {
  if (status == net::IoStatus::kTimedOut) {
    return MakeError(ErrorCode::kDeadlineExceeded, "the server did not answer in time");
  }
  return MakeError(ErrorCode::kUnavailable,
                   "the server closed the connection before its answer was whole");
}

Task<Result<std::unique_ptr<net::Stream>>> Open(net::EventLoop& loop, net::Resolver& resolver,
                                                const ServerUrl& url, const net::TlsContext* tls,
                                                int64_t deadline_ns) {
  std::vector<net::Endpoint> endpoints;
  if (url.is_unix) {
    Result<net::Endpoint> endpoint = net::Endpoint::Parse("unix:" + url.host);
    if (!endpoint) co_return std::unexpected(endpoint.error());
    endpoints.push_back(*endpoint);
  } else {
    Result<std::vector<net::Endpoint>> found = co_await resolver.Resolve(loop, url.host, url.port);
    if (!found) co_return std::unexpected(found.error());
    endpoints = std::move(*found);
  }
  Result<std::unique_ptr<net::Stream>> stream =
      MakeError(ErrorCode::kUnavailable, url.host + ": no address");
  for (const net::Endpoint& endpoint : endpoints) {
    stream = co_await net::Connect(loop, endpoint, deadline_ns);
    if (stream) break;
  }
  if (stream && tls != nullptr) {
    const Result<void> started = co_await (*stream)->StartTlsClient(*tls, url.host, deadline_ns);
    if (!started) co_return std::unexpected(started.error());
  }
  co_return stream;
}

std::string RenderRequest(const ServerUrl& url, const HttpQuestion& question) {
  wire::Buffer out;
  http1::AppendRequestLine(out, "POST", url.base_path + question.path);
  const bool is_v6 = url.host.find(':') != std::string::npos;
  const std::string host = url.is_unix ? "localhost" : is_v6 ? "[" + url.host + "]" : url.host;
  http1::AppendField(out, "Host", url.is_unix ? host : host + ":" + std::to_string(url.port));
  http1::AppendField(out, "Content-Type", "application/json");
  http1::AppendField(out, "Content-Length", std::to_string(question.body.size()));
  http1::AppendField(out, "Connection", "close");
  if (!question.token.empty()) http1::AppendField(out, "Authorization", "Bearer " + question.token);
  out.Append("\r\n");
  out.Append(question.body);
  return std::string(out.View());
}

Task<Result<HttpAnswer>> ReadAnswer(net::Stream& stream) {
  wire::Buffer in;
  http1::ResponseHead head;
  HttpAnswer answer;
  for (;;) {
    char* const room = in.Prepare(kReadBytes);
    const net::IoResult got = co_await stream.Read({room, in.spare()});
    if (!got.ok()) co_return Truncated(got.status);
    in.Commit(got.bytes);
    http1::ParseOutcome outcome;
    do {  // Interim answers may come first.
      outcome = http1::ParseResponseHead(in.View(), {}, http1::Method::kPost, head);
      if (outcome.error())
        co_return MakeError(ErrorCode::kUnavailable, std::string("not HTTP: ") + outcome.reason);
      if (outcome.complete()) in.Consume(outcome.consumed);
    } while (outcome.complete() && head.interim() && !in.empty());
    if (outcome.complete() && !head.interim()) break;
  }
  answer.status = head.status;
  http1::BodyReader reader;
  reader.Start(head.body, head.content_length, {.body_bytes_max = kMaxBodyBytes});
  for (;;) {
    const http1::BodyReader::Step step = reader.Feed(in.View());
    answer.body += step.payload;
    in.Consume(step.consumed);
    if (step.state == http1::BodyReader::State::kDone) co_return answer;
    if (step.state == http1::BodyReader::State::kError)
      co_return MakeError(ErrorCode::kUnavailable, step.reason);
    if (step.state == http1::BodyReader::State::kPayload) continue;
    char* const room = in.Prepare(kReadBytes);
    const net::IoResult got = co_await stream.Read({room, in.spare()});
    if (got.ok()) {
      in.Commit(got.bytes);
      continue;
    }
    if (got.status == net::IoStatus::kEnd &&
        reader.FinishInput().state == http1::BodyReader::State::kDone) {
      co_return answer;
    }
    co_return Truncated(got.status);
  }
}

struct Conversation {
  net::EventLoop& loop;
  net::Resolver& resolver;
  const ServerUrl& url;
  const HttpQuestion& question;
  const net::TlsContext* tls;
  int64_t deadline_ns;
  Result<HttpAnswer> answer = MakeError(ErrorCode::kUnavailable, "no answer");
};

Task<void> Converse(Conversation& talk) {
  Result<std::unique_ptr<net::Stream>> stream =
      co_await Open(talk.loop, talk.resolver, talk.url, talk.tls, talk.deadline_ns);
  if (!stream) {
    talk.answer = std::unexpected(stream.error());
  } else {
    (*stream)->SetReadDeadline(talk.deadline_ns);
    (*stream)->SetWriteTimeout(talk.deadline_ns - talk.loop.now_ns());
    const std::string request = RenderRequest(talk.url, talk.question);
    const net::IoResult sent = co_await (*stream)->Write(request);
    if (sent.ok()) {
      talk.answer = co_await ReadAnswer(**stream);
    } else {
      talk.answer = Truncated(sent.status);
    }
  }
  talk.loop.Stop();
}

}  // namespace

Result<ServerUrl> ServerUrl::Parse(std::string_view text) {
  const auto wrong = [&] {
    return InvalidArgument(
        "\"" + std::string(text) +
        "\": a URL such as http://127.0.0.1:8081 or unix:/run/weir.sock is meant");
  };
  ServerUrl url;
  if (text.starts_with("unix:")) {
    url.is_unix = true;
    url.host = text.substr(5);
    return url.host.empty() ? Result<ServerUrl>(wrong()) : url;
  }
  std::string_view rest = text;
  if (rest.starts_with("https://")) {
    url.tls = true;
    url.port = 443;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return wrong();
  }
  const size_t slash = rest.find('/');
  if (slash != std::string_view::npos) url.base_path = rest.substr(slash);
  while (url.base_path.ends_with('/')) url.base_path.pop_back();
  std::string_view authority = rest.substr(0, slash);
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    const std::string_view digits = authority.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), url.port);
    if (error != std::errc() || end != digits.data() + digits.size() || url.port < 1 ||
        url.port > 65535)
      return wrong();
    authority = authority.substr(0, colon);
  }
  if (authority.starts_with('[') && authority.ends_with(']'))
    authority = authority.substr(1, authority.size() - 2);
  if (authority.empty()) return wrong();
  url.host = authority;
  return url;
}

Result<HttpAnswer> CallHttp(const ServerUrl& url, const HttpQuestion& question,
                            int64_t timeout_ns) {
  const SystemClock clock;
  Result<std::unique_ptr<net::EventLoop>> loop = net::EventLoop::Create(clock);
  if (!loop) return std::unexpected(loop.error());
  std::unique_ptr<net::TlsContext> tls;
  if (url.tls) {
    Result<std::unique_ptr<net::TlsContext>> made =
        net::TlsContext::Client({.ca_file = question.ca_file});
    if (!made) return std::unexpected(made.error());
    tls = std::move(*made);
  }
  net::Resolver resolver;
  const int64_t deadline_ns = clock.MonotonicNs() + timeout_ns;
  Conversation talk{**loop, resolver, url, question, tls.get(), deadline_ns};
  net::Timer bound(**loop, [&] {  // Name look-ups have no deadline of their own.
    talk.answer = MakeError(ErrorCode::kDeadlineExceeded, "the server did not answer in time");
    (*loop)->Stop();
  });
  bound.ArmAt(deadline_ns + 200'000'000);
  (*loop)->Spawn(Converse(talk));
  (*loop)->Run();
  return std::move(talk.answer);
}

}  // namespace weir::cli
