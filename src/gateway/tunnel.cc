#include "gateway/tunnel.h"

#include <algorithm>

#include "net/event.h"
#include "wire/buffer.h"

namespace weir::gateway {
namespace {

constexpr size_t kPieceBytes = 16 * 1024;

struct Tunnel {
  net::Stream& client;
  net::Stream& upstream;
  TunnelOptions options;
  net::Event other_done;

  // Something moved: both directions may wait again for the whole idle time.
  void Touch() {
    const int64_t idle_until_ns =
        options.idle_ns > 0 ? client.loop().now_ns() + options.idle_ns : net::kNoDeadline;
    client.SetReadDeadline(std::min(options.deadline_ns, idle_until_ns));
    upstream.SetReadDeadline(std::min(options.deadline_ns, idle_until_ns));
  }
  void Cancel() {
    client.Cancel();
    upstream.Cancel();
  }
};

Task<void> Pass(Tunnel& tunnel, net::Stream& from, net::Stream& to, std::string_view early) {
  wire::Buffer buffer;
  buffer.Append(early);
  for (;;) {
    if (!buffer.empty()) {
      const net::IoResult sent = co_await to.Write(buffer.View());
      if (!sent.ok()) break;
      buffer.Clear();
    }
    char* const room = buffer.Prepare(kPieceBytes);
    const net::IoResult got = co_await from.Read({room, kPieceBytes});
    if (got.status == net::IoStatus::kEnd) {
      to.ShutdownWrite();  // The other direction may still have something to say.
      co_return;
    }
    if (!got.ok()) break;
    buffer.Commit(got.bytes);
    tunnel.Touch();
  }
  tunnel.Cancel();
}

Task<void> PassBeside(Tunnel& tunnel, net::Stream& from, net::Stream& to, std::string_view early) {
  co_await Pass(tunnel, from, to, early);
  tunnel.other_done.Set();
}

}  // namespace

Task<void> RunTunnel(net::Stream& client, net::Stream& upstream, std::string_view early_from_client,
                     std::string_view early_from_upstream, TunnelOptions options) {
  Tunnel tunnel{client, upstream, options, net::Event(client.loop())};
  tunnel.Touch();
  client.loop().Spawn(PassBeside(tunnel, client, upstream, early_from_client));
  co_await Pass(tunnel, upstream, client, early_from_upstream);
  co_await tunnel.other_done.Wait();
}

}  // namespace weir::gateway
