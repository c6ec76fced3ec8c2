// HttpService: serves HTTP/1.1 on a stream for doors for programs: requests are parsed in place,
// every pipelined one that has arrived is answered into one buffer, and the buffer goes out in one
// write. A door whose answers wait for others says so and answers in a task.
//
// Thread safety: one HttpService may answer on many loops at once, so its Answer must be
// thread-safe; everything else belongs to the stream's loop.
//
//   class Ping : public HttpService {
//     void Answer(const HttpRequest& request, http1::ResponseWriter& answer) override { … }
//   };
//   loop.Spawn(ServeHttp(std::move(stream), ping, options));
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/task.h"
#include "net/serve_pipelined.h"
#include "net/stream.h"
#include "wire/buffer.h"
#include "wire/http1/request_head.h"
#include "wire/http1/response_writer.h"

namespace weir::net {

// One whole request. Views live until Answer returns, or AnswerLater's task has finished.
struct HttpRequest {
  const http1::RequestHead& head;
  std::string_view body;  // Decoded when it was chunked.
  const Endpoint& peer;
  int64_t now_ns;  // The loop's tick, monotonic and Unix.
  int64_t wall_ns;
  std::string_view date;  // For the Date field; rendered once a second.
};

class HttpService {
 public:
  virtual ~HttpService() = default;
  // Appends exactly one answer, complete with its framing. Runs on the stream's loop; must not
  // block.
  virtual void Answer(const HttpRequest& request, http1::ResponseWriter& answer) = 0;

  // True: AnswerLater is asked instead. The same for as long as a connection lives.
  virtual bool waits() const { return false; }
  // As Answer; the connection's next request is taken when the task has finished.
  virtual Task<void> AnswerLater(const HttpRequest& request, http1::ResponseWriter& answer) {
    Answer(request, answer);
    co_return;
  }
};

struct HttpServiceOptions {
  http1::HeadLimits head;
  int64_t body_bytes_max = 1 << 20;  // Beyond: 413.
  int64_t header_timeout_ns =
      10'000'000'000;  // From a request's first byte to its last: 408. 0: none.
  int64_t idle_timeout_ns = 75'000'000'000;   // Between requests: closed without a word. 0: none.
  int64_t write_timeout_ns = 30'000'000'000;  // 0: none.
};

// Serves until the peer closes, breaks the protocol, times out, or `drain` says so. `service` and
// `drain` must outlive it.
Task<void> ServeHttp(std::unique_ptr<Stream> stream, HttpService& service,
                     HttpServiceOptions options, const DrainFlag& drain);

// "Mon, 30 Nov 2026 20:00:03 GMT" for the second that holds `wall_ns`; rendered once a second for
// each thread.
std::string_view HttpDateOf(int64_t wall_ns);

}  // namespace weir::net
