// MockServer: a stand-in for an AI API, for demonstrations, tests and benchmarks. One event loop,
// HTTP/1.1, keep-alive.
//
//   POST /v1/chat/completions  /v1/responses  /v1/messages   whole answers and streams
//   POST /v1/embeddings        GET /v1/models
//   any  /echo…                what arrived, as JSON: method, target, headers, body, trailers
//   GET  /ws…                  a WebSocket that echoes
//   GET  /mock/stats           requests so far by path, calls under way, streams that the caller
//   left any other path             200 with an empty object
//
// Every path may stand behind any prefix ("/openai/v1/models" is /v1/models), so that rewrites can
// be shown. Thread safety: the loop's thread only. The server must outlive its connections' tasks,
// and so the loop's run.
//
//   MockServer server(loop, defaults);
//   auto listener = net::Listener::Open(loop, endpoint, [&](auto stream) {
//   server.Accept(std::move(stream)); });
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/task.h"
#include "cli/mock_upstream/knobs.h"
#include "net/event_loop.h"
#include "net/stream.h"
#include "net/tls.h"

namespace weir::mock {

class MockServer {
 public:
  // `tls` may be null: plain TCP.
  MockServer(net::EventLoop& loop, const Knobs& defaults, const net::TlsContext* tls)
      : loop_(loop), defaults_(defaults), tls_(tls) {}

  void Accept(std::unique_ptr<net::Stream> stream);

  // What /mock/stats says.
  struct Stats {
    int64_t connections = 0;  // Ever accepted.
    int64_t open = 0;         // Now.
    int64_t requests = 0;     // Heads read, /mock/stats left out.
    int64_t in_flight = 0;    // Without the one that asks.
    int64_t in_flight_max = 0;
    int64_t left = 0;  // Streams whose caller went away before their end.
    std::map<std::string, int64_t, std::less<>> by_path;  // The first 1,000 paths.
  };
  Stats& stats() { return stats_; }
  const Knobs& defaults() const { return defaults_; }

 private:
  Task<void> Serve(std::unique_ptr<net::Stream> stream);

  net::EventLoop& loop_;
  const Knobs defaults_;
  const net::TlsContext* const tls_;
  Stats stats_;
};

}  // namespace weir::mock
