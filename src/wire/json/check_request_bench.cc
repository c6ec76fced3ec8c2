// What the body of a decision costs, against the two libraries that could read it. Both rivals do
// less here: they validate the text and visit its tokens, but check no names, duplicates or
// amounts.
#include <benchmark/benchmark.h>
#include <simdjson.h>

#include <boost/json/basic_parser_impl.hpp>
#include <string>

#include "wire/buffer.h"
#include "wire/json/check_request.h"
#include "wire/json/writer.h"

namespace weir::json {
namespace {

constexpr std::string_view kBody =
    R"({"attributes":{"client":"alice","path":"/v1/chat/completions","model":"gpt-x"},)"
    R"("cost":{"requests":1,"tokens":500}})";

void BM_CheckRequest(benchmark::State& state) {
  CheckRequestParser parser;
  for (auto _ : state) {
    std::string_view body = kBody;
    benchmark::DoNotOptimize(body);
    benchmark::DoNotOptimize(parser.ParseCheck(body));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_CheckRequest);

void BM_CheckRequestBatchOf16(benchmark::State& state) {
  std::string body = R"({"checks":[)";
  for (int i = 0; i < 16; ++i) body.append(i ? "," : "").append(kBody);
  body += "]}";
  CheckRequestParser parser;
  for (auto _ : state) {
    benchmark::DoNotOptimize(parser.ParseCheck(body));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * 16));
}
BENCHMARK(BM_CheckRequestBatchOf16);

struct TokenCounter {
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
  using Ec = boost::json::error_code;
  using Text = boost::json::string_view;
  int tokens = 0;
  bool Count() { return ++tokens > 0; }
  bool on_document_begin(Ec&) { return Count(); }
  bool on_document_end(Ec&) { return Count(); }
  bool on_object_begin(Ec&) { return Count(); }
  bool on_object_end(std::size_t, Ec&) { return Count(); }
  bool on_array_begin(Ec&) { return Count(); }
  bool on_array_end(std::size_t, Ec&) { return Count(); }
  bool on_key_part(Text, std::size_t, Ec&) { return Count(); }
  bool on_key(Text, std::size_t, Ec&) { return Count(); }
  bool on_string_part(Text, std::size_t, Ec&) { return Count(); }
  bool on_string(Text, std::size_t, Ec&) { return Count(); }
  bool on_number_part(Text, Ec&) { return Count(); }
  bool on_int64(int64_t, Text, Ec&) { return Count(); }
  bool on_uint64(uint64_t, Text, Ec&) { return Count(); }
  bool on_double(double, Text, Ec&) { return Count(); }
  bool on_bool(bool, Ec&) { return Count(); }
  bool on_null(Ec&) { return Count(); }
  bool on_comment_part(Text, Ec&) { return Count(); }
  bool on_comment(Text, Ec&) { return Count(); }
};

void BM_BoostJsonTokens(benchmark::State& state) {
  boost::json::basic_parser<TokenCounter> parser{boost::json::parse_options()};
  for (auto _ : state) {
    parser.reset();
    boost::json::error_code ec;
    benchmark::DoNotOptimize(parser.write_some(false, kBody.data(), kBody.size(), ec));
    benchmark::DoNotOptimize(parser.handler().tokens);
  }
}
BENCHMARK(BM_BoostJsonTokens);

void BM_SimdjsonDom(benchmark::State& state) {
  simdjson::dom::parser parser;
  const simdjson::padded_string padded(kBody);
  for (auto _ : state) {
    simdjson::dom::element root;
    benchmark::DoNotOptimize(parser.parse(padded).get(root));
    for (const auto field : simdjson::dom::object(root)) {
      benchmark::DoNotOptimize(field.key.data());
      for (const auto inner : simdjson::dom::object(field.value)) {
        benchmark::DoNotOptimize(inner.key.data());
      }
    }
  }
}
BENCHMARK(BM_SimdjsonDom);

void BM_WriteDecision(benchmark::State& state) {
  wire::Buffer out(4096);
  for (auto _ : state) {
    out.Clear();
    Writer json(out);
    json.BeginObject().Key("allowed").Bool(false);
    json.Key("denied_by").BeginArray().String("per-client").EndArray();
    json.Key("source").String("memory").Key("retry_after_ms").Int(144);
    json.Key("reservation").Null().Key("limits").BeginArray().BeginObject();
    json.Key("name").String("per-client").Key("unit").String("requests").Key("allowed").Bool(false);
    json.Key("quota").Int(50).Key("remaining").Int(0).Key("reset_after_ms").Int(10000);
    json.Key("retry_after_ms").Int(144).Key("shadow").Bool(false).EndObject();
    json.EndArray().EndObject();
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(BM_WriteDecision);

}  // namespace
}  // namespace weir::json

BENCHMARK_MAIN();
