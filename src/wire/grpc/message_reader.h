// MessageReader: takes the one message of a unary call out of the bytes of its request: a byte that
// says whether it is compressed, four of length, the message ("gRPC over HTTP/2", Length-Prefixed-
// Message).
//
//   grpc::MessageReader reader(64 * 1024);
//   if (reader.Feed(bytes) != grpc::Status::kOk) return Refuse(reader.fault());
//   if (reader.Finish() == grpc::Status::kOk) Answer(reader.message());
//
// Thread safety: none; one call.
#pragma once

#include <cstddef>
#include <string_view>

#include "wire/buffer.h"
#include "wire/grpc/status.h"

namespace weir::grpc {

inline constexpr size_t kPrefixBytes = 5;

class MessageReader {
 public:
  explicit MessageReader(size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

  // The next bytes. kResourceExhausted: longer than the bound; kUnimplemented: compressed;
  // kInvalidArgument: bytes behind the message. The call is over then.
  Status Feed(std::string_view bytes);
  // No more bytes come. kInvalidArgument: the message is not whole.
  Status Finish();
  // REQUIRES: Finish said kOk. Valid until Clear or the next Feed.
  std::string_view message() const { return bytes_.View().substr(kPrefixBytes); }
  std::string_view fault() const { return fault_; }

  // Bytes that are held.
  size_t size() const { return bytes_.size(); }

  // Ready for another call. Gives the memory of a long message back.
  void Clear() {
    bytes_.ClearAndShrink(kKeptBytes);
    fault_ = {};
  }

 private:
  static constexpr size_t kKeptBytes = 4096;

  Status Fail(Status status, std::string_view fault) {
    fault_ = fault;
    return status;
  }
  size_t length() const;

  const size_t message_bytes_max_;
  wire::Buffer bytes_;
  std::string_view fault_;
};

// The prefix of a message of so many bytes, uncompressed, into `prefix`.
void WritePrefix(size_t message_bytes, char (&prefix)[kPrefixBytes]);

}  // namespace weir::grpc
