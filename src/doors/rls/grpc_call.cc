#include "doors/rls/grpc_call.h"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::doors::rls {
namespace {

using http2::Header;

constexpr size_t kKeptBytes = 4096;  // Of a call that is used again.
constexpr std::string_view kContentType = "application/grpc";
constexpr std::string_view kNoGrpc =
    "This door speaks gRPC: POST with content-type: application/grpc, to "
    "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit\n";

struct NamedMethod {
  std::string_view path;
  GrpcMethod method;
};
constexpr std::array kMethods = {
    NamedMethod{"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
                GrpcMethod::kShouldRateLimit},
    NamedMethod{"/grpc.health.v1.Health/Check", GrpcMethod::kHealthCheck},
};

GrpcMethod MethodOf(std::string_view path) {
  for (const NamedMethod& named : kMethods) {
    if (named.path == path) return named.method;
  }
  return GrpcMethod::kUnknown;
}

// application/grpc, application/grpc+proto, application/grpc;… (not application/grpc-web)
bool IsGrpc(std::string_view content_type) {
  if (!content_type.starts_with(kContentType)) return false;
  const std::string_view rest = content_type.substr(kContentType.size());
  return rest.empty() || rest.front() == ';' || rest == "+proto";
}

}  // namespace

void GrpcCall::Begin(int32_t stream_id, int64_t now_ns) {
  stream_id_ = stream_id;
  moved_ns_ = now_ns;
  method_ = GrpcMethod::kUnknown;
  refusal_ = {};
  is_post_ = is_grpc_ = is_compressed_ = has_malformed_timeout_ = false;
  answered_ = held_ = ended_ = false;
  unconsumed_bytes_ = 0;
  timeout_ns_ = INT64_MAX;
  reader_.Clear();
  body_.ClearAndShrink(kKeptBytes);
  body_.Prepare(grpc::kPrefixBytes);
  body_.Commit(grpc::kPrefixBytes);
}

void GrpcCall::OnHeader(std::string_view name, std::string_view value) {
  if (name == ":path") {
    method_ = MethodOf(value);
  } else if (name == ":method") {
    is_post_ = value == "POST";
  } else if (name == "content-type") {
    is_grpc_ = IsGrpc(value);
  } else if (name == "grpc-encoding") {
    is_compressed_ = value != "identity";
  } else if (name == "grpc-timeout") {
    const std::optional<int64_t> timeout = grpc::ParseTimeout(value);
    has_malformed_timeout_ = !timeout;
    timeout_ns_ = timeout.value_or(INT64_MAX);
  }
}

void GrpcCall::OnHead(bool ends, bool too_large) {
  if (answered_) return;
  if (too_large) {
    refusal_ = "431";
  } else if (!is_post_) {
    refusal_ = "405";
  } else if (!is_grpc_) {
    refusal_ = "415";
  }
  if (!refusal_.empty()) {
    if (ends) Refuse();
    return;
  }
  if (method_ == GrpcMethod::kUnknown)
    return Fail(grpc::Status::kUnimplemented,
                "no such method; this server has "
                "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit and "
                "grpc.health.v1.Health/Check");
  if (is_compressed_)
    return Fail(grpc::Status::kUnimplemented, "grpc-encoding: only identity is supported");
  if (has_malformed_timeout_)
    return Fail(grpc::Status::kInvalidArgument,
                "grpc-timeout: must be 1 to 8 digits and one of H, M, S, m, u, n");
  if (ends) OnEnd();
}

void GrpcCall::OnData(std::string_view bytes) {
  if (answered_ || !refusal_.empty()) return owner_.session().Consume(stream_id_, bytes.size());
  unconsumed_bytes_ += bytes.size();
  const grpc::Status status = reader_.Feed(bytes);
  if (status != grpc::Status::kOk) Fail(status, reader_.fault());
}

void GrpcCall::GiveWindowBack() {
  if (unconsumed_bytes_ == 0) return;
  owner_.session().Consume(stream_id_, std::exchange(unconsumed_bytes_, 0));
}

void GrpcCall::OnEnd() {
  GiveWindowBack();
  if (answered_) return;
  if (!refusal_.empty()) return Refuse();
  const grpc::Status status = reader_.Finish();
  if (status != grpc::Status::kOk) return Fail(status, reader_.fault());
  owner_.OnMessage(*this);
}

void GrpcCall::OnClosed(uint32_t) {
  ended_ = true;
  owner_.OnEnded(*this);
}

void GrpcCall::Succeed() {
  if (answered_ || ended_) return;
  answered_ = true;
  moved_ns_ = owner_.now_ns();
  char prefix[grpc::kPrefixBytes];
  grpc::WritePrefix(body_.size() - grpc::kPrefixBytes, prefix);
  std::copy_n(prefix, grpc::kPrefixBytes, body_.data());
  static constexpr std::array kHead = {Header{":status", "200", true},
                                       Header{"content-type", kContentType, true}};
  owner_.session().Respond(stream_id_, kHead, http2::Body::kFollows);
}

void GrpcCall::Fail(grpc::Status status, std::string_view message) {
  if (answered_ || ended_) return;
  answered_ = true;
  moved_ns_ = owner_.now_ns();
  GiveWindowBack();
  status_message_.Clear();
  grpc::AppendEncodedMessage(message, status_message_);
  // Head and trailers in one: nothing came between.
  const std::array head = {Header{":status", "200", true},
                           Header{"content-type", kContentType, true},
                           Header{"grpc-status", grpc::StatusText(status), true},
                           Header{"grpc-message", status_message_.View()},
                           Header{"grpc-accept-encoding", "identity", true}};
  const size_t fields = status == grpc::Status::kUnimplemented ? head.size() : head.size() - 1;
  owner_.session().Respond(stream_id_, std::span(head).first(fields), http2::Body::kNone);
}

void GrpcCall::Refuse() {
  answered_ = true;
  moved_ns_ = owner_.now_ns();
  body_.Clear();
  body_.Append(kNoGrpc);
  const std::array head = {Header{":status", refusal_, true},
                           Header{"content-type", "text/plain", true}};
  owner_.session().Respond(stream_id_, head, http2::Body::kFollows);
}

http2::Piece GrpcCall::Read(std::span<char> room) {
  const size_t bytes = std::min(room.size(), body_.size());
  std::copy_n(body_.data(), bytes, room.data());
  body_.Consume(bytes);
  moved_ns_ = owner_.now_ns();
  if (!body_.empty()) return {.bytes = bytes, .then = http2::Piece::Then::kMore};
  if (!refusal_.empty()) return {.bytes = bytes, .then = http2::Piece::Then::kEnd};
  static constexpr std::array kTrailers = {Header{"grpc-status", "0", true}};
  owner_.session().SendTrailers(stream_id_, kTrailers);
  return {.bytes = bytes, .then = http2::Piece::Then::kTrailers};
}

}  // namespace weir::doors::rls
