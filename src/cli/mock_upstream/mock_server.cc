#include "cli/mock_upstream/mock_server.h"

#include <utility>

#include "cli/mock_upstream/mock_connection.h"

namespace weir::mock {
namespace {
constexpr int64_t kHandshakeNs = 10'000'000'000;
}  // namespace

void MockServer::Accept(std::unique_ptr<net::Stream> stream) {
  loop_.Spawn(Serve(std::move(stream)));
}

Task<void> MockServer::Serve(std::unique_ptr<net::Stream> stream) {
  ++stats_.connections;
  ++stats_.open;
  bool ready = true;
  if (tls_ != nullptr) {
    const Result<void> started =
        co_await stream->StartTlsServer(*tls_, loop_.now_ns() + kHandshakeNs);
    ready = started.has_value();
  }
  if (ready) {
    MockConnection connection(*this, *stream);
    co_await connection.Run();
  }
  --stats_.open;
}

}  // namespace weir::mock
