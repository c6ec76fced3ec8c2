#include "doors/rls/health.h"

#include "wire/protobuf/reader.h"
#include "wire/protobuf/writer.h"

namespace weir::doors::rls {
namespace {

// grpc.health.v1.HealthCheckResponse.ServingStatus
constexpr uint64_t kServing = 1;
constexpr uint64_t kNotServing = 2;

}  // namespace

grpc::Status AnswerHealthCheck(std::string_view message, bool ready, wire::Buffer& out) {
  std::string_view service;
  protobuf::Reader reader(message);
  while (reader.Next()) {
    if (reader.Is(1, protobuf::WireType::kLength)) service = reader.bytes();
  }
  if (!reader.ok()) return grpc::Status::kInvalidArgument;
  const bool ours = service.empty() || service == "envoy.service.ratelimit.v3.RateLimitService" ||
                    service == "grpc.health.v1.Health";
  if (!ours) return grpc::Status::kNotFound;
  protobuf::Writer(out).Varint(1, ready ? kServing : kNotServing);
  return grpc::Status::kOk;
}

}  // namespace weir::doors::rls
