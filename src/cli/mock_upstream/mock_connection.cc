#include "cli/mock_upstream/mock_connection.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>

#include "cli/mock_upstream/websocket_echo.h"
#include "net/http_service.h"
#include "wire/json/model_request.h"
#include "wire/json/writer.h"

namespace weir::mock {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
constexpr size_t kBodyBytesKept = 1 << 20;
constexpr size_t kPathsCounted = 1000;
constexpr int64_t kNanosPerMilli = 1'000'000;

using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

std::string Hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

// Whether the call is for `path`, behind any prefix.
bool IsFor(std::string_view actual, std::string_view path) { return actual.ends_with(path); }

}  // namespace

MockConnection::MockConnection(MockServer& server, net::Stream& stream)
    : server_(server), stream_(stream), gone_(stream.loop()) {}

Task<void> MockConnection::Run() {
  MockServer::Stats& stats = server_.stats();
  for (;;) {
    const Got got = co_await ReadRequest();
    if (got == Got::kEnd) break;
    ++stats.in_flight;
    stats.in_flight_max = std::max(stats.in_flight_max, stats.in_flight);
    const bool go_on = co_await Answer();
    --stats.in_flight;
    if (!go_on) break;
    // Answers to requests that have arrived already go out together.
    if (!in_.empty() && out_.size() < kReadBytes) continue;
    const bool sent = co_await Flush();
    if (!sent) break;
  }
  stream_.OnHangup(nullptr);
}

Task<bool> MockConnection::Fill() {
  if (!out_.empty()) {
    const bool sent = co_await Flush();
    if (!sent) co_return false;
  }
  char* const room = in_.Prepare(kReadBytes);
  const net::IoResult got = co_await stream_.Read({room, in_.spare()});
  if (!got.ok()) co_return false;
  in_.Commit(got.bytes);
  co_return true;
}

Task<bool> MockConnection::Flush() {
  const net::IoResult sent = co_await stream_.Write(out_.View());
  out_.Clear();
  co_return sent.ok();
}

Task<MockConnection::Got> MockConnection::ReadRequest() {
  http1::HeadProgress progress;
  for (;;) {
    if (!in_.empty()) {
      http1::ParseOutcome outcome = http1::ParseRequestHead(in_.View(), {}, head_, &progress);
      if (outcome.error()) {
        wire::Buffer body;
        AppendError(body, Api::kChat, outcome.status, outcome.reason);
        knobs_ = Knobs{.close = true};
        head_ = http1::RequestHead{};
        AnswerWhole(outcome.status, body.View());
        co_await Flush();
        co_return Got::kEnd;
      }
      if (outcome.complete()) {
        head_bytes_.Clear();
        head_bytes_.Append(in_.View().substr(0, outcome.consumed));
        in_.Consume(outcome.consumed);
        http1::ParseRequestHead(head_bytes_.View(), {}, head_);
        const bool whole = co_await ReadBody();
        co_return whole ? Got::kRequest : Got::kEnd;
      }
    }
    const bool more = co_await Fill();
    if (!more) co_return Got::kEnd;
  }
}

