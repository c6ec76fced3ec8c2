// MockConnection: one caller of the stand-in upstream, from the first byte to the last.
//
// Thread safety: the stream's loop only. Borrows the server and the stream.
//
//   MockConnection connection(server, *stream);
//   co_await connection.Run();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/task.h"
#include "cli/mock_upstream/answers.h"
#include "cli/mock_upstream/mock_server.h"
#include "net/event.h"
#include "net/stream.h"
#include "wire/buffer.h"
#include "wire/http1/body.h"
#include "wire/http1/request_head.h"
#include "wire/http1/response_writer.h"

namespace weir::mock {

class MockConnection {
 public:
  MockConnection(MockServer& server, net::Stream& stream);

  // Serves requests until the peer closes or breaks the protocol.
  Task<void> Run();

 private:
  enum class Got : uint8_t { kRequest, kEnd };

  // Reads one request whole: head_ and body_ then hold it. Bodies beyond kBodyBytesKept are read,
  // counted and hashed, and only their beginning is kept.
  Task<Got> ReadRequest();
  Task<bool> ReadBody();
  Task<bool> Fill();   // Reads more into in_; false at the end.
  Task<bool> Flush();  // Writes out_; false when the peer is gone.
  // Waits that long; false when the peer goes away meanwhile.
  Task<bool> Pause(int64_t until_ns);

  // Answers the request. False: the connection ends.
  Task<bool> Answer();
  Task<bool> AnswerApi(Api api);
  Task<bool> AnswerStream(const Call& call);
  Task<bool> StreamEndless(const Call& call);
  Task<void> EchoWebSocket();
  void AnswerWhole(int64_t status, std::string_view body,
                   std::string_view type = "application/json");
  void AppendEcho(wire::Buffer& body) const;
  void AppendStats(wire::Buffer& body) const;
  void AppendKnobHeaders(http1::ResponseWriter& answer) const;
  void Chunk(std::string_view payload) { http1::ChunkedWriter::AppendChunk(out_, payload); }
  int64_t NowNs() const { return stream_.loop().clock().MonotonicNs(); }

  MockServer& server_;
  net::Stream& stream_;
  net::Event gone_;  // The peer closed.
  wire::Buffer in_;
  wire::Buffer out_;
  wire::Buffer head_bytes_;  // head_ points into it.
  http1::RequestHead head_;
  std::string body_;
  int64_t body_bytes_ = 0;
  std::string body_sha256_;  // Of bodies that are not kept whole.
  std::vector<std::pair<std::string, std::string>> trailers_;
  Knobs knobs_;
};

}  // namespace weir::mock
