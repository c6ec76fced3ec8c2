// A listener of HTTP/2 on loopback whose calls a script serves, and libnghttp2's client on a
// socket, all on one loop.
//
//   World world;
//   world.Run([](World& in) -> Task<void> {
//     Client client(in);
//     co_await client.Connect();
//     co_await client.Finish(client.Request(Get()));
//   }(world));
//
// Thread safety: one thread. Waits are bounded by the loop fixture.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/connector.h"
#include "net/listener.h"
#include "net/serve_http2.h"
#include "testing/http2_client.h"
#include "testing/loop_fixture.h"

namespace weir::net {

using weir::testing::Http2Client;
using weir::testing::Http2Fields;
using weir::testing::LoopFixture;

inline constexpr int64_t kMs = 1'000'000;
inline constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

inline Http2Fields Get(const std::string& path = "/") {
  return {{":method", "GET"}, {":scheme", "http"}, {":authority", "a.test"}, {":path", path}};
}
inline Http2Fields Post(const std::string& path = "/") {
  return {{":method", "POST"}, {":scheme", "http"}, {":authority", "a.test"}, {":path", path}};
}

// A listener whose calls are served by the test's script.
class World {
 public:
  using Script = std::function<Task<void>(std::unique_ptr<Stream>)>;

  World() {
    script = [](std::unique_ptr<Stream> stream) { return AnswerOk(std::move(stream)); };
    listener_ = Listener::Open(loop(), Endpoint::Parse("127.0.0.1:0").value(), [this](auto stream) {
                  loop().Spawn(ServeOne(std::move(stream)));
                }).value();
  }

  EventLoop& loop() { return fixture_.loop(); }
  void Run(Task<void> task) { fixture_.RunTask(std::move(task)); }
  const Endpoint& endpoint() const { return listener_->endpoint(); }
  // Reads what there is, and answers.
  static Task<void> AnswerOk(std::unique_ptr<Stream> stream) {
    char room[4096];
    co_await stream->Read(room);
    co_await stream->Write(kOk);
  }

  Http2Options options;
  Http2Connections connections;
  Script script;
  int served = 0;    // Calls begun.
  int finished = 0;  // Connections over.

 private:
  Task<void> ServeOne(std::unique_ptr<Stream> stream) {
    ServeCall serve = [this](std::unique_ptr<Stream> call) {
      ++served;
      return script(std::move(call));
    };
    co_await ServeHttp2(std::move(stream), std::move(serve), options, connections);
    ++finished;
  }

  LoopFixture fixture_;
  std::unique_ptr<Listener> listener_;
};

// libnghttp2's client on a socket.
struct Client : Http2Client {
  explicit Client(World& in, std::optional<uint32_t> window_bytes = {})
      : Http2Client(window_bytes), world(in) {}

  Task<void> Connect() {
    auto connected =
        co_await net::Connect(world.loop(), world.endpoint(), world.loop().now_ns() + 1000 * kMs);
    stream = std::move(*connected);
  }
  // Exchanges frames until the condition holds; false when the connection ends, or after so long.
  Task<bool> Until(std::function<bool()> condition, int64_t bound_ns = 5000 * kMs) {
    const int64_t give_up_ns = world.loop().now_ns() + bound_ns;
    std::string room(65536, '\0');
    for (;;) {
      const std::string output = TakeOutput();
      if (!output.empty()) co_await stream->Write(output);
      if (condition()) co_return true;
      stream->SetReadDeadline(give_up_ns);
      const IoResult got = co_await stream->Read(room);
      if (!got.ok()) {
        closed = got.status == IoStatus::kEnd;
        co_return false;
      }
      Feed({room.data(), got.bytes});
    }
  }
  Task<void> Finish(int32_t id) {
    const bool done = co_await Until([this, id] { return answer(id).closed; });
    EXPECT_TRUE(done);
  }
  Task<void> Close() {
    const bool open = co_await Until([] { return false; });
    EXPECT_FALSE(open);
    EXPECT_TRUE(closed);
  }

  World& world;
  std::unique_ptr<Stream> stream;
  bool closed = false;
};

}  // namespace weir::net
