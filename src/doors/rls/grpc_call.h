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
  virtual int64_t now_ns() const = 0;
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

  // A message beyond this is refused: a thousand descriptor entries fit. Below the window of a
  // stream, which opens again when the message is whole, so that what all calls of a connection
  // hold is bounded by the connection's window.
  static constexpr size_t kMessageBytesMax = 60 * 1024;

  // For another stream.
  void Begin(int32_t stream_id, int64_t now_ns);
  int32_t stream_id() const { return stream_id_; }

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
  bool answered() const { return answered_; }
  // When the call began, was answered, or sent bytes of its answer last.
  int64_t moved_ns() const { return moved_ns_; }

 private:
  void OnHeader(std::string_view name, std::string_view value) override;
  void OnHead(bool ends, bool too_large) override;
  void OnData(std::string_view bytes) override;
  void OnEnd() override;
  void OnClosed(uint32_t error_code) override;
  http2::Piece Read(std::span<char> room) override;
  // The peer may send again what this call has held.
  void GiveWindowBack();
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
  bool ended_ = true;
  size_t unconsumed_bytes_ = 0;
  int64_t moved_ns_ = 0;
  int64_t timeout_ns_ = INT64_MAX;
  grpc::MessageReader reader_;
  wire::Buffer body_;  // With its prefix.
  wire::Buffer status_message_;
};

}  // namespace weir::doors::rls
