// Messages of gRPC calls: pieces give the message of the whole, bounds hold, and texts survive.
#include <algorithm>
#include <string>

#include "fuzz/check.h"
#include "wire/grpc/message_reader.h"
#include "wire/grpc/status.h"

using namespace weir;

namespace {

constexpr size_t kMessageBytesMax = 64;

// The message, or why there is none.
std::string Read(std::string_view input, size_t piece) {
  grpc::MessageReader reader(kMessageBytesMax);
  for (; !input.empty(); input.remove_prefix(std::min(piece, input.size()))) {
    if (reader.Feed(input.substr(0, piece)) != grpc::Status::kOk) {
      fuzz::Check(!reader.fault().empty());
      return "refused";
    }
  }
  if (reader.Finish() != grpc::Status::kOk) return std::string(reader.fault());
  fuzz::Check(reader.message().size() <= kMessageBytesMax);
  return "message: " + std::string(reader.message());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input = fuzz::Input(data, size);
  const size_t piece = 1 + fuzz::TakeByte(input);
  fuzz::Check(Read(input, input.size() + 1) == Read(input, piece));
  const std::optional<int64_t> timeout = grpc::ParseTimeout(input);
  if (timeout) fuzz::Check(*timeout >= 0 && input.size() <= 9);
  wire::Buffer encoded;
  grpc::AppendEncodedMessage(input, encoded);
  fuzz::Check(encoded.size() <= 3 * input.size());
  for (const char c : encoded.View()) fuzz::Check(c >= ' ' && c <= '~');
  return 0;
}
