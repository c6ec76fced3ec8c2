// grpc.health.v1.Health/Check: whether this server takes calls. As /readyz: it never depends on the
// store, and turns first when the server is asked to end. Never limited, never counted.
//
//   grpc::Status status = AnswerHealthCheck(message, ready, out);
//
// Thread safety: pure functions.
#pragma once

#include <string_view>

#include "wire/buffer.h"
#include "wire/grpc/status.h"

namespace weir::doors::rls {

// Appends a HealthCheckResponse. kNotFound: a service that this server does not have;
// kInvalidArgument: no HealthCheckRequest.
grpc::Status AnswerHealthCheck(std::string_view message, bool ready, wire::Buffer& out);

}  // namespace weir::doors::rls
