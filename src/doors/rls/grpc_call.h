// GrpcCall: one gRPC call of a connection, from its head to its trailers: which method, one
// message, one answer. What each method says is its service's.
//
//   ServerStream* OnStream(int32_t id) { return calls.Take(id); }
//
// Thread safety: one loop. Ownership: a connection owns its calls and uses them again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "wire/buffer.h"
#include "wire/grpc/message_reader.h"
#include "wire/grpc/status.h"
#include "wire/http2/server_session.h"

namespace weir::doors::rls {

class GrpcCall;

// Whoever owns the calls.
class GrpcCallOwner {
 public:
  virtual http2::ServerSession& session() = 0;
  // The whole message is there: Succeed or Fail now, or later after Hold.
  virtual void OnMessage(GrpcCall& call) = 0;
  // Nothing more comes of the call, unless it is held: then OnMessage's answer is dropped.
  virtual void OnEnded(GrpcCall& call) = 0;

 protected:
  ~GrpcCallOwner() = default;
};

// What the server answers.
enum class GrpcMethod : uint8_t { kUnknown, kShouldRateLimit, kHealthCheck };

class GrpcCall final : public http2::ServerStream {
 public:
  explicit GrpcCall(GrpcCallOwner& owner) : owner_(owner), reader_(kMessageBytesMax) {}

  // A message beyond this is refused: thousands of descriptor entries fit.
  static constexpr size_t kMessageBytesMax = 256 * 1024;

  // For another stream.
  void Begin(int32_t stream_id);

  GrpcMethod method() const { return method_; }
  std::string_view message() const { return reader_.message(); }
  // From the call's arrival; INT64_MAX: the client waits for as long as it takes.
  int64_t timeout_ns() const { return timeout_ns_; }

  // The answer is written by whoever calls this: the message into body() first.
  wire::Buffer& body() { return body_; }
  void Succeed();
  void Fail(grpc::Status status, std::string_view message);

  // A held call is not used again before Let.
  void Hold() { held_ = true; }
  void Let() { held_ = false; }
  bool held() const { return held_; }
  bool ended() const { return ended_; }

 private:
  void OnHeader(std::string_view name, std::string_view value) override;
  void OnHead(bool ends, bool too_large) override;
  void OnData(std::string_view bytes) override;
  void OnEnd() override;
  void OnClosed(uint32_t error_code) override;
  http2::Piece Read(std::span<char> room) override;
  // What is said is no gRPC: answered with a status of HTTP, and in words, when it is complete.
  void Refuse();

  GrpcCallOwner& owner_;
  int32_t stream_id_ = 0;
  GrpcMethod method_ = GrpcMethod::kUnknown;
  std::string_view refusal_;  // A status of HTTP; "": it is gRPC.
  bool is_post_ = false;
  bool is_grpc_ = false;
  bool is_compressed_ = false;
  bool has_malformed_timeout_ = false;
  bool answered_ = false;
  bool held_ = false;
  bool ended_ = false;
  int64_t timeout_ns_ = INT64_MAX;
  grpc::MessageReader reader_;
  wire::Buffer body_;  // With its prefix.
  wire::Buffer status_message_;
};

}  // namespace weir::doors::rls
