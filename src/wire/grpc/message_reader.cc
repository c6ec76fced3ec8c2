#include "wire/grpc/message_reader.h"

namespace weir::grpc {

size_t MessageReader::length() const {
  size_t length = 0;
  for (size_t i = 1; i < kPrefixBytes; ++i) {
    length = length << 8 | static_cast<unsigned char>(bytes_.data()[i]);
  }
  return length;
}

Status MessageReader::Feed(std::string_view bytes) {
  const bool knew_length = bytes_.size() >= kPrefixBytes;
  const size_t room = kPrefixBytes + message_bytes_max_ - bytes_.size();
  const bool fits = bytes.size() <= room;
  bytes_.Append(bytes.substr(0, room));
  if (bytes_.size() < kPrefixBytes) return Status::kOk;
  if (!knew_length && bytes_.data()[0] != 0) {
    return Fail(Status::kUnimplemented, "compressed messages are not supported: send identity");
  }
  if (length() > message_bytes_max_) {
    return Fail(Status::kResourceExhausted, "the message is too large");
  }
  if (!fits || bytes_.size() > kPrefixBytes + length()) {
    return Fail(Status::kInvalidArgument, "more than one message in a unary call");
  }
  return Status::kOk;
}

Status MessageReader::Finish() {
  if (bytes_.size() >= kPrefixBytes && bytes_.size() == kPrefixBytes + length()) {
    return Status::kOk;
  }
  return Fail(Status::kInvalidArgument, "the message is not whole");
}

void WritePrefix(size_t message_bytes, char (&prefix)[kPrefixBytes]) {
  prefix[0] = 0;
  for (size_t i = 1; i < kPrefixBytes; ++i) {
    prefix[i] = static_cast<char>(message_bytes >> (8 * (kPrefixBytes - 1 - i)) & 0xff);
  }
}

}  // namespace weir::grpc
