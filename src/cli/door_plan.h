// DoorPlan: a door to open, as the configuration has it: where, and with which certificate.
//
// Thread safety: plain values; a TlsContext may be shared by threads.
//
//   Result<std::vector<DoorPlan>> plans = PlanDoors(config.listen);
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "metrics/weir_metrics.h"
#include "net/endpoint.h"
#include "net/tls.h"
#include "policy/config.h"
#include "weir/result.h"

namespace weir::cli {

struct DoorPlan {
  metrics::Door door = metrics::Door::kGateway;
  net::Endpoint endpoint;
  std::shared_ptr<const net::TlsContext> tls;  // Null: plain.
};

// Reads the certificates. The error names the door, and the address or file that cannot be used and
// why.
Result<std::vector<DoorPlan>> PlanDoors(const policy::ListenConfig& listen);

// The files that PlanDoors reads.
std::vector<std::string> CertificateFiles(const policy::ListenConfig& listen);

// `error` of a door.
Error Prefixed(metrics::Door door, const Error& error);

}  // namespace weir::cli
