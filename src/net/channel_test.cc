#include "net/channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "testing/loop_fixture.h"

namespace weir::net {
namespace {

using weir::testing::LoopFixture;

constexpr int64_t kMs = 1'000'000;

// A pipe each way, the outgoing one with little room.
struct Pipes : Channel {
  std::string in, out;
  size_t room = 8;
  bool ended = false, broken = false, shut = false, detached = false;

  IoResult Receive(std::span<char> to) override {
    if (broken) return {IoStatus::kBroken, 0};
    const size_t part = std::min(to.size(), in.size());
    std::copy_n(in.data(), part, to.data());
    in.erase(0, part);
    return {part == 0 && ended ? IoStatus::kEnd : IoStatus::kOk, part};
  }
  bool readable() const override { return !in.empty() || ended || broken; }
  IoResult Send(std::string_view bytes) override {
    if (broken) return {IoStatus::kBroken, 0};
    const size_t part = std::min(bytes.size(), room - out.size());
    out += bytes.substr(0, part);
    return {IoStatus::kOk, part};
  }
  void ShutdownWrite() override { shut = true; }
  void Detached() override { detached = true; }

  void Arrive(std::string_view bytes) {
    in += bytes;
    RaiseReadable();
  }
  void End() {
    ended = true;
    RaiseReadable();
  }
  std::string Take() {
    std::string taken = std::exchange(out, "");
    RaiseWritable();
    return taken;
  }
  void Break() {
    broken = true;
    RaiseHangup();
  }
};

struct World {
  explicit World(EventLoop& loop)
      : stream(Stream::OverChannel(loop, pipes, Endpoint::Parse("127.0.0.1:7").value(),
                                   /*is_tls=*/true)) {}
  std::shared_ptr<Pipes> pipes = std::make_shared<Pipes>();
  std::unique_ptr<Stream> stream;
};

TEST(Channel, CarriesBytesAndTheirEnd) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    World world(loop);
    EXPECT_TRUE(world.stream->is_tls());
    EXPECT_EQ(world.stream->peer().port(), 7);
    EXPECT_TRUE(world.stream->IsQuiet());
    world.pipes->Arrive("hello");
    EXPECT_FALSE(world.stream->IsQuiet());
    char room[3];
    IoResult got = co_await world.stream->Read(room);
    EXPECT_EQ(std::string_view(room, got.bytes), "hel");
    got = co_await world.stream->Read(room);
    EXPECT_EQ(std::string_view(room, got.bytes), "lo");
    EXPECT_TRUE(world.stream->IsQuiet());
    world.pipes->End();
    got = co_await world.stream->Read(room);
    EXPECT_EQ(got.status, IoStatus::kEnd);
    EXPECT_FALSE(world.stream->peer_hung_up());  // It may still read.
    world.stream->ShutdownWrite();
    EXPECT_TRUE(world.pipes->shut);
    world.stream.reset();
    EXPECT_TRUE(world.pipes->detached);
    world.pipes->Arrive("late");  // Nobody is there.
  };
  fixture.RunTask(scenario(fixture.loop()));
}

Task<void> Later(EventLoop& loop, std::function<void()> act) {
  co_await loop.SleepFor(5 * kMs);
  act();
}

TEST(Channel, AReadWaits) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    World world(loop);
    loop.Spawn(Later(loop, [&world] { world.pipes->Arrive("x"); }));
    const IoResult waited = co_await world.stream->WaitReadable();
    EXPECT_TRUE(waited.ok());
    char room[8];
    IoResult got = co_await world.stream->Read(room);
    EXPECT_EQ(got.bytes, 1u);
    loop.Spawn(Later(loop, [&world] { world.pipes->Arrive("yz"); }));
    got = co_await world.stream->Read(room);
    EXPECT_EQ(got.bytes, 2u);
  };
  fixture.RunTask(scenario(fixture.loop()));
}

TEST(Channel, AWriteWaitsForRoom) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    World world(loop);
    std::string taken;
    loop.Spawn(Later(loop, [&] { taken = world.pipes->Take(); }));
    const IoResult sent = co_await world.stream->Write("one ", "two ", "three");
    EXPECT_EQ(sent.bytes, 13u);
    EXPECT_EQ(taken, "one two ");
    EXPECT_EQ(world.pipes->out, "three");
  };
  fixture.RunTask(scenario(fixture.loop()));
}

TEST(Channel, DeadlinesAndCancelEndWhatWaits) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    World world(loop);
    char room[8];
    world.stream->SetReadDeadline(loop.now_ns() + 10 * kMs);
    IoResult got = co_await world.stream->Read(room);
    EXPECT_EQ(got.status, IoStatus::kTimedOut);
    world.stream->SetWriteTimeout(10 * kMs);
    const IoResult sent = co_await world.stream->Write("more than fits");
    EXPECT_EQ(sent.status, IoStatus::kTimedOut);
    EXPECT_EQ(sent.bytes, 8u);
    world.stream->SetReadDeadline(kNoDeadline);
    loop.Spawn(Later(loop, [&world] { world.stream->Cancel(); }));
    got = co_await world.stream->Read(room);
    EXPECT_EQ(got.status, IoStatus::kCancelled);
  };
  fixture.RunTask(scenario(fixture.loop()));
}

TEST(Channel, AHangupIsToldAndEndsBothWays) {
  LoopFixture fixture;
  auto scenario = [](EventLoop& loop) -> Task<void> {
    World world(loop);
    bool told = false;
    world.stream->OnHangup([&told] { told = true; });
    world.pipes->Break();
    EXPECT_TRUE(told);
    EXPECT_TRUE(world.stream->peer_hung_up());
    char room[8];
    const IoResult got = co_await world.stream->Read(room);
    EXPECT_EQ(got.status, IoStatus::kBroken);
    const IoResult sent = co_await world.stream->Write("x");
    EXPECT_EQ(sent.status, IoStatus::kBroken);
  };
  fixture.RunTask(scenario(fixture.loop()));
}

}  // namespace
}  // namespace weir::net
