#include "net/serve_http2.h"

#include <memory>
#include <string>
#include <vector>

#include "net/event.h"
#include "net/http2_world_test.h"
#include "net/http_service.h"

namespace weir::net {
namespace {

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

}  // namespace
}  // namespace weir::net
