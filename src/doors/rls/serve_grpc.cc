#include "doors/rls/serve_grpc.h"

#include <utility>

namespace weir::doors::rls {

Task<void> ServeGrpc(std::unique_ptr<net::Stream> stream, GrpcServices services,
                     net::Http2Options options, const net::DrainFlag& drain,
                     net::Http2Connections& connections) {
  GrpcConnection calls(services, stream->loop(), drain);
  net::Http2Connection connection(std::move(stream), options, calls, connections);
  calls.Start(connection.session(), [&connection] { connection.Wake(); });
  co_await connection.Run();
  co_await calls.Settled();
}

}  // namespace weir::doors::rls