Task<bool> MockConnection::ReadBody() {
  body_.clear();
  body_bytes_ = 0;
  body_sha256_.clear();
  trailers_.clear();
  if (head_.body == http1::BodyKind::kNone) co_return true;
  if (head_.expect_continue && in_.empty()) {
    out_.Append("HTTP/1.1 100 Continue\r\n\r\n");
    const bool sent = co_await Flush();
    if (!sent) co_return false;
  }
  DigestContext digest(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr);
  http1::BodyReader reader;
  reader.Start(head_.body, head_.content_length);
  for (;;) {
    const http1::BodyReader::Step step = reader.Feed(in_.View());
    if (body_.size() < kBodyBytesKept)
      body_ += step.payload.substr(0, kBodyBytesKept - body_.size());
    body_bytes_ += static_cast<int64_t>(step.payload.size());
    EVP_DigestUpdate(digest.get(), step.payload.data(), step.payload.size());
    in_.Consume(step.consumed);
    if (step.state == http1::BodyReader::State::kDone) break;
    if (step.state == http1::BodyReader::State::kError) co_return false;
    if (step.state == http1::BodyReader::State::kPayload) continue;
    const bool more = co_await Fill();
    if (!more) co_return false;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum;
  unsigned int sum_bytes = 0;
  EVP_DigestFinal_ex(digest.get(), sum.data(), &sum_bytes);
  body_sha256_ = Hex({reinterpret_cast<const char*>(sum.data()), sum_bytes});
  for (const http1::HeaderField& field : reader.trailers())
    trailers_.emplace_back(field.name, field.value);
  co_return true;
}

Task<bool> MockConnection::Pause(int64_t until_ns) {
  if (!out_.empty()) {
    const bool sent = co_await Flush();
    if (!sent) co_return false;
  }
  gone_.Reset();
  stream_.OnHangup([this] { gone_.Set(); });
  const bool gone = co_await gone_.WaitUntil(until_ns);
  stream_.OnHangup(nullptr);
  co_return !gone;
}

Task<bool> MockConnection::Answer() {
  MockServer::Stats& stats = server_.stats();
  if (head_.path == "/mock/stats") {
    knobs_ = server_.defaults();
    wire::Buffer body;
    AppendStats(body);
    AnswerWhole(200, body.View());
    co_return head_.keep_alive;
  }
  ++stats.requests;
  if (const auto known = stats.by_path.find(head_.path); known != stats.by_path.end()) {
    ++known->second;
  } else if (stats.by_path.size() < kPathsCounted) {
    stats.by_path.emplace(head_.path, 1);
  }
  Result<Knobs> knobs = ReadKnobs(head_, server_.defaults());
  if (!knobs) {
    knobs_ = server_.defaults();
    wire::Buffer body;
    AppendError(body, Api::kChat, 400, knobs.error().message);
    AnswerWhole(400, body.View());
    co_return head_.keep_alive;
  }
  knobs_ = std::move(*knobs);
  if (knobs_.latency_ms > 0) {
    const bool there = co_await Pause(stream_.loop().now_ns() + knobs_.latency_ms * kNanosPerMilli);
    if (!there) co_return false;
  }
  if (head_.upgrade && head_.path.starts_with("/ws")) {
    co_await EchoWebSocket();
    co_return false;
  }
  bool go_on = true;
  if (IsFor(head_.path, "/v1/chat/completions")) {
    go_on = co_await AnswerApi(Api::kChat);
  } else if (IsFor(head_.path, "/v1/responses")) {
    go_on = co_await AnswerApi(Api::kResponses);
  } else if (IsFor(head_.path, "/v1/messages")) {
    go_on = co_await AnswerApi(Api::kMessages);
  } else if (knobs_.status != 200) {
    wire::Buffer body;
    AppendError(body, Api::kChat, knobs_.status, "as asked for");
    AnswerWhole(knobs_.status, body.View());
  } else if (IsFor(head_.path, "/v1/embeddings")) {
    wire::Buffer body;
    AppendEmbeddings(body, {.knobs = knobs_});
    AnswerWhole(200, body.View());
  } else if (IsFor(head_.path, "/v1/models")) {
    wire::Buffer body;
    AppendModels(body);
    AnswerWhole(200, body.View());
  } else if (head_.path.find("/echo") != std::string_view::npos) {
    wire::Buffer body;
    AppendEcho(body);
    AnswerWhole(200, body.View());
  } else if (knobs_.body_bytes > 0) {
    AnswerWhole(200, std::string(static_cast<size_t>(knobs_.body_bytes), 'x'), "text/plain");
  } else {
    AnswerWhole(200, "{}");
  }
  co_return go_on&& head_.keep_alive && !knobs_.close;
}

Task<bool> MockConnection::AnswerApi(Api api) {
  Call call{.api = api, .created_s = stream_.loop().wall_ns() / 1'000'000'000, .knobs = knobs_};
  json::ModelRequestReader reader;
  reader.Feed(body_);
  if (!reader.Finish()) {
    wire::Buffer body;
    AppendError(body, api, 400, reader.error());
    AnswerWhole(400, body.View());
    co_return true;
  }
  const json::ModelRequestFields& fields = reader.fields();
  if (fields.model) call.model = *fields.model;
  call.stream = fields.stream.value_or(false);
  call.include_usage = fields.include_usage.value_or(false);
  if (knobs_.status != 200) {
    wire::Buffer body;
    AppendError(body, api, knobs_.status, "as asked for");
    AnswerWhole(knobs_.status, body.View());
    co_return true;
  }
  if (call.stream) {
    const bool whole = co_await AnswerStream(call);
    co_return whole;
  }
  wire::Buffer body;
  AppendAnswer(body, call);
  AnswerWhole(200, body.View());
  co_return true;
}

void MockConnection::AppendKnobHeaders(http1::ResponseWriter& answer) const {
  ForEachField(knobs_.headers,
               [&](std::string_view name, std::string_view value) { answer.Field(name, value); });
}

void MockConnection::AnswerWhole(int64_t status, std::string_view body, std::string_view type) {
  http1::ResponseWriter answer(out_);
  answer.Begin(static_cast<int>(status));
  answer.Field("Content-Type", type);
  answer.Date(net::HttpDateOf(stream_.loop().wall_ns()));
  answer.Connection(head_.keep_alive && !knobs_.close, head_.minor_version);
  AppendKnobHeaders(answer);
  if (head_.method_id == http1::Method::kHead)
    return answer.EndHeadOnly(static_cast<int64_t>(body.size()));
  if (knobs_.trailers.empty() && !knobs_.chunked) return answer.Body(body);
  if (head_.minor_version == 0) return answer.Body(body);
  std::vector<http1::HeaderField> trailers;
  ForEachField(knobs_.trailers, [&](std::string_view name, std::string_view value) {
    trailers.push_back({.name = name, .value = value});
  });
  answer.EndChunked();
  Chunk(body);
  http1::ChunkedWriter::AppendEnd(out_, trailers);
}

Task<bool> MockConnection::AnswerStream(const Call& call) {
  {
    http1::ResponseWriter answer(out_);
    answer.Begin(200);
    answer.Field("Content-Type", "text/event-stream; charset=utf-8");
    answer.Field("Cache-Control", "no-cache");
    answer.Date(net::HttpDateOf(stream_.loop().wall_ns()));
    AppendKnobHeaders(answer);
    answer.EndChunked();
  }
  if (knobs_.endless_bytes > 0) {
    const bool whole = co_await StreamEndless(call);
    co_return whole;
  }
  wire::Buffer event;
  AppendStreamBegin(event, call, NowNs());
  Chunk(event.View());
  // Each event at its own time from the start, so that a late one does not delay the others.
  const int64_t start_ns = stream_.loop().now_ns();
  for (int64_t i = 0; i < knobs_.events; ++i) {
    if (i == knobs_.abort_after || i == knobs_.hang_after) break;
    if (knobs_.pace_ms > 0) {
      const bool there = co_await Pause(start_ns + (i + 1) * knobs_.pace_ms * kNanosPerMilli);
      if (!there) {
        ++server_.stats().left;
        co_return false;
      }
    }
    event.Clear();
    AppendStreamEvent(event, call, i, NowNs());
    Chunk(event.View());
    if (out_.size() >= kReadBytes || knobs_.pace_ms > 0) {
      const bool sent = co_await Flush();
      if (!sent) {
        ++server_.stats().left;
        co_return false;
      }
    }
  }
  if (knobs_.abort_after >= 0) {
    co_await Flush();
    co_return false;
  }
  if (knobs_.hang_after >= 0) {
    co_await Pause(net::kNoDeadline);
    ++server_.stats().left;
    co_return false;
  }
  event.Clear();
  AppendStreamEnd(event, call, NowNs());
  Chunk(event.View());
  http1::ChunkedWriter::AppendEnd(out_);
  co_return true;
}

Task<bool> MockConnection::StreamEndless(const Call& call) {
  out_.Append("7\r\ndata: \"\r\n");
  const std::string piece(kReadBytes, 'x');
  for (int64_t left = call.knobs.endless_bytes; left > 0;
       left -= static_cast<int64_t>(piece.size())) {
    Chunk(std::string_view(piece).substr(0, static_cast<size_t>(left)));
    const bool sent = co_await Flush();
    if (!sent) {
      ++server_.stats().left;
      co_return false;
    }
  }
  http1::ChunkedWriter::AppendEnd(out_);
  co_return true;
}

Task<void> MockConnection::EchoWebSocket() {
  {
    const http1::HeaderField* key = head_.headers.Find("sec-websocket-key");
    http1::ResponseWriter answer(out_);
    answer.Begin(101);
    answer.Field("Upgrade", "websocket");
    answer.Field("Connection", "Upgrade");
    answer.Field("Sec-WebSocket-Accept",
                 WebSocketAccept(key != nullptr ? key->value : std::string_view()));
    AppendKnobHeaders(answer);
    answer.End();
  }
  bool closing = false;
  for (;;) {
    while (!closing) {
      const size_t taken = EchoFrame(in_.View(), out_, closing);
      if (taken == 0) break;
      in_.Consume(taken);
    }
    const bool sent = co_await Flush();
    if (!sent || closing) break;
    const bool more = co_await Fill();
    if (!more) break;
  }
}

void MockConnection::AppendEcho(wire::Buffer& body) const {
  json::Writer json(body);
  json.BeginObject();
  json.Key("method").String(head_.method).Key("target").String(head_.target);
  json.Key("path")
      .String(head_.path)
      .Key("query")
      .String(head_.query)
      .Key("host")
      .String(head_.host);
  json.Key("minor_version").Int(head_.minor_version).Key("peer").String(stream_.peer().ToString());
  json.Key("headers").BeginArray();
  for (const http1::HeaderField& field : head_.headers) {
    json.BeginArray().String(field.name).String(field.value).EndArray();
  }
  json.EndArray().Key("trailers").BeginArray();
  for (const auto& [name, value] : trailers_)
    json.BeginArray().String(name).String(value).EndArray();
  json.EndArray();
  json.Key("body_bytes").Int(body_bytes_).Key("body_sha256").String(body_sha256_);
  json.Key("body").String(static_cast<size_t>(body_bytes_) == body_.size() ? std::string_view(body_)
                                                                           : "");
  json.EndObject();
}

void MockConnection::AppendStats(wire::Buffer& body) const {
  const MockServer::Stats& stats = server_.stats();
  json::Writer json(body);
  json.BeginObject();
  json.Key("connections").Int(stats.connections).Key("open").Int(stats.open);
  json.Key("requests").Int(stats.requests).Key("in_flight").Int(stats.in_flight - 1);
  json.Key("in_flight_max").Int(stats.in_flight_max).Key("left").Int(stats.left);
  json.Key("by_path").BeginObject();
  for (const auto& [path, count] : stats.by_path) json.EscapedKey(path).Int(count);
  json.EndObject().EndObject();
}

}  // namespace weir::mock
