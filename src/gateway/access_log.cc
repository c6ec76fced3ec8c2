#include "gateway/access_log.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "gateway/loop_state.h"

namespace weir::gateway {

std::string_view TraceIdOf(std::string_view traceparent) {
  // version "-" trace-id "-" parent-id "-" flags
  if (traceparent.size() < 55 || traceparent[2] != '-' || traceparent[35] != '-') return {};
  const std::string_view id = traceparent.substr(3, 32);
  const bool hexadecimal = std::ranges::all_of(
      id, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  return hexadecimal ? id : std::string_view();
}

void LogCall(LoopState& state, const Call& call) {
  Logger* logger = state.logger();
  if (logger == nullptr || !logger->Enabled(LogLevel::kInfo)) return;
  const std::array<LogField, 2> fields = {
      LogField("method", call.head.method),
      LogField("path", call.path.empty() ? call.head.path : call.path),
  };
  logger->Write({.level = LogLevel::kInfo,
                 .wall_ns = state.loop().wall_ns(),
                 .message = "call",
                 .request_id = call.request_id,
                 .trace_id = TraceIdOf(call.head.headers.Value(http1::FieldId::kTraceparent)),
                 .client = call.identity.client.view(),
                 .limit = call.limit,
                 .outcome = call.outcome,
                 .source = call.limit.empty() ? std::string_view() : SourceName(call.source),
                 .status = call.status,
                 .duration_ns = state.loop().now_ns() - call.start_ns,
                 .upstream = call.upstream != nullptr ? std::string_view(call.upstream->name)
                                                      : std::string_view(),
                 .model = call.model,
                 .fields = fields});
}

}  // namespace weir::gateway
