// What the rate limit service answers: envoy.service.ratelimit.v3.RateLimitResponse, written
// straight into a buffer (proto/rls.proto has the facts). The order of the calls is free but for
// the statuses', which is the descriptors'.
//
//   rls::ResponseWriter writer(out);
//   writer.OverallCode(rls::Code::kOverLimit);
//   writer.Status({.code = rls::Code::kOverLimit, .limit = {{10, rls::Unit::kMinute,
//   "per-user"}}}); writer.ResponseHeader("Retry-After", "3");
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "wire/buffer.h"
#include "wire/protobuf/writer.h"
#include "wire/rls/request.h"

namespace weir::rls {

enum class Code : uint8_t { kUnknown = 0, kOk = 1, kOverLimit = 2 };

inline constexpr uint32_t kUnlimitedRemaining = UINT32_MAX;

struct CurrentLimit {
  uint32_t requests_per_unit = 0;
  Unit unit = Unit::kUnknown;
  std::string_view name;
};

struct DescriptorStatus {
  Code code = Code::kOk;
  std::optional<CurrentLimit> limit;
  uint32_t limit_remaining = 0;
  std::optional<int64_t> until_reset_ns;  // At least 0.
};

class ResponseWriter {
 public:
  explicit ResponseWriter(wire::Buffer& out) : writer_(out) {}

  void OverallCode(Code code) { writer_.Varint(1, static_cast<uint64_t>(code)); }
  void Status(const DescriptorStatus& status);
  // A field for the answer to Envoy's client.
  void ResponseHeader(std::string_view name, std::string_view value);
  // The body of a refusal.
  void RawBody(std::string_view body) { writer_.Bytes(5, body); }
  // Members of dynamic_metadata, a google.protobuf.Struct. Call them one after the other.
  void Metadata(std::string_view name, std::string_view text);
  void Metadata(std::string_view name, double number);

 private:
  template <typename WriteValue>
  void MetadataMember(std::string_view name, WriteValue&& write_value);

  protobuf::Writer writer_;
};

}  // namespace weir::rls
