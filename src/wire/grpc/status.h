// What a gRPC call ends with, and the fields of it that are text: status codes, grpc-message's
// percent-encoding, grpc-timeout (the "gRPC over HTTP/2" protocol document).
//
//   grpc::AppendEncodedMessage("domain: must not be empty", out);
//   grpc::ParseTimeout("20m")            // 20 ms
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "weir/result.h"
#include "wire/buffer.h"

namespace weir::grpc {

// google.rpc.Code
enum class Status : uint8_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16,
};
// "0" … "16": the value of grpc-status. Static.
std::string_view StatusText(Status status);
Status StatusOf(ErrorCode code);

// The value of grpc-message: bytes outside ' ' … '~', and '%', as %XX.
void AppendEncodedMessage(std::string_view message, wire::Buffer& out);

// The value of grpc-timeout in nanoseconds: 1 to 8 digits and a unit of H, M, S, m, u, n. Nothing
// when it is malformed.
std::optional<int64_t> ParseTimeout(std::string_view text);

}  // namespace weir::grpc
