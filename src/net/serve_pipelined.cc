#include "net/serve_pipelined.h"

namespace weir::net {

Task<void> CloseGently(Stream& stream) {
  constexpr int64_t kLingerNs = 1'000'000'000;
  constexpr size_t kLingerBytes = 256 * 1024;
  stream.ShutdownWrite();
  stream.SetReadDeadline(stream.loop().now_ns() + kLingerNs);
  char discarded[4096];
  for (size_t total = 0; total < kLingerBytes;) {
    const IoResult got = co_await stream.Read(discarded);
    if (!got.ok()) co_return;
    total += got.bytes;
  }
}

}  // namespace weir::net
