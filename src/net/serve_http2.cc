#include "net/serve_http2.h"

#include <utility>

#include "net/http2_calls.h"

namespace weir::net {

Task<void> ServeHttp2(std::unique_ptr<Stream> stream, ServeCall serve, Http2Options options,
                      Http2Connections& connections) {
  Http2Calls calls(std::move(serve), options);
  Http2Connection connection(std::move(stream), options, calls, connections);
  calls.Start(connection);
  co_await connection.Run();
}

}  // namespace weir::net
