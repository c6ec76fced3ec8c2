#include "net/http2_connection.h"

#include <memory>
#include <string>

#include "net/event.h"
#include "net/http2_world_test.h"

namespace weir::net {
namespace {

using weir::testing::Http2Frame;

TEST(Http2Connection, CallsOfStreamsThatWereResetAreBounded) {
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

TEST(Http2Connection, ClosesWhatIsIdle) {
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

TEST(Http2Connection, ClosesOnAHeadThatDoesNotEnd) {
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

TEST(Http2Connection, GivesUpAnAnswerThatNobodyTakes) {
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

TEST(Http2Connection, DrainsInOrder) {
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

TEST(Http2Connection, ABrokenPeerIsToldAndClosed) {
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
TEST(Http2Connection, ALoopMayEndInTheMidstOfCalls) {
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
