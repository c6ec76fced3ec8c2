// The door for probes and scrapers: GET /livez (also /healthz), /readyz, /metrics. Nothing here is
// ever limited, and nothing here is secret.
//
//   doors::Ops ops(metrics, ready);
//   loop.Spawn(net::ServeHttp(std::move(stream), ops, options, drain));
//
// Thread safety: Answer may run on many loops at once. Ownership: borrows both.
#pragma once

#include <atomic>

#include "metrics/weir_metrics.h"
#include "net/http_service.h"

namespace weir::doors {

class Ops final : public net::HttpService {
 public:
  // `ready` goes off first when the process is asked to end.
  Ops(const metrics::WeirMetrics& metrics, const std::atomic<bool>& ready)
      : metrics_(metrics), ready_(ready) {}

  void Answer(const net::HttpRequest& request, http1::ResponseWriter& answer) override;

 private:
  const metrics::WeirMetrics& metrics_;
  const std::atomic<bool>& ready_;
};

}  // namespace weir::doors
