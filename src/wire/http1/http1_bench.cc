// What a head, a chunk and an answer cost.
#include <benchmark/benchmark.h>

#include <string>

#include "wire/http1/body.h"
#include "wire/http1/dates.h"
#include "wire/http1/request_head.h"
#include "wire/http1/response_head.h"
#include "wire/http1/response_writer.h"
#include "wire/uri/canonical_path.h"

namespace weir::http1 {
namespace {

// As a load generator or a client library sends it: about 200 bytes.
constexpr std::string_view kCheckHead =
    "POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1:8081\r\nUser-Agent: python-httpx/0.27.0\r\n"
    "Accept: */*\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n"
    "Content-Type: application/json\r\nContent-Length: 118\r\n\r\n";
// As an AI client library sends it: about 800 bytes.
constexpr std::string_view kClientHead =
    "POST /v1/chat/completions HTTP/1.1\r\nHost: api.example.com\r\nAccept: application/json\r\n"
    "Accept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n"
    "User-Agent: OpenAI/Python 1.54.0\r\nX-Stainless-Lang: python\r\n"
    "X-Stainless-Package-Version: 1.54.0\r\nX-Stainless-OS: Linux\r\nX-Stainless-Arch: x64\r\n"
    "X-Stainless-Runtime: CPython\r\nX-Stainless-Runtime-Version: 3.11.2\r\n"
    "Authorization: Bearer sk-proj-0123456789abcdefghijklmnopqrstuvwxyz0123456789\r\n"
    "X-Stainless-Async: false\r\nX-Stainless-Retry-Count: 0\r\nContent-Length: 412\r\n"
    "Content-Type: application/json\r\n\r\n";

void BM_RequestHead(benchmark::State& state, std::string_view text) {
  RequestHead head;
  const HeadLimits limits;
  for (auto _ : state) {
    benchmark::DoNotOptimize(text.data());
    benchmark::DoNotOptimize(ParseRequestHead(text, limits, head));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}
BENCHMARK_CAPTURE(BM_RequestHead, check, kCheckHead);
BENCHMARK_CAPTURE(BM_RequestHead, client_library, kClientHead);

void BM_ResponseHead(benchmark::State& state) {
  constexpr std::string_view kText =
      "HTTP/1.1 200 OK\r\nDate: Mon, 30 Nov 2026 20:00:03 GMT\r\nContent-Type: "
      "text/event-stream\r\n"
      "Transfer-Encoding: chunked\r\nCache-Control: no-cache\r\nServer: upstream\r\n\r\n";
  ResponseHead head;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ParseResponseHead(kText, HeadLimits(), Method::kPost, head));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_ResponseHead);

void BM_ChunkedBody(benchmark::State& state) {
  wire::Buffer text;
  for (int i = 0; i < 10; ++i) ChunkedWriter::AppendChunk(text, std::string(200, 'x'));
  ChunkedWriter::AppendEnd(text);
  BodyReader reader;
  for (auto _ : state) {
    reader.Start(BodyKind::kChunked, 0);
    std::string_view input = text.View();
    for (;;) {
      const BodyReader::Step step = reader.Feed(input);
      input.remove_prefix(step.consumed);
      if (step.state != BodyReader::State::kPayload) break;
    }
    benchmark::DoNotOptimize(input.data());
  }
}
BENCHMARK(BM_ChunkedBody);

void BM_Answer(benchmark::State& state) {
  wire::Buffer out(4096);
  const HttpDate date = FormatHttpDate(1'796'068'803);
  for (auto _ : state) {
    out.Clear();
    ResponseWriter answer(out);
    answer.Begin(200);
    answer.TrustedFields("Content-Type: application/json\r\n");
    answer.Date(date.view());
    answer.BeginBody();
    out.Append(R"({"allowed":true,"denied_by":[],"source":"memory","retry_after_ms":0})");
    answer.EndBody();
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(BM_Answer);

void BM_CanonicalPath(benchmark::State& state) {
  std::string scratch;
  for (auto _ : state) {
    std::string_view path = "/v1/chat/completions";
    benchmark::DoNotOptimize(path);
    benchmark::DoNotOptimize(uri::CanonicalPath(path, scratch));
  }
}
BENCHMARK(BM_CanonicalPath);

}  // namespace
}  // namespace weir::http1

BENCHMARK_MAIN();
