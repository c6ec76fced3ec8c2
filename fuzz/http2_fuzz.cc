// HTTP/2 connections: whatever arrives, every stream ends once, bounds hold, and what is answered
// is bounded too. Past the preface, so that the fuzzer begins at the frames.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/check.h"
#include "wire/http2/server_session.h"

using namespace weir;

namespace {

constexpr http2::SessionLimits kLimits = {.concurrent_streams_max = 8,
                                          .header_list_bytes_max = 1024,
                                          .stream_window_bytes = 4096,
                                          .connection_window_bytes = 65535,
                                          .idle_frames_burst = 50,
                                          .idle_frames_per_sec = 1};

// Answers each request with its own length, or resets it.
class Server final : public http2::Acceptor {
 public:
  ~Server() {
    session_.reset();
    for (const auto& stream : streams_) fuzz::Check(stream->closed);
  }

  http2::ServerStream* OnStream(int32_t id) override {
    streams_.push_back(std::make_unique<Stream>(*this, id));
    return streams_.back().get();
  }
  void Run(std::string_view input, size_t piece) {
    session_->Feed(http2::kClientPreface, now_ns_);
    wire::Buffer out;
    while (!input.empty() && !session_->finished()) {
      const size_t bytes = std::min(piece, input.size());
      const bool alive = session_->Feed(input.substr(0, bytes), now_ns_ += 1'000'000);
      input.remove_prefix(bytes);
      while (session_->Drain(out, 16 * 1024)) out.Clear();
      fuzz::Check(out.size() < 64 * 1024);
      out.Clear();
      fuzz::Check(session_->open_streams() <= kLimits.concurrent_streams_max + 1);
      if (!alive) fuzz::Check(session_->finished());
    }
  }

 private:
  struct Stream final : http2::ServerStream {
    Stream(Server& owner, int32_t stream_id) : server(owner), id(stream_id) {}
    void OnHeader(std::string_view name, std::string_view value) override {
      fuzz::Check(!closed);
      head_bytes += name.size() + value.size();
    }
    void OnHead(bool ends, bool) override {
      fuzz::Check(head_bytes <= kLimits.header_list_bytes_max);
      head_bytes = 0;
      if (ends) Answer();
    }
    void OnData(std::string_view bytes) override {
      fuzz::Check(!closed);
      held += bytes.size();
      fuzz::Check(held <= static_cast<size_t>(kLimits.stream_window_bytes));
      if (bytes.size() % 2 == 0) {
        server.session_->Consume(id, held);
        held = 0;
      }
    }
    void OnEnd() override { Answer(); }
    void OnClosed(uint32_t) override {
      fuzz::Check(!closed);
      closed = true;
    }
    http2::Piece Read(std::span<char> room) override {
      fuzz::Check(!closed);
      const size_t bytes = std::min<size_t>(room.size(), 5);
      std::fill_n(room.data(), bytes, 'a');
      return {.bytes = bytes, .then = http2::Piece::Then::kEnd};
    }
    void Answer() {
      if (answered) return;
      answered = true;
      const http2::Header head[] = {{":status", "200", true}};
      server.session_->Respond(id, head, http2::Body::kFollows);
    }

    Server& server;
    const int32_t id;
    size_t head_bytes = 0;
    size_t held = 0;
    bool answered = false;
    bool closed = false;
  };

  std::vector<std::unique_ptr<Stream>> streams_;
  std::unique_ptr<http2::ServerSession> session_ =
      std::make_unique<http2::ServerSession>(kLimits, *this);
  int64_t now_ns_ = 1;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = fuzz::Input(data, size);
  const size_t piece = 1 + fuzz::TakeByte(input);
  Server server;
  server.Run(input, piece);
  return 0;
}
