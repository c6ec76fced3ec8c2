#include "doors/rls/serve_grpc.h"

#include <utility>

namespace weir::doors::rls {

Task<void> ServeGrpc(std::unique_ptr<net::Stream> stream, GrpcServices services,
                     net::Http2Options options, const net::DrainFlag& drain,
                     net::Http2Connections& connections) {
  const GrpcTimeouts timeouts = {.message_ns = options.header_timeout_ns,
                                 .answer_ns = options.write_timeout_ns};
  GrpcConnection calls(services, timeouts, stream->loop(), drain);
  net::Http2Connection connection(std::move(stream), options, calls, connections);
  calls.Start(connection.session(), [&connection] { connection.Wake(); });
  co_await connection.Run();
  co_await calls.Settled();
}

}  // namespace weir::doors::rls
