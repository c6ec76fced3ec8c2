#include "net/serve_http2.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/connector.h"
#include "net/event.h"
#include "net/http_service.h"
#include "net/listener.h"
#include "testing/http2_client.h"
#include "testing/loop_fixture.h"

namespace weir::net {
namespace {

using weir::testing::Http2Client;
using weir::testing::Http2Fields;
using weir::testing::Http2Frame;
using weir::testing::LoopFixture;

constexpr int64_t kMs = 1'000'000;
constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

Http2Fields Get(const std::string& path = "/") {
  return {{":method", "GET"}, {":scheme", "http"}, {":authority", "a.test"}, {":path", path}};
}
Http2Fields Post(const std::string& path = "/") {
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

TEST(ServeHttp2, ServesEachStreamOnItsOwn) {
  World world;
  world.Run([](World& in) -> Task<void> {
    Client client(in);
    co_await client.Connect();
    std::vector<int32_t> ids;
    for (int i = 0; i < 100; ++i) ids.push_back(client.Request(Get()));
    for (const int32_t id : ids) {
      co_await client.Finish(id);
      EXPECT_EQ(client.answer(id).header(":status"), "200");
      EXPECT_EQ(client.answer(id).body, "ok");
      EXPECT_EQ(client.answer(id).error_code, http2::kNoError);
    }
    EXPECT_EQ(in.served, 100);
  }(world));
}

class Greeter final : public HttpService {
  void Answer(const HttpRequest& request, http1::ResponseWriter& answer) override {
    answer.Begin(200);
    answer.Connection(request.head.keep_alive, request.head.minor_version);
    answer.Body(std::string(request.head.path) + " " + std::string(request.body));
  }
};

TEST(ServeHttp2, CarriesTheDoorsForPrograms) {
  World world;
  Greeter greeter;
  DrainFlag drain;
  world.script = [&](std::unique_ptr<Stream> stream) {
    return ServeHttp(std::move(stream), greeter, {}, drain);
  };
  world.Run([](World& in) -> Task<void> {
    Client client(in);
    co_await client.Connect();
    const int32_t get = client.Request(Get("/a"));
    const int32_t post = client.Request(Post("/b"), std::string(100000, 'x'));
    co_await client.Finish(get);
    co_await client.Finish(post);
    EXPECT_EQ(client.answer(get).body, "/a ");
    EXPECT_EQ(client.answer(post).body, "/b " + std::string(100000, 'x'));
  }(world));
}

TEST(ServeHttp2, AResetIsAHangup) {
  World world;
  bool hung_up = false;
  world.script = [&](std::unique_ptr<Stream> stream) -> Task<void> {
    Event gone(stream->loop());
    char room[4096];
    co_await stream->Read(room);
    stream->OnHangup([&gone] { gone.Set(); });
    hung_up = co_await gone.WaitUntil(stream->loop().now_ns() + 2000 * kMs);
    const IoResult sent = co_await stream->Write(kOk);
    EXPECT_EQ(sent.status, IoStatus::kBroken);
  };
  world.Run([](World& in, bool& was_told) -> Task<void> {
    Client client(in);
    co_await client.Connect();
    const int32_t id = client.Request(Get());
    co_await client.Until([&in] { return in.served == 1; }, 50 * kMs);
    client.Reset(id);
    const bool told = co_await client.Until([&] { return was_told; }, 500 * kMs);
    EXPECT_TRUE(told || was_told);
  }(world, hung_up));
  EXPECT_TRUE(hung_up);
}

TEST(ServeHttp2, WhoeverLeavesWithoutAnAnswerResets) {
  World world;
  world.script = [](std::unique_ptr<Stream> stream) -> Task<void> {
    char room[4096];
    co_await stream->Read(room);
    if (std::string_view(room).starts_with("GET /half")) {
      co_await stream->Write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    }
  };
  world.Run([](World& in) -> Task<void> {
    Client client(in);
    co_await client.Connect();
    const int32_t none = client.Request(Get("/none"));
    const int32_t half = client.Request(Get("/half"));
    co_await client.Finish(none);
    co_await client.Finish(half);
    EXPECT_EQ(client.answer(none).error_code, http2::kInternalError);
    EXPECT_EQ(client.answer(half).error_code, http2::kInternalError);
    EXPECT_EQ(client.answer(half).body, "half");  // What there was came first.
  }(world));
}

TEST(ServeHttp2, AnAnswerIsTakenAsTheClientTakesIt) {
  World world;
  bool written = false;
  world.script = [&](std::unique_ptr<Stream> stream) -> Task<void> {
    char room[4096];
    co_await stream->Read(room);
    const std::string body(300000, 'b');
    co_await stream->Write("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n", body);
    written = true;
  };
  world.Run([](World& in, bool& all_written) -> Task<void> {
    Client client(in, /*window_bytes=*/1000);
    co_await client.Connect();
    const int32_t id = client.Request(Get());
    co_await client.Until([&] { return client.answer(id).body.size() == 1000; });
    co_await client.Until([] { return false; }, 60 * kMs);
    EXPECT_EQ(client.answer(id).body.size(), 1000u);
    EXPECT_FALSE(all_written);  // 64 KiB and no more are held.
    size_t taken = 0;
    while (!client.answer(id).closed) {
      client.Consume(id, client.answer(id).body.size() - taken);
      taken = client.answer(id).body.size();
      const bool more = co_await client.Until(
          [&] { return client.answer(id).body.size() > taken || client.answer(id).closed; });
      EXPECT_TRUE(more);
      if (!more) co_return;
    }
    EXPECT_EQ(client.answer(id).body, std::string(300000, 'b'));
    EXPECT_TRUE(all_written);
  }(world, written));
}

TEST(ServeHttp2, ABodyIsSentAsItIsRead) {
  World world;
  Event read_on(world.loop());
  size_t heard = 0;
  world.script = [&](std::unique_ptr<Stream> stream) -> Task<void> {
    co_await read_on.Wait();
    std::string room(5000, '\0');
    while (heard < 1000000) {
      const IoResult got = co_await stream->Read(room);
      if (!got.ok()) co_return;
      heard += got.bytes;
    }
    co_await stream->Write(kOk);
  };
  world.Run([](World& in, Event& go_on, size_t& all_heard) -> Task<void> {
    Client client(in);
    co_await client.Connect();
    Http2Fields fields = Post();
    fields.emplace_back("content-length", "1000000");
    const int32_t id = client.Request(fields, std::string(1000000, 'b'));
    co_await client.Until([] { return false; }, 60 * kMs);
    EXPECT_EQ(client.body_left(id), 1000000u - 64 * 1024);  // The window is shut.
    go_on.Set();
    co_await client.Finish(id);
    EXPECT_EQ(client.answer(id).body, "ok");
    EXPECT_GE(all_heard, 1000000u);
  }(world, read_on, heard));
}

TEST(ServeHttp2, CallsOfStreamsThatWereResetAreBounded) {
  World world;
  world.options.limits.concurrent_streams_max = 4;
  Event let_go(world.loop());
  world.script = [&](std::unique_ptr<Stream> stream) -> Task<void> {
    char room[4096];
    co_await stream->Read(room);
    co_await let_go.Wait();  // Takes no notice of its client.
  };
  world.Run([](World& in, Event& go) -> Task<void> {
    Client client(in);
    co_await client.Connect();
    for (int i = 0; i < 20; ++i) {
      const int32_t id = client.Request(Get());
      co_await client.Until([] { return true; });
      client.Reset(id);
    }
    co_await client.Until([] { return false; }, 60 * kMs);
    EXPECT_EQ(in.served, 8);
    go.Set();
  }(world, let_go));
}

TEST(ServeHttp2, ClosesWhatIsIdle) {
  World world;
  world.options.idle_timeout_ns = 60 * kMs;
  world.Run([](World& in) -> Task<void> {
    Client silent(in);
    co_await silent.Connect();
    Client used(in);
    co_await used.Connect();
    co_await used.Finish(used.Request(Get()));
    co_await used.Close();
    EXPECT_EQ(used.goaway(), http2::kNoError);
    co_await silent.Close();
  }(world));
}

TEST(ServeHttp2, ClosesOnAHeadThatDoesNotEnd) {
  World world;
  world.options.header_timeout_ns = 60 * kMs;
  world.Run([](World& in) -> Task<void> {
    Client client(in);
    co_await client.Connect();
    co_await client.Finish(client.Request(Get()));
    constexpr uint8_t kHeaders = 1;
    const std::string begun = Http2Frame(kHeaders, /*flags=*/0, /*stream_id=*/3, "\x82");
    co_await client.stream->Write(begun);
    co_await client.Close();
    EXPECT_EQ(in.served, 1);
  }(world));
}

TEST(ServeHttp2, GivesUpAnAnswerThatNobodyTakes) {
  World world;
  world.options.write_timeout_ns = 60 * kMs;
  world.Run([](World& in) -> Task<void> {
    Client client(in, /*window_bytes=*/1);
    co_await client.Connect();
    const int32_t id = client.Request(Get());
    co_await client.Finish(id);
    EXPECT_EQ(client.answer(id).body, "o");
    EXPECT_EQ(client.answer(id).error_code, http2::kCancel);
    EXPECT_EQ(in.connections.unsent(), 0);
  }(world));
}

TEST(ServeHttp2, DrainsInOrder) {
  World world;
  Event let_go(world.loop());
  world.script = [&](std::unique_ptr<Stream> stream) -> Task<void> {
    char room[4096];
    co_await stream->Read(room);
    if (std::string_view(room).starts_with("GET /slow")) co_await let_go.Wait();
    co_await stream->Write(kOk);
  };
  world.Run([](World& in, Event& go) -> Task<void> {
    constexpr int32_t kHighest = 0x7fffffff;
    Client idle(in);
    co_await idle.Connect();
    co_await idle.Finish(idle.Request(Get()));
    Client busy(in);
    co_await busy.Connect();
    const int32_t slow = busy.Request(Get("/slow"));
    co_await busy.Finish(busy.Request(Get()));

    in.connections.BeginDrain();
    co_await idle.Until([&] { return idle.goaway().has_value(); });
    EXPECT_EQ(idle.goaway_last_stream(), kHighest);
    co_await busy.Until([] { return false; }, 30 * kMs);
    EXPECT_FALSE(busy.goaway().has_value());  // Its call would fail with many clients.
    in.connections.AskToLeave();
    co_await busy.Until([&] { return busy.goaway().has_value(); });
    EXPECT_EQ(busy.goaway_last_stream(), kHighest);
    in.connections.CloseIdle();
    co_await idle.Close();
    co_await busy.Until([&] { return busy.goaway_last_stream() != kHighest; });
    EXPECT_EQ(busy.goaway_last_stream(), 3);
    go.Set();
    co_await busy.Finish(slow);
    EXPECT_EQ(busy.answer(slow).body, "ok");
    co_await busy.Close();
  }(world, let_go));
}

TEST(ServeHttp2, ABrokenPeerIsToldAndClosed) {
  World world;
  world.Run([](World& in) -> Task<void> {
    Client client(in);
    co_await client.Connect();
    const std::string text = "PRI * HTTP/2.0\r\n\r\nnot what it should be at all, by no means";
    co_await client.stream->Write(text);
    std::string room(65536, '\0');
    size_t told = 0;
    IoResult got;
    while (got.ok()) {
      got = co_await client.stream->Read(room);
      told += got.bytes;
    }
    EXPECT_EQ(got.status, IoStatus::kEnd);
    EXPECT_GT(told, 0u);  // SETTINGS and GOAWAY.
  }(world));
}

// The frames of a loop that ends are destroyed in any order.
TEST(ServeHttp2, ALoopMayEndInTheMidstOfCalls) {
  for (int calls : {0, 1, 3}) {
    World world;
    world.script = [&](std::unique_ptr<Stream> stream) -> Task<void> {
      Event never(stream->loop());
      stream->OnHangup([&never] { never.Set(); });
      co_await never.Wait();
    };
    world.Run([](World& in, int count) -> Task<void> {
      Client client(in);
      co_await client.Connect();
      for (int i = 0; i < count; ++i) client.Request(Post(), "body");
      co_await client.Until([&] { return in.served == count; }, 60 * kMs);
      co_await in.loop().SleepFor(20 * kMs);
      EXPECT_EQ(in.served, count);
    }(world, calls));
  }
}

}  // namespace
}  // namespace weir::net
